// Waits between a request and the next one of its kind.

// Waits so many milliseconds, and then until the page is seen: a page in a hidden tab requests
// nothing. Rejects once `signal` is aborted.
export async function pause(ms, signal) {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers();
  const look = () => document.visibilityState === 'visible' && resolve();
  const given = () => reject(signal.reason);
  const timer = setTimeout(() => {
    document.addEventListener('visibilitychange', look);
    look();
  }, ms);
  signal?.addEventListener('abort', given);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', look);
    signal?.removeEventListener('abort', given);
  }
}
