"""Runs docs/tutorial-films.md from its first step to its last, as a reader would, in an empty folder.

Three things differ: the server is a test's, so the ports are others; the environment of the tests stands in for the
new one after that was made; and the page is opened in a browser.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from pages import running_page
from playwright.sync_api import Browser
from server import Server
from serving import free_port

TUTORIAL = ROOT / "docs/tutorial-films.md"
BLOCK = re.compile(r"(?:Save as `(?P<name>[^`]+)`:\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
STEP_SECONDS = 300


class Reader:
    """Someone with a shell, who does what the page says."""

    def __init__(self, home: pathlib.Path, port: int) -> None:
        self.folder, self._port = home / "films", port
        # pip finds everything there, and must not need the network.
        self.variables = {**os.environ, "HOME": str(home), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.variables.pop("PYTHONPATH", None)
        self.place = ROOT
        self.page: tuple[list[str], int] | None = None

    def save(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.replace("port=9042", f"port={self._port}"))

    def run(self, script: str) -> str:
        """Runs commands, and remembers where they ended and what they exported. Returns their output."""
        output = []
        for line in script.splitlines():
            if "streamlit run" in line:
                port = free_port()
                self.page = (line.replace("8501", str(port)).split(), port)
                continue
            shell = f"set -euo pipefail\n{line}\npwd >&3; env -0 >&3"
            output.append(self._shell(shell))
            if line.startswith("python3 -m venv"):
                self._stand_in()
        return "".join(output)

    def _shell(self, script: str) -> str:
        state = self.folder.parent / "state"
        with state.open("wb") as file:
            done = subprocess.run(
                ["bash", "-c", script.replace(">&3", f">&{file.fileno()}")],
                cwd=self.place,
                env=self.variables,
                pass_fds=[file.fileno()],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                timeout=STEP_SECONDS,
                check=False,
            )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        place, variables = state.read_text().split("\n", 1)
        self.place = pathlib.Path(place)
        self.variables = dict(entry.split("=", 1) for entry in variables.split("\0") if "=" in entry)
        return done.stdout

    def _stand_in(self) -> None:
        """Makes the new environment one that has the packages of the tests, so that pip finds all installed."""
        python = self.folder / "venv/bin/python"
        assert python.exists()
        for name in ("python", "pip"):
            program = self.folder / "venv/bin" / name
            program.unlink()
            program.write_text(f'#!/bin/sh\nexec {sys.executable} {"-m pip " if name == "pip" else ""}"$@"\n')
            program.chmod(0o755)


def blocks() -> list[re.Match[str]]:
    found = list(BLOCK.finditer(TUTORIAL.read_text()))
    assert len(found) == TUTORIAL.read_text().count("```") / 2
    return found


@pytest.fixture
def empty_server(tmp_path: pathlib.Path) -> Server:
    with Server(tmp_path / "data") as server:
        yield server


def test_each_step_of_the_tutorial_does_what_the_page_says(
    empty_server: Server, tmp_path: pathlib.Path, browser: Browser
) -> None:
    reader, output, printed = Reader(tmp_path, empty_server.cql_port), "", {}
    for block in blocks():
        kind, text = block["kind"], block["text"]
        if block["name"]:
            reader.save(block["name"], text)
        elif kind == "bash":
            output = reader.run(text)
            printed[text.split()[1]] = output
        else:
            assert kind == "text", f"a block of {kind} without a file"
            assert output == text
    assert re.match(r"0\.79\d  Mission to Mars \(2000\)\n", printed["find.py"])
    years = [int(year) for year in re.findall(r"\((\d{4})\)", printed["filtered.py"])]
    assert len(years) == 5 and min(years) >= 2000
    assert "30 Days of Night" in printed["filtered.py"]
    assert printed["hybrid.py"].startswith("Heartbeeps: ") and "<b>robots</b>" in printed["hybrid.py"]
    assert "Heartbeeps (1981)" in printed["like.py"].splitlines()[0]

    assert reader.page is not None, "the last step starts a page"
    command, port = reader.page
    with running_page(command, reader.place, port, tmp_path / "page.log", **reader.variables) as url:
        page = browser.new_page()
        page.goto(url)
        page.get_by_role("heading", name="Heartbeeps").wait_for(timeout=60_000)
        page.close()
