// Makes ../web/vendor again from what `npm ci` installed: one file for each library, and their licences,
// each text once.
import { copyFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, 'node_modules');
const vendor = join(here, '..', 'web', 'vendor');

// Files that are taken as they come.
const COPIES = [
  ['htm/preact/standalone.module.js', 'preact-htm.js'],
  ['uplot/dist/uPlot.min.css', 'uplot.css'],
];

// What the files contain: each name with the text of its licence.
const LICENCES = [
  ['htm, https://github.com/developit/htm', join(modules, 'htm/LICENSE')],
  ['preact, https://github.com/preactjs/preact (inside preact-htm.js)', join(here, 'preact-LICENSE')],
  ['uPlot, https://github.com/leeoniya/uPlot (uplot.js, uplot.css)', join(modules, 'uplot/LICENSE')],
];

// Bundles codemirror.js with all that it imports. Returns the folders of the packages within.
async function bundleEditor() {
  const { metafile } = await build({
    entryPoints: [join(here, 'codemirror.js')],
    outfile: join(vendor, 'codemirror.js'),
    absWorkingDir: here,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
    metafile: true,
  });
  const packages = Object.keys(metafile.inputs).map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  return [...new Set(packages.filter(Boolean))].sort();
}

// uPlot's own minified file is no module.
async function minifyCharts() {
  await build({
    entryPoints: [join(modules, 'uplot/dist/uPlot.esm.js')],
    outfile: join(vendor, 'uplot.js'),
    minify: true,
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
  });
}

// The name of a bundled package with the file of its licence.
async function licenceOf(name) {
  const file = (await readdir(join(modules, name))).find((one) => /^licen[cs]e/i.test(one));
  return [`${name} (inside codemirror.js)`, join(modules, name, file)];
}

await mkdir(vendor, { recursive: true });
for (const [from, to] of COPIES) await copyFile(join(modules, from), join(vendor, to));
await minifyCharts();
const bundled = await Promise.all((await bundleEditor()).map(licenceOf));
const texts = new Map();
for (const [name, file] of [...LICENCES, ...bundled]) {
  const text = (await readFile(file, 'utf8')).trim();
  texts.set(text, [...(texts.get(text) ?? []), name]);
}
const blocks = [...texts].map(([text, names]) => `${names.join('\n')}\n\n${text}\n`);
await writeFile(join(vendor, 'LICENSES.txt'), blocks.join(`\n${'-'.repeat(80)}\n\n`));
