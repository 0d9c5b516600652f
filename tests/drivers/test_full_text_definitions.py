"""Tests CREATE CUSTOM INDEX ... USING 'fulltext_index': every form, every refusal, and what shows of it."""

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from conftest import connect
from server import Server

ANALYZERS = ["standard", "simple", "whitespace", "english", "german", "french", "spanish", "italian", "portuguese", "russian", "cjk"]


@pytest.fixture
def table(session):
    session.execute(
        "CREATE TABLE t (tenant text, c text, body text, title ascii, note text STATIC, year int, tags set<text>, "
        "v vector<float, 3>, PRIMARY KEY (tenant, c))"
    )
    return session


def create(session, options=None, name="i", on="t (body)", using="fulltext_index"):
    text = f" WITH OPTIONS = {options}" if options else ""
    session.execute(f"CREATE CUSTOM INDEX {name} ON {on} USING '{using}'{text}")


def stored(session, index="i"):
    """The kind and the options of an index, without its version."""
    row = session.execute(
        "SELECT kind, options FROM system_schema.indexes WHERE keyspace_name = %s AND table_name = 't' AND index_name = %s",
        (session.keyspace, index),
    ).one()
    if row is None:
        return None
    options = dict(row.options)
    assert len(options.pop("index_version")) == 36
    return row.kind, options


@pytest.mark.parametrize(
    "on, target",
    [
        ("body", "body"),
        ("title", "title"),
        ("note", "note"),
        ("c", "c"),
        ("body, year, tags", '{"tc":"body","fc":["year","tags"]}'),
        ("(tenant), body", '{"tc":"body","pk":["tenant"]}'),
        ("(tenant), body, year", '{"tc":"body","pk":["tenant"],"fc":["year"]}'),
    ],
)
def test_every_form_of_the_list_is_kept(table, on, target):
    create(table, on=f"t ({on})")
    assert stored(table) == ("CUSTOM", {"target": target, "class_name": "fulltext_index"})
    table.execute("DROP INDEX i")
    assert stored(table) is None


@pytest.mark.parametrize("analyzer", [*ANALYZERS, "German"])
def test_every_analyzer_is_taken(table, analyzer):
    options = {"analyzer": analyzer, "positions": "false"}
    create(table, options)
    assert stored(table) == ("CUSTOM", options | {"target": "body", "class_name": "fulltext_index"})


@pytest.mark.parametrize(
    "options, text",
    [
        ({"analyzer": "klingon"}, "Invalid value in option 'analyzer' for full-text index: 'klingon'. Supported are case insensitive: standard, "),
        ({"analyzer": "chinese"}, "Invalid value in option 'analyzer' for full-text index: 'chinese'. Use cjk"),
        ({"analyzer": "japanese"}, "Use cjk"),
        ({"analyzer": "korean"}, "Use cjk"),
        ({"positions": "maybe"}, "Invalid value in option 'positions' for full-text index: 'maybe'. Supported are case insensitive: true, false"),
        ({"similarity_function": "cosine"}, "Unsupported option similarity_function for full-text index"),
        ({"index_version": "8e14e760-7fa8-11eb-bc66-000000000001"}, "Cannot specify index_version as a CUSTOM option"),
    ],
)  # fmt: skip
def test_bad_options_are_named_and_make_no_index(table, options, text):
    with pytest.raises(InvalidRequest) as error:
        create(table, options)
    assert text in error.value.args[0]
    assert stored(table) is None


@pytest.mark.parametrize(
    "on, text",
    [
        ("year", "Full-text indexes are only supported on columns of text, varchar or ascii (column year is of type int)"),
        ("tags", "Full-text indexes are only supported on columns of text, varchar or ascii (column tags is of type set<text>)"),
        ("v", "Full-text indexes are only supported on columns of text"),
        ("VALUES(tags)", "Full-text indexes are only supported on columns of text, varchar or ascii, not on values(tags)"),
        ("tenant", "Full-text indexes are not supported on partition key columns (column tenant)"),
        ("nothing", "No column definition found for column nothing"),
        ("body, v", "Unsupported full-text index filtering column v of type vector<float, 3>"),
        ("body, nothing", "No column definition found for column nothing"),
        ("(note), body", "Unsupported full-text index filtering column note: a static column can't be in the key of a local index"),
        ("(tags), body", "Unsupported full-text index filtering column tags"),
        ("body, body", "Duplicate column body in index target list"),
        ("(tenant, tenant), body", "Duplicate column definition in local full-text index: tenant"),
        ("body, (tenant)", "The key of a local full-text index comes first in the list, before the text column"),
        ("(tenant)", "An index needs a column to index"),
    ],
)  # fmt: skip
def test_columns_without_texts_and_wrong_lists_are_refused(table, on, text):
    with pytest.raises(InvalidRequest) as error:
        create(table, on=f"t ({on})")
    assert text in error.value.args[0]
    assert stored(table) is None


