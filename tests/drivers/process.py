"""Starts and stops the real binary for tests."""

import os
import pathlib
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("ANNULUS_BINARY", ROOT / "target/debug/annulus"))
START_SECONDS = 30
STOP_SECONDS = 15


class Process:
    """A process of `annulus` with some arguments.

    It prints a line on stdout that matches `ready` when it is ready. Its other output goes to the
    file `log`."""

    start_seconds = START_SECONDS

    def __init__(self, arguments, ready, log, directory=None):
        self._command, self._ready, self._directory = [BINARY, *arguments], ready, directory
        self._log = pathlib.Path(log)
        self._process = None
        self.printed = []  # the lines on stdout up to the one that says it is ready

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.is_running:
            self.stop()

    @property
    def pid(self):
        return self._process.pid

    @property
    def is_running(self):
        return self._process is not None and self._process.poll() is None

    def launch(self):
        """Starts the process without waiting."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self._directory
            )

    def start(self):
        """Starts the process and waits until it is ready."""
        self.launch()
        timer = threading.Timer(self.start_seconds, self._process.kill)
        timer.start()
        try:
            self.printed.clear()
            for line in self._process.stdout:
                self.printed.append(line)
                if ready := self._ready.search(line):
                    self.became_ready(*ready.groups())
                    return self
        finally:
            timer.cancel()
        raise AssertionError(f"no ready line; exit code {self._process.wait()}; end of the log:\n{self.log()[-2000:]}")

    def became_ready(self, *_):
        """Called with the groups of the line that matched `ready`."""

    def log(self):
        return self._log.read_text()

    def kill(self):
        """Ends the process by SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self):
        """Ends the process by SIGTERM. Returns the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how):
        self._process.send_signal(how)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise AssertionError(f"still running {STOP_SECONDS} s after signal {how}") from None
        finally:
            self._process.stdout.close()
