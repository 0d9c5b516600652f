// Makes ../web/vendor again from what `npm ci` installed: one file for each library, and their licences.
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, 'node_modules');
const vendor = join(here, '..', 'web', 'vendor');

// Files that are taken as they come.
const COPIES = [['htm/preact/standalone.module.js', 'preact-htm.js']];

// What the files contain: each name with the text of its licence.
const LICENCES = [
  ['htm, https://github.com/developit/htm', join(modules, 'htm/LICENSE')],
  ['preact, https://github.com/preactjs/preact (inside preact-htm.js)', join(here, 'preact-LICENSE')],
];

await mkdir(vendor, { recursive: true });
for (const [from, to] of COPIES) await copyFile(join(modules, from), join(vendor, to));
const texts = await Promise.all(
  LICENCES.map(async ([name, file]) => `${name}\n\n${(await readFile(file, 'utf8')).trim()}\n`),
);
await writeFile(join(vendor, 'LICENSES.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`));
