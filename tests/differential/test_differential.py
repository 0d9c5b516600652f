"""Tests that Annulus answers recorded stories as Cassandra did, but for the differences that
meant.py tells. `make differential` runs many more of them beside a real Cassandra."""

import pytest
import recording
from meant import reason_for
from server import Server
from sides import Side, ends_story, is_equal

STORIES = recording.read()


@pytest.fixture(scope="module")
def annulus(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("differential") / "data", "--durability", "buffered") as server:
        yield Side(f"{server.host}:{server.cql_port}")


@pytest.mark.parametrize("number", range(len(STORIES)))
def test_answers_are_those_of_cassandra(annulus, number):
    annulus.begin()
    steps = STORIES[number]
    for at, (step, theirs) in enumerate(steps):
        ours = annulus.ask(step).result()
        if is_equal(theirs, ours):
            continue
        before = [earlier for earlier, _ in steps[:at]]
        reason, witness = reason_for(step, theirs, ours, before)
        assert reason and not witness, f"{step}\n--- Cassandra\n{theirs}\n--- Annulus\n{ours}"
        if ends_story(step, theirs, ours):
            return


def test_every_statement_of_the_language_is_recorded():
    steps = [step for story in STORIES for step, _ in story]
    assert len(steps) > 3_000
    words = ["IF NOT EXISTS", "GROUP BY", "TTL", "CONTAINS", "token(", "BATCH", "DISTINCT", "CREATE INDEX", "JSON"]
    words += ["ALTER TABLE t DROP", "ALTER TYPE", "TRUNCATE", "@page", "@bind", "PER PARTITION LIMIT", "counter", "u0"]
    missing = [word for word in words if not any(word in step for step in steps)]
    assert not missing
