"""Tests README's tour: run as one file without a pause, it gives the two right rows every time."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
TIMES = 20


def tour():
    """The statements of README's first SQL that creates something."""
    blocks = re.findall(r"```sql\n(.*?)```", README.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "CREATE KEYSPACE" in block]
    return [statement for part in block.split(";") if (statement := part.strip())]


@pytest.mark.embedded("through a gateway the index is built by other processes")
def test_the_tour_gives_the_right_rows_each_time(cluster):
    session = cluster.connect()
    statements = tour()
    assert statements[-1].startswith("SELECT") and "shop" in statements[0]
    for time in range(TIMES):
        keyspace, found = f"tour_{time}", []
        for statement in statements:
            rows = list(session.execute(re.sub(r"\bshop\b", keyspace, statement)))
            if "ORDER BY" in statement:
                found.append([row[0] for row in rows])
        assert found == [["tea", "cocoa"], ["spade"]], f"time {time}"
        session.execute(f"DROP KEYSPACE {keyspace}")
    session.shutdown()


@pytest.mark.embedded("through a gateway the index follows within a second")
def test_a_search_knows_what_was_acknowledged_before_it(session):
    session.execute("CREATE TABLE t (id int PRIMARY KEY, v vector<float, 2>)")
    session.execute("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}")
    insert = session.prepare("INSERT INTO t (id, v) VALUES (?, ?)")
    nearest = session.prepare("SELECT id FROM t ORDER BY v ANN OF ? LIMIT 1")
    for id in range(TIMES):
        session.execute(insert, (id, [float(id), 0.0]))
        assert session.execute(nearest, ([float(id), 0.0],)).one() == (id,)
    for id in reversed(range(1, TIMES)):
        session.execute(f"DELETE FROM t WHERE id = {id}")
        assert session.execute(nearest, ([float(id), 0.0],)).one() == (id - 1,)