def test_a_vector_index_on_a_text_is_refused(table):
    with pytest.raises(InvalidRequest, match="Vector indexes are only supported on columns of vectors of floats"):
        create(table, using="vector_index")


def test_names_and_duplicates(table):
    table.execute("CREATE CUSTOM INDEX ON t (body) USING 'fulltext_index'")
    assert stored(table, "t_body_idx")[1]["target"] == "body"
    with pytest.raises(InvalidRequest, match="Index t_body_idx_1 is a duplicate of existing index t_body_idx"):
        table.execute("CREATE CUSTOM INDEX ON t (body) USING 'fulltext_index'")
    table.execute("CREATE CUSTOM INDEX IF NOT EXISTS ON t (body) USING 'fulltext_index'")
    assert stored(table, "t_body_idx_1") is None
    table.execute("CREATE CUSTOM INDEX ON t ((tenant), body) USING 'FullText_Index'")
    assert stored(table, "t_body_idx_1")[1]["class_name"] == "fulltext_index"
    create(table, name="another")
    create(table, name="nearest", on="t (v)", using="vector_index")
    for taken in ["another", "nearest"]:
        with pytest.raises(InvalidRequest, match=f"Index '{taken}' already exists"):
            create(table, name=taken, on="t (title)")
        table.execute(f"CREATE CUSTOM INDEX IF NOT EXISTS {taken} ON t (title) USING 'fulltext_index'")
    with pytest.raises(InvalidRequest, match="already exists"):
        create(table, name="another", on="t (v)", using="vector_index")
    for name in ["t_body_idx", "t_body_idx_1", "another", "nearest"]:
        table.execute(f"DROP INDEX {name}")
    with pytest.raises(InvalidRequest, match="another"):
        table.execute("DROP INDEX another")
    table.execute("DROP INDEX IF EXISTS another")


@pytest.mark.embedded("a gateway's refusals are in tests/cluster")
def test_the_indexed_column_and_its_filters_stay(table):
    create(table, on="t (body, year)")
    for column in ["body", "year"]:
        with pytest.raises(InvalidRequest, match=rf"Cannot drop column {column} because it has dependent secondary indexes \(i\)"):
            table.execute(f"ALTER TABLE t DROP {column}")
    table.execute("ALTER TABLE t DROP title")
    table.execute("DROP INDEX i")
    table.execute("ALTER TABLE t DROP body")


@pytest.mark.embedded("Cassandra cannot rename a column that its change log has")
def test_a_renamed_column_keeps_its_index(table):
    create(table, on="t ((tenant), c)")
    table.execute("ALTER TABLE t RENAME c TO place AND tenant TO owner")
    assert stored(table)[1]["target"] == '{"tc":"place","pk":["owner"]}'


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_the_change_log_stays_rich_enough(table):
    table.execute("ALTER TABLE t WITH cdc = {'enabled': false}")
    with pytest.raises(InvalidRequest, match="Cannot create the full-text index when CDC is explicitly disabled"):
        create(table)
    table.execute("ALTER TABLE t WITH cdc = {'enabled': true}")
    create(table)
    with pytest.raises(InvalidRequest, match="Cannot disable CDC when Full-Text Search is enabled"):
        table.execute("ALTER TABLE t WITH cdc = {'enabled': false}")
    with pytest.raises(InvalidRequest, match="CDC log must meet the minimal requirements of Full-Text Search"):
        table.execute("ALTER TABLE t WITH cdc = {'enabled': true, 'ttl': 3600}")


