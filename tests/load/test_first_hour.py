"""Runs the five commands of README for a Parquet file, pasted as they are, in one shell."""

import json
import os
import pathlib
import re
import subprocess
import time

import numpy
import pyarrow
import pyarrow.parquet
import pytest
from process import BINARY, ROOT

ROWS = int(os.environ.get("FIRST_HOUR_ROWS", "3000"))
DIMENSIONS = 384
SUBJECTS = ["robots", "tea", "rivers", "painters", "trains", "bees", "castles", "storms"]


def five_commands():
    """The commands of README, the vector in them whole."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"in five commands:\n\n((?:    .*\n)+)", text).group(1)
    return [line.removeprefix("    ") for line in block.splitlines()]


def free_ports(count):
    import socket

    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture
def documents(tmp_path):
    """Writes documents.parquet. Returns subjects, years and vectors of its rows."""
    made = numpy.random.default_rng(7)
    centres = made.normal(size=(len(SUBJECTS), DIMENSIONS))
    subjects = made.integers(len(SUBJECTS), size=ROWS)
    vectors = centres[subjects] + 0.7 * made.normal(size=(ROWS, DIMENSIONS))
    vectors = (vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)).astype(numpy.float32)
    years = made.integers(1950, 2026, size=ROWS)
    bodies = [f"Text {row} about {SUBJECTS[subject]}, seen again." for row, subject in enumerate(subjects)]
    table = pyarrow.table(
        {
            "id": numpy.arange(ROWS),
            "year": years,
            "body": bodies,
            "embedding": pyarrow.FixedSizeListArray.from_arrays(vectors.reshape(-1), DIMENSIONS),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "documents.parquet", compression="zstd")
    return subjects, years, vectors


def test_a_file_is_searched_by_words_and_vectors_in_five_commands(tmp_path, documents):
    subjects, years, vectors = documents
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "annulus").symlink_to(pathlib.Path(BINARY).resolve())
    cql, http = free_ports(2)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANNULUS_")}
    environment |= {
        "PATH": f"{programs}:{environment['PATH']}",
        "ANNULUS_CQL_PORT": str(cql),
        "ANNULUS_HTTP_PORT": str(http),
        "ANNULUS_CQL": f"127.0.0.1:{cql}",
    }
    query = vectors[11]
    commands = five_commands()
    assert len(commands) == 5 and commands[0] == "annulus serve &"
    vector = "[" + ", ".join(f"{element:.6f}" for element in query) + "]"
    script = ["set -e", "trap 'kill $server; wait $server' EXIT", commands[0], "server=$!", *commands[1:3]]
    for command in commands[3:]:
        assert command.startswith("annulus shell -e ")
        script.append(command.replace("[0.1, ...]", vector).replace("annulus shell", "annulus shell --json"))
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    answers = [json.loads(line)["id"] for line in done.stdout.splitlines() if line.startswith("{")]
    by_words, by_vector = answers[:5], answers[5:]
    assert {SUBJECTS[subjects[row]] for row in by_words} == {"robots"} and len(set(by_words)) == 5
    similar = numpy.where(years > 2000, vectors @ query, -2)
    assert by_vector == list(numpy.argsort(-similar)[:5]), "the search has a filter, so it is exact here"
    print(f"{ROWS:,} documents: {seconds:.1f} s from `annulus serve` to the end of the fifth command")
