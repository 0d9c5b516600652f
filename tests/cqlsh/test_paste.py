"""Pastes the schema of one server into another: the second describes it with the same bytes."""

import pathlib
import subprocess
import sys

import pytest
from cassandra.cluster import Cluster
from server import CQLSH_PATIENCE, Server

INTERNALS = "SCHEMA WITH INTERNALS"
CQLSH = pathlib.Path(sys.executable).parent / "cqlsh"

# Statements that end with a semicolon at the end of a line.
SCHEMA = r'''
CREATE KEYSPACE "Rich" WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} AND durable_writes = false;
CREATE KEYSPACE plain WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE KEYSPACE tablets WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1} AND tablets = {'enabled': true};
CREATE TYPE "Rich"."In ner" (a int, "B b" text, "select" frozen<list<int>>);
CREATE TYPE "Rich".zz_base (x int);
CREATE TYPE "Rich".middle (i frozen<"In ner">, b frozen<zz_base>, m map<text, frozen<zz_base>>);
CREATE TYPE "Rich".a_first (m frozen<middle>, t frozen<tuple<int, text>>, v vector<float, 2>);
CREATE TYPE plain.u (a text);
ALTER TYPE plain.u ADD b int;
ALTER TYPE plain.u RENAME a TO "A";
CREATE TABLE "Rich".every (p1 int, "P 2" text, c1 timeuuid, c2 date, s int static, "St" frozen<"In ner"> static,
    "Quoted ""name""" int, a ascii, b blob, bi bigint, bo boolean, d double, de decimal, du duration, f float, i inet, l list<int>,
    m map<text, frozen<set<int>>>, se set<frozen<tuple<int, text>>>, si smallint, t tuple<int, frozen<list<text>>>, te text, ti time,
    tiny tinyint, ts timestamp, u uuid, ud a_first, lu list<frozen<middle>>, v vector<float, 3>, vi varint, vt vector<text, 2>,
    fm frozen<map<text, frozen<"In ner">>>, PRIMARY KEY ((p1, "P 2"), c1, c2))
    WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC) AND comment = 'it''s rich; and has -- all' AND default_time_to_live = 86400
    AND gc_grace_seconds = 3600 AND additional_write_policy = 'ALWAYS' AND bloom_filter_fp_chance = 0.05
    AND caching = {'keys': 'NONE', 'rows_per_partition': '10'} AND crc_check_chance = 0.5 AND max_index_interval = 1024
    AND min_index_interval = 64 AND memtable_flush_period_in_ms = 1000 AND read_repair = 'NONE' AND speculative_retry = '99p'
    AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 100}
    AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 32};
CREATE CUSTOM INDEX "VecTors" ON "Rich".every (v) USING 'vector_index'
    WITH OPTIONS = {'similarity_function': 'euclidean', 'search_beam_width': '100', 'maximum_node_connections': '20'};
CREATE CUSTOM INDEX attached ON "Rich".every (te) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false', 'normalize': 'true'};
CREATE CUSTOM INDEX on_static ON "Rich".every (s) USING 'StorageAttachedIndex';
CREATE INDEX "Local1" ON "Rich".every ((p1, "P 2"), bi);
CREATE INDEX ON "Rich".every (keys(m));
CREATE TABLE "Rich".keyed (k frozen<a_first>, c frozen<"In ner">, d duration, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC);
CREATE TABLE "Rich"."Counters" (k int, c text, n counter, s counter static, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC);
CREATE TABLE "Rich".memory (k int PRIMARY KEY, "V" text) WITH in_memory = true AND comment = '';
CREATE TABLE "Rich".expires (k int, c int, due timestamp TTL, v text, PRIMARY KEY (k, c));
CREATE TABLE "Rich".logged (k int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'preimage': 'full', 'postimage': true, 'ttl': 600};
CREATE TABLE plain.small (k int PRIMARY KEY, fl frozen<list<int>>, m map<text, int>, v text, u u, w int);
CREATE INDEX "Keys" ON plain.small (keys(m));
CREATE INDEX entries_of_m ON plain.small (entries(m));
CREATE INDEX full_of_fl ON plain.small (full(fl));
CREATE TABLE plain.films (studio text, year int, id int, tags set<text>, plot vector<float, 3>, PRIMARY KEY ((studio, year), id));
CREATE CUSTOM INDEX ON plain.films ((studio, year), plot, id, tags) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'dot_product'};
CREATE TABLE plain.dropped (k int, c int, a int, b text, s int static, "D d" set<int>, v int, PRIMARY KEY (k, c));
ALTER TABLE plain.dropped DROP a USING TIMESTAMP 1000;
ALTER TABLE plain.dropped DROP s USING TIMESTAMP 3000;
ALTER TABLE plain.dropped DROP b USING TIMESTAMP 2000;
ALTER TABLE plain.dropped ADD b text;
ALTER TABLE plain.dropped DROP "D d" USING TIMESTAMP 4000;
ALTER TABLE plain.dropped RENAME k TO "key";
CREATE TABLE tablets."Camel" ("Key" text PRIMARY KEY, "from" uuid);
'''

