import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { HttpRefusal } from './route.ts';

export interface StaticFiles {
  send(request: IncomingMessage, response: ServerResponse, requestPath: string): Promise<void>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

/** Scripts and styles come only from this hub, and session output is never executed. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** Pictures and fonts are compressed already. */
const COMPRESSIBLE = /^text\/|json|svg/;
const GZIP = /^\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*$).*)?$/i;

/** A file name that contains a hash of its contents never changes meaning. */
const HASHED = /[.-][A-Za-z0-9_-]{8,}\.\w+$/;

const NOT_BUILT = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>claude-code-mcp</title>
<h1>Dashboard not found</h1>
<p>The hub is running, but its dashboard was not built. Run <code>npm run build</code>, or reinstall the package.</p>
</html>
`;

/** The dashboard's files. Only existing ones, looked up by name: no path leads elsewhere. */
export function staticFiles(directory: string | undefined, isSecure: boolean): StaticFiles {
  const headers = {
    ...PAGE_HEADERS,
    ...(isSecure && { 'strict-transport-security': 'max-age=31536000' }),
  };
  const sendText = (response: ServerResponse, status: number, html: string, withBody: boolean): void => {
    response.writeHead(status, {
      ...headers,
      'content-type': TYPES['.html'],
      'content-length': Buffer.byteLength(html),
      'cache-control': 'no-store',
    });
    response.end(withBody ? html : undefined);
  };
  return {
    async send(request, response, requestPath) {
      const withBody = request.method !== 'HEAD';
      const names = directory === undefined ? [] : await namesIn(directory);
      if (directory === undefined || !names.includes('index.html'))
        return sendText(response, requestPath === '/' ? 503 : 404, NOT_BUILT, withBody);
      const name = requestPath.slice(1);
      // Views have their own paths, which only the page knows; a name with an extension is a file.
      const found = names.includes(name) ? name : /\.\w+$/.test(name) ? undefined : 'index.html';
      if (found === undefined) throw new HttpRefusal(404, 'NOT_FOUND', 'There is nothing here.');
      const file = path.join(directory, ...found.split('/'));
      const { size, mtime } = await stat(file);
      const type = TYPES[path.extname(found)] ?? 'application/octet-stream';
      const isCompressible = COMPRESSIBLE.test(type);
      const accepted = (request.headers['accept-encoding'] ?? '').split(',');
      const isGzip = isCompressible && accepted.some((encoding) => GZIP.test(encoding));
      const etag = `"${size.toString(36)}-${mtime.getTime().toString(36)}${isGzip ? '-gzip' : ''}"`;
      const caching = {
        etag,
        ...(isCompressible && { vary: 'accept-encoding' }),
        'cache-control': HASHED.test(found) ? 'public, max-age=31536000, immutable' : 'no-cache',
      };
      if (request.headers['if-none-match'] === etag) {
        response.writeHead(304, { ...headers, ...caching });
        response.end();
        return;
      }
      const length = isGzip ? { 'content-encoding': 'gzip' } : { 'content-length': size };
      response.writeHead(200, { ...headers, ...caching, 'content-type': type, ...length });
      if (!withBody) {
        response.end();
        return;
      }
      const content = createReadStream(file);
      const sent = isGzip ? pipeline(content, createGzip(), response) : pipeline(content, response);
      await sent.catch(() => response.destroy());
    },
  };
}

/** Files in it and in its folders, with slashes; links are not followed. */
async function namesIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(directory, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'));
}
