"""Free ports, programs that serve HTTP, and Debian's Chromium: what tests of several applications start."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence

import pytest
from playwright.sync_api import Browser, sync_playwright
from server import eventually

START_SECONDS, STOP_SECONDS = 180, 15


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def serving(
    command: Sequence[str],
    port: int,
    health: str,
    log: pathlib.Path,
    environment: Mapping[str, str],
    directory: pathlib.Path | None = None,
) -> Iterator[str]:
    """Yields the URL of a program that serves a port, once the path `health` answers. Ends it by its id afterwards."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}/"

    def answers() -> bool:
        assert process.poll() is None, log.read_text()
        with contextlib.suppress(OSError), urllib.request.urlopen(url + health, timeout=5):
            return True
        return False

    try:
        eventually(answers, seconds=START_SECONDS, every=0.1)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's: playwright's own is a download that no registry of packages has. Skips tests where there is none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