@pytest.mark.embedded("a gateway's DESCRIBE is in tests/cluster")
def test_descriptions_make_the_same_index_again(table):
    create(table, {"analyzer": "german"}, on="t ((tenant), body, year)")
    expected = (
        f"CREATE CUSTOM INDEX i ON {table.keyspace}.t((tenant), body, year) USING 'fulltext_index' WITH OPTIONS = {{'analyzer': 'german'}};"
    )
    [row] = table.execute("DESCRIBE INDEX i")
    assert row.create_statement == expected
    of_table = [row.create_statement for row in table.execute("DESCRIBE TABLE t") if row.type == "index"]
    assert of_table == [expected]
    before = stored(table)
    table.execute("DROP INDEX i")
    table.execute(expected)
    assert stored(table) == before


def test_the_drivers_know_the_index(cluster, table):
    create(table, {"analyzer": "german"})
    model = cluster.metadata.keyspaces[table.keyspace].tables["t"].indexes["i"]
    assert model.kind == "CUSTOM"
    assert model.index_options["target"] == "body" and model.index_options["class_name"] == "fulltext_index"
    text = model.as_cql_query()
    assert text.startswith("CREATE CUSTOM INDEX i ON") and "USING 'fulltext_index'" in text and "german" in text


@pytest.mark.embedded("Cassandra has no function bm25_words")
@pytest.mark.parametrize(
    "text, query",
    [("red  shoes", "red shoes"), ("C++ AND (tea)?", r"C\+\+ \AND \(tea\)\?"), ("", ""), (None, None)],
)
def test_bm25_words_escapes_every_operator(table, text, query):
    table.execute("INSERT INTO t (tenant, c, body) VALUES ('a', 'b', %s)", (text,))
    assert table.execute("SELECT bm25_words(body) AS words FROM t").one().words == query


@pytest.mark.embedded("starts a server of its own")
def test_each_permission_reads_the_tables_with_indexes_of_its_class(tmp_path):
    (tmp_path / "superuser").write_text("ada\nlovelace")

    def login(server, role, password):
        return connect(server, auth_provider=PlainTextAuthProvider(role, password))

    with Server(tmp_path / "data", "--login", "--superuser-file", tmp_path / "superuser") as server:
        with login(server, "ada", "lovelace") as cluster:
            admin = cluster.connect()
            admin.execute("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            for name in ["texts", "vectors", "both", "neither"]:
                admin.execute(f"CREATE TABLE s.{name} (id int PRIMARY KEY, body text, v vector<float, 2>)")
            for name in ["texts", "both"]:
                create(admin, name=f"{name}_words", on=f"s.{name} (body)")
            for name in ["vectors", "both"]:
                create(admin, name=f"{name}_nearest", on=f"s.{name} (v)", using="vector_index")
            reads = {"text": {"texts", "both"}, "vector": {"vectors", "both"}}
            for kind in reads:
                admin.execute(f"CREATE ROLE {kind}_indexer WITH LOGIN = true AND PASSWORD = 'secret'")
                admin.execute(f"GRANT {kind.upper()}_SEARCH_INDEXING ON ALL KEYSPACES TO {kind}_indexer")
            for kind, may_read in reads.items():
                with login(server, f"{kind}_indexer", "secret") as indexers:
                    indexer = indexers.connect()
                    for name in ["texts", "vectors", "both", "neither"]:
                        logs = [] if name == "neither" else [f"{name}_scylla_cdc_log"]
                        for read in [name, *logs]:
                            if name in may_read:
                                indexer.execute(f"SELECT * FROM s.{read}")
                                continue
                            with pytest.raises(Unauthorized, match=f"User {kind}_indexer has no SELECT permission"):
                                indexer.execute(f"SELECT * FROM s.{read}")
                    indexer.execute("SELECT * FROM system.group0_history")
                    with pytest.raises(Unauthorized):
                        indexer.execute("INSERT INTO s.both (id) VALUES (1)")
            # The permission goes with the index.
            admin.execute("DROP INDEX s.both_words")
            with login(server, "text_indexer", "secret") as indexers, pytest.raises(Unauthorized):
                indexers.connect().execute("SELECT * FROM s.both")
