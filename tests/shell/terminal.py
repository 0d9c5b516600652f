"""A program at a pseudo-terminal, as a person has it before them."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

SECONDS = 30
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """Runs a command. What it writes is read as it comes, without the escapes of the terminal."""

    def __init__(self, command, environment, columns=100):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = environment | {"TERM": "xterm"}
        # A session of its own with this terminal, so that Ctrl-C reaches the program.
        attach = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # noqa: E731
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, preexec_fn=attach
        )
        os.close(slave)
        self.raw = b""  # all that it wrote
        self._seen = 0  # characters of the text that were expected already

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self):
        return ESCAPES.sub("", self.raw.decode(errors="replace"))

    def type(self, keys):
        os.write(self._master, keys.encode())

    def _read(self, deadline):
        """Reads more; False at the end."""
        ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more within {SECONDS} s after: {self.text[self._seen:]}"
        try:
            piece = os.read(self._master, 65536)
        except OSError:
            # Linux says so where the program has closed the terminal.
            piece = b""
        self.raw += piece
        return bool(piece)

    def expect(self, pattern):
        """Reads until the pattern is in what was not expected yet. Returns the text up to its end."""
        deadline = time.monotonic() + SECONDS
        while True:
            text = self.text
            if found := re.search(pattern, text[self._seen :]):
                begin, self._seen = self._seen, self._seen + found.end()
                return text[begin : self._seen]
            assert self._read(deadline), f"ended without {pattern}: {text[self._seen:]}"

    def ends(self):
        """Reads to the end. Returns the exit code."""
        deadline = time.monotonic() + SECONDS
        while self._read(deadline):
            pass
        return self._process.wait(timeout=SECONDS)
