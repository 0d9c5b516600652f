"""A load that goes on while parts of a cluster die."""

import threading

from server import eventually


class Load:
    """Takes one step after another until the context ends. `step(number)` raises if it fails."""

    def __init__(self, step):
        self._step = step
        self._thread = threading.Thread(target=self._run)
        self._end = threading.Event()
        self.done, self.failures = 0, []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.is_set():
            try:
                self._step(self.done)
            except Exception as failure:
                self.failures.append(failure)
            self.done += 1

    def goes_on(self, steps=50):
        """Waits until `steps` more steps are done, none of which failed."""
        wanted = self.done + steps
        eventually(lambda: self.done >= wanted, seconds=120)
        assert not self.failures, self.failures[:3]
