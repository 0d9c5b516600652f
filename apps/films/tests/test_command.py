"""The command that `make films` runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from annulus_films.database import FilmDatabase
from pages import APPLICATION
from server import Server
from serving import free_port


def find(port: int, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(APPLICATION), str(APPLICATION.parent / "embedder")])
    variables = {**os.environ, "PYTHONPATH": path, "FILMS_PORT": str(port)}
    command = [sys.executable, "-m", "annulus_films", *arguments]
    return subprocess.run(command, env=variables, input=typed, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.usefixtures("database")
def test_a_query_prints_films_with_the_words_that_were_found(server: Server) -> None:
    done = find(server.cql_port, "find", "a lonely robot learns to love")
    assert done.returncode == 0, done.stderr
    first = done.stdout.strip().splitlines()[0]
    assert first.startswith("Heartbeeps (1981)") and "words: robots, love" in first


@pytest.mark.usefixtures("database")
def test_sentences_may_be_typed_until_an_empty_line(server: Server) -> None:
    done = find(server.cql_port, "find", "--limit", "1", "--genre", "Horror", typed="a giant shark\nvampires\n\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" · cosine ") == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["find", ""], "say what the film should be about"),
        (["find", "x", "--limit", "0"], "greater than or equal to 1"),
    ],
)
@pytest.mark.usefixtures("database")
def test_a_query_without_a_meaning_is_one_line(server: Server, arguments: list[str], says: str) -> None:
    done = find(server.cql_port, *arguments)
    assert done.returncode == 1
    assert says in done.stderr.splitlines()[-1] and "Traceback" not in done.stderr


def test_without_a_server_the_remedy_is_printed() -> None:
    done = find(free_port(), "find", "x")
    assert done.returncode == 1
    assert "Start one with: make run" in done.stderr and "Traceback" not in done.stderr


def test_no_statement_reads_more_than_it_needs(database: FilmDatabase) -> None:
    assert database.embeddings([]) == {}
    assert [film.id for film in database.films([3, 1])] == [1, 3]
