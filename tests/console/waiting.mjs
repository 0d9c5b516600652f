// Waits of the tests for what a server does in the background.
const WAIT_MS = 90000;
const STEP_MS = 200;

// Waits until check() returns something, and returns it.
export async function until(what, check) {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not after ${WAIT_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}

// The index of the sample has all its films.
export function sampleServes(server) {
  return until('the sample is loaded', async () => {
    const index = await server.api('GET', '/api/v1/indexes/samples/movies_by_plot').catch(() => null);
    return index?.status === 'SERVING' && index.count === 10000 && index;
  });
}
