// Builds the dashboard: types from the service's OpenAPI file, one script, one style sheet, and a C++ source that
// holds all of it. Runs with Debian 12's nodejs.
//
// usage: node build.mjs [--openapi FILE] [--out FOLDER] [--types-only]

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import esbuild from 'esbuild';
import openapiTS, { astToString } from 'openapi-typescript';

const here = dirname(fileURLToPath(import.meta.url));
const { values: flags } = parseArgs({
  options: {
    openapi: { type: 'string', default: join(here, '..', 'openapi.yaml') },
    out: { type: 'string', default: join(here, 'dist') },
    'types-only': { type: 'boolean', default: false },
  },
});

// A field with a default may be left out of a request.
const types = astToString(await openapiTS(pathToFileURL(flags.openapi), { defaultNonNullable: false }));
writeFileSync(join(here, 'src', 'api', 'schema.d.ts'), types);
if (flags['types-only']) process.exit(0);

const bundle = await esbuild.build({
  entryPoints: [join(here, 'src', 'main.ts')],
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022'],
  outdir: '/assets',
  entryNames: '[name]-[hash]',
  write: false,
  legalComments: 'none',
  logLevel: 'warning',
});

/** What the service hands out: its path, media type, and whether its name changes with its content. */
const assets = bundle.outputFiles.map((file) => ({
  path: file.path.replaceAll('\\', '/'),
  type: file.path.endsWith('.css') ? 'text/css; charset=utf-8' : 'application/ecmascript',
  immutable: true,
  body: Buffer.from(file.contents),
}));
const named = (ending) => assets.find((asset) => asset.path.endsWith(ending)).path;
const page = readFileSync(join(here, 'src', 'index.html'), 'utf8')
  .replace('{{script}}', named('.js'))
  .replace('{{style}}', named('.css'));
assets.unshift({ path: '/index.html', type: 'text/html; charset=utf-8', immutable: false, body: Buffer.from(page) });
assets.push({
  path: '/favicon.svg',
  type: 'image/svg+xml',
  immutable: false,
  body: readFileSync(join(here, 'src', 'favicon.svg')),
});

/** Bytes as lines of a C++ string literal. Every byte is escaped in octal, which no digit after it can lengthen. */
function literal(bytes) {
  const lines = [];
  for (let from = 0; from < bytes.length; from += 64) {
    let line = '';
    for (const byte of bytes.subarray(from, from + 64)) line += '\\' + byte.toString(8).padStart(3, '0');
    lines.push(`    "${line}"`);
  }
  return lines.join('\n') || '    ""';
}

rmSync(flags.out, { recursive: true, force: true });
let source = '// Made by api/dashboard/build.mjs.\n#include "api/dashboard/assets.h"\n\nnamespace commtune::api {\nnamespace {\n\n';
const entries = [];
let total = 0;
for (const [index, asset] of assets.entries()) {
  const target = join(flags.out, asset.path);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, asset.body);
  // Texts are compressed as they are sent; the script is large enough to be compressed here.
  const packs = asset.path.endsWith('.js');
  const held = packs ? gzipSync(asset.body, { level: 9 }) : asset.body;
  source += `constexpr char kBody${index}[] =\n${literal(held)};\n`;
  entries.push(`    {"${asset.path}", "${asset.type}", "${packs ? 'gzip' : ''}", ${asset.immutable}, {kBody${index}, ${held.length}}},`);
  total += gzipSync(asset.body).length;

}
source += `\nconstexpr Asset kAssets[] = {\n${entries.join('\n')}\n};\n\n}  // namespace\n\n`;
source += 'std::span<const Asset> dashboard_assets() { return kAssets; }\n\n}  // namespace commtune::api\n';
writeFileSync(join(flags.out, 'assets.cc'), source);
console.log(`dashboard: ${total} B compressed`);
