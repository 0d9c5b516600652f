"""Tests CREATE CUSTOM INDEX: every option with its bounds, every spelling, every refusal."""

import json

import pytest
from cassandra import InvalidRequest

DEFAULTS = {
    "type": "vector",
    "dimensions": 3,
    "maximum_node_connections": 16,
    "construction_beam_width": 128,
    "search_beam_width": 64,
    "similarity_function": "COSINE",
    "quantization": "F32",
}


@pytest.fixture
def table(session):
    session.execute("CREATE TABLE t (p int, c int, s text STATIC, x text, n int, ints vector<int, 3>, v vector<float, 3>, w vector<float, 2>, PRIMARY KEY (p, c))")
    return session


def create(session, options=None, name="i", on="t (v)", using="vector_index"):
    text = f" WITH OPTIONS = {options}" if options else ""
    session.execute(f"CREATE CUSTOM INDEX {name} ON {on} USING '{using}'{text}")


def options_row(session, index="i"):
    row = session.execute(
        "SELECT kind, options FROM system_schema.indexes WHERE keyspace_name = %s AND table_name = 't' AND index_name = %s",
        (session.keyspace, index),
    ).one()
    return row and (row.kind, dict(row.options))


def info(server, session, index="i"):
    """The index service's own view of the options, as soon as it knows the index."""
    from server import eventually

    path = f"/api/v1/indexes/{session.keyspace}/{index}"
    status, text = eventually(lambda: (answer := server.http(path))[0] == 200 and answer)
    return json.loads(text)


@pytest.mark.parametrize(
    "options, effective",
    [
        ({}, {}),
        ({"similarity_function": "euclidean"}, {"similarity_function": "EUCLIDEAN"}),
        ({"similarity_function": "DOT_product"}, {"similarity_function": "DOT_PRODUCT"}),
        ({"maximum_node_connections": "1", "construction_beam_width": "1", "search_beam_width": "1"},
         {"maximum_node_connections": 1, "construction_beam_width": 1, "search_beam_width": 1}),
        ({"maximum_node_connections": "512", "construction_beam_width": "4096", "search_beam_width": "4096"},
         {"maximum_node_connections": 512, "construction_beam_width": 4096, "search_beam_width": 4096}),
        ({"quantization": "f32", "oversampling": "1.5", "rescoring": "true", "source_model": "ada002"}, {}),
        ({"oversampling": "100", "rescoring": "false"}, {}),
    ],
)  # fmt: skip
def test_options_take_effect_and_are_kept(server, table, options, effective):
    create(table, options or None)
    told = info(server, table)
    assert (told["keyspace"], told["index"], told["options"]) == (table.keyspace, "i", DEFAULTS | effective)
    kind, kept = options_row(table)
    assert kind == "CUSTOM" and len(kept.pop("index_version")) == 36
    assert kept == options | {"target": "v", "class_name": "vector_index"}


@pytest.mark.parametrize("quantization", ["f16", "bf16", "i8", "b1", "F16"])
def test_every_quantization_is_taken(server, table, quantization):
    create(table, {"quantization": quantization})
    assert info(server, table)["options"]["quantization"] == quantization.upper()


@pytest.mark.parametrize(
    "key, value, text",
    [
        ("similarity_function", "manhattan", "Invalid value in option 'similarity_function' for vector index"),
        ("maximum_node_connections", "0", r"is out of valid range \[1 - 512\]"),
        ("maximum_node_connections", "513", r"is out of valid range \[1 - 512\]"),
        ("construction_beam_width", "4097", r"is out of valid range \[1 - 4096\]"),
        ("search_beam_width", "0", r"is out of valid range \[1 - 4096\]"),
        ("search_beam_width", "1.5", "is not an integer"),
        ("search_beam_width", "many", "is not an integer"),
        ("maximum_node_connections", "99999999999999999999", "integer|range"),
        ("quantization", "f8", "Invalid value in option 'quantization' for vector index"),
        ("oversampling", "0.9", "is out of valid range"),
        ("oversampling", "100.1", "is out of valid range"),
        ("oversampling", "much", "is not a float"),
        ("oversampling", "nan", "float|range"),
        ("rescoring", "yes", "Invalid value in option 'rescoring' for vector index"),
        ("colour", "red", "Unsupported option colour for vector index"),
        ("index_version", "8e14e760-7fa8-11eb-bc66-000000000001", "Cannot specify index_version as a CUSTOM option"),
    ],
)
def test_bad_options_are_named_and_make_no_index(table, key, value, text):
    with pytest.raises(InvalidRequest, match=text) as error:
        create(table, {key: value})
    if "range" in text or " is not a" in text:
        assert f"Invalid value in option '{key}' for vector index" in error.value.args[0]
    assert options_row(table) is None


