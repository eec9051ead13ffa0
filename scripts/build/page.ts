import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { TsdownPlugin } from 'tsdown';

/**
 * Builds the page from its template, style sheets and icons. Names of scripts and styles contain a digest of their
 * content, so that browsers can cache them forever; the page uses relative URLs, so that it works under any path.
 */
export function page(directory: string): TsdownPlugin {
  const style = path.join(directory, 'style');
  const assets = path.join(directory, 'assets');
  return {
    name: 'page',
    buildStart() {
      for (const folder of [style, assets]) {
        for (const file of readdirSync(folder)) this.addWatchFile(path.join(folder, file));
      }
      this.addWatchFile(path.join(directory, 'index.html'));
    },
    generateBundle(_options, bundle) {
      const sheets = readdirSync(style)
        .filter((file) => file.endsWith('.css'))
        .sort();
      const css = sheets.map((file) => readFileSync(path.join(style, file), 'utf8')).join('\n');
      const styleRef = this.emitFile({ type: 'asset', name: 'style.css', source: condense(css) });
      for (const file of readdirSync(assets)) {
        this.emitFile({ type: 'asset', fileName: file, source: readFileSync(path.join(assets, file)) });
      }
      const entry = Object.values(bundle).find((output) => output.type === 'chunk' && output.isEntry);
      if (entry?.type !== 'chunk') throw new Error('the dashboard has no entry');
      const html = readFileSync(path.join(directory, 'index.html'), 'utf8')
        .replace('%SCRIPT%', entry.fileName)
        .replace('%STYLE%', this.getFileName(styleRef))
        .replace('%PRELOAD%', entry.imports.map((file) => `<link rel="modulepreload" href="./${file}" />`).join(''));
      this.emitFile({ type: 'asset', fileName: 'index.html', source: html });
    },
  };
}

function condense(css: string): string {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replaceAll(';}', '}')
    .trim();
}
