'use strict';
// Runs named sections one after the other, each of which prints 'ok NAME' or 'failed NAME: why'.

async function run(sections) {
  let failed = 0;
  for (const [name, section] of Object.entries(sections)) {
    try {
      await section();
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`failed ${name}: ${String(error.stack || error).replace(/\s*\n\s*/g, ' | ')}`);
    }
  }
  return failed;
}

module.exports = { run };