KINDS = {"keyspace", "type", "table", "index"}


def cqlsh(server, *arguments):
    command = [CQLSH, *CQLSH_PATIENCE, server.host, str(server.cql_port), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    return result.stdout


def by_cqlsh(server, what):
    return cqlsh(server, "-e", f"DESCRIBE {what};")


def by_driver(server, what):
    """The statements, each with the place that it is of."""
    with Cluster([server.host], port=server.cql_port) as cluster:
        rows = cluster.connect().execute(f"DESCRIBE {what}")
        return [(row.keyspace_name, row.type, row.name, row.create_statement) for row in rows]


def execute(server, statements):
    with Cluster([server.host], port=server.cql_port) as cluster:
        session = cluster.connect()
        for statement in statements:
            session.execute(statement, timeout=60)


def statements(text):
    """The statements of a text in which each ends with the end of a line."""
    return [statement for statement in text.strip().split(";\n") if statement.strip()]


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("first") / "data") as first:
        execute(first, statements(SCHEMA))
        yield first


@pytest.fixture
def fresh(tmp_path):
    with Server(tmp_path / "data") as second:
        yield second


@pytest.mark.parametrize("what", [INTERNALS, "KEYSPACE plain WITH INTERNALS", "plain WITH INTERNALS"])
def test_internals_of_the_whole_are_those_of_each_table(described, what):
    whole = by_driver(described, what)
    tables = [row for row in whole if row[1] == "table"]
    assert ("plain", "dropped") in {(keyspace, name) for keyspace, _, name, _ in tables}
    for keyspace, _, name, text in tables:
        assert "WITH ID = " in text
        assert by_driver(described, f"TABLE {keyspace}.{name} WITH INTERNALS")[0][3] == text
    by_name = {(keyspace, name): text for keyspace, _, name, text in tables}
    dropped = by_name["plain", "dropped"].splitlines()
    assert "    a int," in dropped and "ALTER TABLE plain.dropped DROP a USING TIMESTAMP 1000;" in dropped
    printed = by_cqlsh(described, what).splitlines()
    assert "ALTER TABLE plain.dropped DROP a USING TIMESTAMP 1000;" in printed
    assert sum(") WITH ID = " in line for line in printed) == len(tables)


def test_nothing_internal_is_described_unless_asked_for(described):
    text = by_cqlsh(described, "SCHEMA")
    assert "ID = " not in text and "USING TIMESTAMP" not in text


@pytest.mark.parametrize("what", ["SCHEMA", INTERNALS])
def test_what_cqlsh_describes_is_pasted_into_cqlsh(described, fresh, tmp_path, what):
    text = by_cqlsh(described, what)
    (tmp_path / "schema.cql").write_text(text)
    cqlsh(fresh, "-f", str(tmp_path / "schema.cql"))
    assert by_cqlsh(fresh, what) == text
    assert by_driver(fresh, what) == by_driver(described, what)


@pytest.mark.parametrize("what", ["SCHEMA", INTERNALS])
def test_what_a_driver_reads_is_executed_by_a_driver(described, fresh, what):
    rows = by_driver(described, what)
    assert {kind for _, kind, _, _ in rows} == KINDS
    execute(fresh, [statement for *_, text in rows for statement in statements(text + "\n")])
    assert by_driver(fresh, what) == rows
    assert by_cqlsh(fresh, what) == by_cqlsh(described, what)


def test_each_table_alone_is_pasted_beside_its_types(described, fresh):
    """The parts make the whole: keyspaces, then types, then tables with their indexes."""
    whole = by_driver(described, "SCHEMA")
    for wanted in ({"keyspace"}, {"type"}):
        execute(fresh, [text for _, kind, _, text in whole if kind in wanted])
    for keyspace, kind, name, _ in whole:
        if kind == "table":
            # The names are quoted where they have to be.
            execute(fresh, [text for *_, text in by_driver(described, f"TABLE {keyspace}.{name}")])
    assert by_driver(fresh, "SCHEMA") == whole
