import { signal } from '@preact/signals';
import type { ComponentType, ComponentChild } from 'preact';

/**
 * A component in its own file, loaded when first shown or earlier with `load`. If it cannot be loaded, the plain form
 * stays: the text is there either way.
 */
export function lazy<Props extends object>(
  fetchIt: () => Promise<ComponentType<Props>>,
  plain: (props: Props) => ComponentChild,
): { (props: Props): ComponentChild; load(): void } {
  const loaded = signal<ComponentType<Props> | undefined>(undefined);
  let underWay = false;
  const load = () => {
    if (underWay) return;
    underWay = true;
    fetchIt().then(
      (component) => (loaded.value = component),
      () => (underWay = false),
    );
  };
  const Lazy = (props: Props) => {
    const Component = loaded.value;
    if (Component) return <Component {...props} />;
    load();
    return plain(props);
  };
  return Object.assign(Lazy, { load });
}
