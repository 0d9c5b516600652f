"""Runs the example of typed mapping (examples/typed) and its own tests at a server: `make test-typed`."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/drivers"))

from conftest_server import server  # noqa: E402, F401

EXAMPLE = ROOT / "examples/typed"
PAGE = (ROOT / "docs/typed-mapping.md").read_text()
# The first run builds the program.
SECONDS = 900


def cargo(server, *arguments):  # noqa: F811
    environment = os.environ | {"ANNULUS_CQL": f"{server.host}:{server.cql_port}"}
    options = {"cwd": EXAMPLE, "env": environment, "timeout": SECONDS}
    return subprocess.run(["cargo", *arguments], capture_output=True, text=True, **options)


def in_one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def test_the_program_prints_what_the_page_shows_each_time(server):  # noqa: F811
    (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for _ in range(2):
        done = cargo(server, "run", "--quiet", "--locked")
        assert (done.returncode, done.stdout) == (0, shown), done.stderr[-3000:]


def test_what_is_known_at_run_time_alone(server):  # noqa: F811
    done = cargo(server, "test", "--quiet", "--locked", "--test", "run_time", "--", "--ignored")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    # A name that filters all tests out would pass.
    assert re.search(r"\b8 passed", done.stdout), done.stdout


def test_the_page_shows_the_sources():
    sources = in_one_line(" ".join(path.read_text() for path in sorted(EXAMPLE.glob("src/**/*.rs"))))
    shown = re.findall(r"^```rust\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(shown) >= 3
    assert [block for block in shown if in_one_line(block) not in sources] == []


def test_the_page_names_each_refusal_of_the_compiler():
    refused = {path.stem for path in EXAMPLE.glob("tests/refused/*.rs")}
    assert refused == {path.stem for path in EXAMPLE.glob("tests/refused/*.stderr")}
    assert refused == set(re.findall(r"`tests/refused/(\w+)\.rs`", PAGE))
