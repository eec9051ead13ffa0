/**
 * Metrics in the Prometheus text format (0.0.4). Names and labels come from this program, label values from anywhere.
 */

export type Labels = Readonly<Record<string, string>>;

/** Seconds; a call can take milliseconds, or wait for minutes. */
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300] as const;
/** Label values that callers choose must not fill the memory. */
const MAX_SERIES = 1_000;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  samples(): Iterable<string>;
}

export class MetricRegistry {
  readonly #families: Family[] = [];

  counter(name: string, help: string): Counter {
    const counter = new Counter(name);
    this.#families.push({ name, help, type: 'counter', samples: () => counter.samples() });
    return counter;
  }

  histogram(name: string, help: string): Histogram {
    const histogram = new Histogram(name);
    this.#families.push({ name, help, type: 'histogram', samples: () => histogram.samples() });
    return histogram;
  }

  text(): string {
    return this.#families.map(familyText).join('');
  }
}

/** Computed on demand. */
export function gaugeText(
  name: string,
  help: string,
  values: Iterable<readonly [Labels, number]>,
  type: 'gauge' | 'counter' = 'gauge',
): string {
  return familyText({
    name,
    help,
    type,
    samples: () => [...values].map(([labels, value]) => sample(name, labels, value)),
  });
}

class Counter {
  readonly #name: string;
  readonly #values = new Map<string, { labels: Labels; value: number }>();

  constructor(name: string) {
    this.#name = name;
  }

  add(amount: number, labels: Labels = {}): void {
    const key = JSON.stringify(labels);
    const known = this.#values.get(key);
    if (known) known.value += amount;
    else if (this.#values.size < MAX_SERIES) this.#values.set(key, { labels, value: amount });
  }

  *samples(): Generator<string> {
    for (const { labels, value } of this.#values.values()) yield sample(this.#name, labels, value);
  }
}

class Histogram {
  readonly #name: string;
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number; count: number }>();

  constructor(name: string) {
    this.#name = name;
  }

  observe(seconds: number, labels: Labels): void {
    const key = JSON.stringify(labels);
    let series = this.#series.get(key);
    if (!series) {
      if (this.#series.size >= MAX_SERIES) return;
      series = { labels, counts: BUCKETS.map(() => 0), sum: 0, count: 0 };
      this.#series.set(key, series);
    }
    const bucket = BUCKETS.findIndex((most) => seconds <= most);
    if (bucket >= 0) series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
    series.count++;
  }

  *samples(): Generator<string> {
    for (const { labels, counts, sum, count } of this.#series.values()) {
      let below = 0;
      for (const [index, most] of BUCKETS.entries()) {
        below += counts[index] ?? 0;
        yield sample(`${this.#name}_bucket`, { ...labels, le: String(most) }, below);
      }
      yield sample(`${this.#name}_bucket`, { ...labels, le: '+Inf' }, count);
      yield sample(`${this.#name}_sum`, labels, sum);
      yield sample(`${this.#name}_count`, labels, count);
    }
  }
}

function familyText(family: Family): string {
  const { name, help, type } = family;
  return [`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...family.samples(), ''].join('\n');
}

function sample(name: string, labels: Labels, value: number): string {
  const shown = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`);
  return `${name}${shown.length === 0 ? '' : `{${shown.join(',')}}`} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
