/** As `engines` in package.json says it. */
export const NODE_RANGE = '^20.19 or >=22.12';

export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return (major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22;
}
