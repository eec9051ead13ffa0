/**
 * For Node when it starts a hub, which runs for weeks next to everything else on the machine: its objects are
 * short-lived, and V8 would let several times the live size pile up before it collects.
 */
export const HUB_NODE_FLAGS = ['--optimize-for-size'] as const;
