// Waits of the tests for what a server does in the background.
const WAIT_MS = 90000;
const STEP_MS = 200;

// Waits until check() returns something, `ms` milliseconds at most, and returns it.
export async function until(what, check, ms = WAIT_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > end) throw new Error(`${what}: not after ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
}