@pytest.mark.embedded("to Cassandra, these are its own indexes")
@pytest.mark.parametrize("using", ["vector_index", "VECTOR_INDEX", "sai", "SAI", "StorageAttachedIndex", "org.apache.cassandra.index.sai.StorageAttachedIndex"])
def test_spellings_of_the_class(table, using):
    create(table, using=using)
    assert options_row(table)[1]["class_name"] == "vector_index"


@pytest.mark.embedded("Cassandra has classes of its own, and words of its own for the others")
@pytest.mark.parametrize("using", ["org.apache.cassandra.index.SAI.StorageAttachedIndex", "hnsw", ""])
def test_other_classes_are_refused(table, using):
    with pytest.raises(InvalidRequest):
        create(table, using=using)
    assert options_row(table) is None


def test_the_word_custom_may_be_missing(table):
    table.execute("CREATE INDEX i ON t (v) USING 'vector_index'")
    assert options_row(table)[0] == "CUSTOM"


def test_several_named_indexes_on_a_column_but_one_without_a_name(table):
    create(table, name="i")
    create(table, name="j", options={"similarity_function": "euclidean"})
    with pytest.raises(InvalidRequest, match="already exists"):
        create(table, name="i", on="t (w)")
    table.execute("CREATE CUSTOM INDEX IF NOT EXISTS i ON t (w) USING 'vector_index'")
    assert options_row(table)[1]["target"] == "v"
    table.execute("CREATE CUSTOM INDEX ON t (w) USING 'vector_index'")
    with pytest.raises(InvalidRequest, match="duplicate of existing index"):
        table.execute("CREATE CUSTOM INDEX ON t (w) USING 'vector_index'")
    assert options_row(table, "t_w_idx")[1]["target"] == "w"


def test_the_version_changes_with_a_new_index_and_not_with_the_table(table):
    create(table)
    first = options_row(table)[1]["index_version"]
    table.execute("ALTER TABLE t ADD z int")
    assert options_row(table)[1]["index_version"] == first
    table.execute("DROP INDEX i")
    create(table)
    assert options_row(table)[1]["index_version"] != first


@pytest.mark.parametrize(
    "on, text",
    [
        ("t (x)", "Vector indexes are only supported on columns of vectors of floats"),
        ("t (ints)", "Vector indexes are only supported on columns of vectors of floats"),
        ("t (n)", "Vector indexes are only supported on columns of vectors of floats"),
        ("t (nothing)", "nothing"),
        ("nowhere (v)", "nowhere"),
        ("nokeyspace.t (v)", "nokeyspace"),
    ],
)
def test_what_cannot_be_indexed_is_refused(table, on, text):
    with pytest.raises(InvalidRequest, match=text):
        create(table, on=on)


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
@pytest.mark.parametrize(
    "cdc, text",
    [
        ("{'enabled': false}", "(?i)cdc"),
        ("{'enabled': true, 'ttl': 3600}", "CDC log must meet the minimal requirements"),
        ("{'enabled': true, 'delta': 'keys'}", "CDC log must meet the minimal requirements"),
    ],
)
def test_a_log_that_is_too_poor_is_refused(table, cdc, text):
    table.execute(f"ALTER TABLE t WITH cdc = {cdc}")
    with pytest.raises(InvalidRequest, match=text):
        create(table)


@pytest.mark.embedded("Cassandra's tables have no option cdc with a map")
def test_the_log_cannot_be_made_too_poor_while_there_is_an_index(table):
    create(table)
    for cdc in ["{'enabled': false}", "{'enabled': true, 'ttl': 3600}", "{'enabled': true, 'delta': 'keys'}"]:
        with pytest.raises(InvalidRequest, match="CDC|Vector Search"):
            table.execute(f"ALTER TABLE t WITH cdc = {cdc}")
    table.execute("ALTER TABLE t WITH cdc = {'enabled': true, 'ttl': 86400}")
    table.execute("DROP INDEX i")
    table.execute("ALTER TABLE t WITH cdc = {'enabled': false}")


@pytest.mark.embedded("Cassandra does not know that the column is indexed")
def test_the_indexed_column_stays(table):
    create(table)
    with pytest.raises(InvalidRequest, match="(?i)index"):
        table.execute("ALTER TABLE t DROP v")
    table.execute("DROP INDEX i")
    table.execute("ALTER TABLE t DROP v")


def test_the_drivers_know_the_index(cluster, table):
    create(table, {"similarity_function": "euclidean"})
    model = cluster.metadata.keyspaces[table.keyspace].tables["t"].indexes["i"]
    assert model.kind == "CUSTOM"
    assert model.index_options["target"] == "v" and model.index_options["class_name"] == "vector_index"
    assert model.index_options["similarity_function"] == "euclidean"
    text = model.as_cql_query()
    assert text.startswith("CREATE CUSTOM INDEX i ON") and "USING 'vector_index'" in text
    table.execute("DROP INDEX i")
    assert not cluster.metadata.keyspaces[table.keyspace].tables["t"].indexes
