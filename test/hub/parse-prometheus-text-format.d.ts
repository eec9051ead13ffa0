declare module 'parse-prometheus-text-format' {
  interface Metric {
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly buckets?: Readonly<Record<string, string>>;
    readonly count?: string;
    readonly sum?: string;
  }
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: 'COUNTER' | 'GAUGE' | 'HISTOGRAM' | 'SUMMARY' | 'UNTYPED';
    readonly metrics: readonly Metric[];
  }
  const parsePrometheusTextFormat: (text: string) => Family[];
  // eslint-disable-next-line import-x/no-default-export -- the package has no other
  export default parsePrometheusTextFormat;
}
