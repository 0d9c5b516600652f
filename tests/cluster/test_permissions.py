"""Tests a gateway before a Cassandra with users: a client may do through the gateway what it may do
without one, and nothing more.

The grants here are those that docs/gateway.md names, and no others.
"""

import pytest
from cassandra import ConsistencyLevel, InvalidRequest, Unauthorized
from cassandra.cluster import NoHostAvailable
from gateways import NETWORK, Gateway, answered_without_rows
from guarded import SUPERUSER, guarded_ring, logged_in
from ring import free_port
from server import eventually
from stores import Store

ROWS = 20
NEAREST_IDS = "SELECT id FROM shop.products ORDER BY v ANN OF [1, 0] LIMIT 5"
NEAREST = "SELECT id, name FROM shop.products ORDER BY v ANN OF [1, 0] LIMIT 5"
# The users. The password of each is its name.
USERS = ("gateway", "indexer", "owner", "writer", "late", "reader", "stranger")
GRANTS = """
    ALL PERMISSIONS ON KEYSPACE annulus TO gateway
    CREATE ON KEYSPACE shop TO gateway
    SELECT ON TABLE system_auth.role_permissions TO gateway
    SELECT ON KEYSPACE annulus TO indexer
    SELECT ON KEYSPACE shop TO indexer
    ALL PERMISSIONS ON KEYSPACE shop TO owner
    SELECT ON TABLE shop.products TO reader
    SELECT ON TABLE shop.products TO writer
    MODIFY ON TABLE shop.products TO writer
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The node with its users, and the PEM file of the authority that has signed its
    certificate."""
    with guarded_ring(tmp_path_factory.mktemp("guarded")) as (ring, authority):
        node = (ring.hosts[0], ring.port)
        with logged_in(node, SUPERUSER) as session:
            for keyspace in ("annulus", "shop"):
                session.execute(
                    f"CREATE KEYSPACE {keyspace} WITH replication = "
                    "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"
                )
            session.execute("CREATE TABLE shop.products (id int PRIMARY KEY, name text, v vector<float, 2>)")
            for user in USERS:
                session.execute(f"CREATE ROLE {user} WITH LOGIN = true AND PASSWORD = '{user}'")
            for grant in filter(None, map(str.strip, GRANTS.splitlines())):
                session.execute(f"GRANT {grant}")
        yield node, authority


@pytest.fixture(scope="module")
def store_address():
    return f"{NETWORK}.1:{free_port(f'{NETWORK}.1')}"


def gateway_before(node, directory, *settings, password="gateway", stores=()):
    """A gateway before a node, which logs in to it as the user `gateway`."""
    file = directory / "password"
    file.write_text(f"{password}\n")
    address = (f"{NETWORK}.1", free_port(f"{NETWORK}.1"))
    settings = ["--cassandra-user", "gateway", "--cassandra-password-file", file, *settings]
    return Gateway(address, node, [(node, address)], directory / "gateway.log", stores, settings)


@pytest.fixture(scope="module")
def metrics():
    """The address of the gateway's metrics."""
    return f"{NETWORK}.1:{free_port(f'{NETWORK}.1')}"


@pytest.fixture(scope="module")
def gateway(guarded, store_address, metrics, tmp_path_factory):
    """A gateway before the node, which talks to it by TLS."""
    node, authority = guarded
    settings = ["--cassandra-certificate-file", authority, "--answer-from-index", "--metrics-listen", metrics]
    stores = [f"http://{store_address}"]
    gateway = gateway_before(node, tmp_path_factory.mktemp("gateway"), *settings, stores=stores).start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def store(gateway, store_address, tmp_path_factory):
    directory = tmp_path_factory.mktemp("store")
    password = directory / "password"
    password.write_text("indexer")
    settings = ["--scylladb-username", "indexer", "--scylladb-password-file", password]
    with Store([gateway], directory, store_address, settings) as store:
        yield store


@pytest.fixture(scope="module")
def products(gateway, store):
    """An indexed table with rows, made by the owner."""
    with logged_in(gateway.address, "owner") as session:
        session.execute("CREATE CUSTOM INDEX products_v ON shop.products (v) USING 'vector_index'")
        insert = session.prepare("INSERT INTO shop.products (id, name, v) VALUES (?, ?, ?)")
        for number in range(ROWS):
            session.execute(insert, (number, f"product {number}", [1.0, number / ROWS]))
        eventually(lambda: store.serves("shop", "products_v", ROWS), seconds=60)


def refusal(session, statement, *values):
    with pytest.raises(Unauthorized) as raised:
        session.execute(statement, *values)
    return str(raised.value)


def test_the_owner_and_readers_find_neighbours(gateway, products):
    for user in ("owner", "reader"):
        with logged_in(gateway.address, user) as session:
            assert [row.id for row in session.execute(NEAREST)] == [0, 1, 2, 3, 4]
            nearest = session.prepare(NEAREST)
            assert [row.id for row in session.execute(nearest)] == [0, 1, 2, 3, 4]


def test_who_may_not_read_a_table_finds_none_of_it(gateway, products):
    with logged_in(gateway.address, "stranger") as session:
        expected = refusal(session, "SELECT id FROM shop.products WHERE id = 1")
        assert "User stranger has no SELECT permission on <table shop.products>" in expected
        assert refusal(session, NEAREST) == expected
        # The refusal does not depend on the rows that there are.
        assert refusal(session, NEAREST.replace("LIMIT 5", "LIMIT 1")) == expected
        # The reader's statement has the same id and was prepared in this gateway already.
        with logged_in(gateway.address, "reader") as reader:
            assert len(list(reader.execute(reader.prepare(NEAREST)))) == 5
        assert refusal(session, session.prepare(NEAREST)) == expected


def test_who_may_not_read_a_table_finds_none_of_it_without_rows_either(gateway, guarded, metrics, products):
    stranger = logged_in(gateway.address, "stranger", consistency=ConsistencyLevel.LOCAL_ONE)
    with logged_in(guarded[0], SUPERUSER) as superuser, stranger as session:
        expected = refusal(session, "SELECT id FROM shop.products WHERE id = 1")
        nearest = session.prepare(NEAREST_IDS)
        assert refusal(session, NEAREST_IDS) == refusal(session, nearest) == expected
        assert answered_without_rows(metrics) == 0
        superuser.execute("GRANT SELECT ON TABLE shop.products TO stranger")
        for query in (NEAREST_IDS, nearest):
            assert [row.id for row in session.execute(query)] == [0, 1, 2, 3, 4]
        assert answered_without_rows(metrics) == 2
        superuser.execute("REVOKE SELECT ON TABLE shop.products FROM stranger")

        def is_refused():
            try:
                return not session.execute(nearest)
            except Unauthorized as error:
                return str(error) == expected

        # The gateway asks again after two seconds.
        eventually(is_refused)


def test_masked_values_stay_masked_without_rows(gateway, guarded, metrics, store, products):
    at_one = {"consistency": ConsistencyLevel.LOCAL_ONE}
    owners, readers = (logged_in(gateway.address, user, **at_one) for user in ("owner", "reader"))
    with owners as owner, readers as reader:
        owner.execute("CREATE TABLE shop.masked (id int PRIMARY KEY, name text MASKED WITH DEFAULT, v vector<float, 2>)")
        owner.execute("CREATE CUSTOM INDEX masked_v ON shop.masked (v, name) USING 'vector_index'")
        owner.execute("INSERT INTO shop.masked (id, name, v) VALUES (1, 'secret', [1, 0])")
        owner.execute("GRANT SELECT ON TABLE shop.masked TO reader")
        eventually(lambda: store.serves("shop", "masked_v", 1), seconds=60)
        before = answered_without_rows(metrics)
        nearest = "SELECT {} FROM shop.masked ORDER BY v ANN OF [1, 0] LIMIT 1"
        assert owner.execute(nearest.format("name")).one().name == "secret"
        assert reader.execute(nearest.format("name")).one().name == "****"
        assert answered_without_rows(metrics) == before
        assert reader.execute(nearest.format("id")).one().id == 1
        assert answered_without_rows(metrics) == before + 1
        owner.execute("DROP TABLE shop.masked")


def test_an_index_needs_the_permission_to_alter_its_table(gateway, guarded, products):
    node, _ = guarded
    create = "CREATE CUSTOM INDEX {} ON shop.products ({}) USING '{}'"
    for user in ("reader", "writer", "stranger"):
        with logged_in(node, user) as direct, logged_in(gateway.address, user) as session:
            expected = refusal(direct, create.format("other", "name", "sai"))
            assert f"User {user} has no ALTER permission on <table shop.products>" in expected
            assert refusal(session, create.format("other", "v", "vector_index")) == expected
            assert refusal(session, session.prepare(create.format("other", "v", "vector_index"))) == expected
            assert refusal(session, "DROP INDEX shop.products_v") == expected
    with logged_in(gateway.address, "owner") as session:
        indexes = session.execute("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = 'shop'")
        assert [row.index_name for row in indexes] == ["products_v"]


def test_who_may_write_a_table_may_write_its_log(gateway, guarded, store, products):
    write = "INSERT INTO shop.products (id, name, v) VALUES (%s, 'new', [-1, 0])"
    log = "shop.products_scylla_cdc_log"
    # Nobody has granted the writer anything on the log.
    with logged_in(gateway.address, "writer") as session:
        session.execute(write, (100,))
        session.execute(f"{write} IF NOT EXISTS", (101,))
    # A user who is granted only the table after the index was made needs the log as well, and is
    # told so.
    with logged_in(guarded[0], "owner") as owner:
        owner.execute("GRANT MODIFY ON TABLE shop.products TO late")
    with logged_in(gateway.address, "late") as session:
        refused = f"User late has no MODIFY permission on <table {log}>"
        assert refused in refusal(session, write, (102,))
        assert refused in refusal(session, f"{write} IF NOT EXISTS", (102,))
    eventually(lambda: store.serves("shop", "products_v", ROWS + 2), seconds=60)
    with logged_in(gateway.address, "owner") as session:
        session.execute("DELETE FROM shop.products WHERE id IN (100, 101)")
    eventually(lambda: store.serves("shop", "products_v", ROWS), seconds=60)


def test_no_index_locks_anybody_out(gateway, guarded, products):
    """The gateway can't see here who may write to a table."""
    may_see = "SELECT ON TABLE system_auth.role_permissions {} gateway"
    with logged_in(guarded[0], SUPERUSER) as superuser, logged_in(gateway.address, "owner") as session:
        superuser.execute("CREATE TABLE shop.others (id int PRIMARY KEY, v vector<float, 2>)")
        superuser.execute(f"REVOKE {may_see.format('FROM')}")
        create = "CREATE CUSTOM INDEX others_v ON shop.others (v) USING 'vector_index'"
        with pytest.raises(InvalidRequest, match="GRANT SELECT ON system_auth.role_permissions"):
            session.execute(create)
        superuser.execute(f"GRANT {may_see.format('TO')}")
        session.execute(create)
        session.execute("DROP TABLE shop.others")


def test_who_may_not_write_writes_nothing(gateway, products):
    with logged_in(gateway.address, "reader") as session:
        for statement in (
            "INSERT INTO shop.products (id) VALUES (1)",
            "UPDATE shop.products SET name = 'x' WHERE id = 1 IF EXISTS",
            "DELETE FROM shop.products WHERE id = 1",
            "BEGIN BATCH DELETE FROM shop.products WHERE id = 1; APPLY BATCH",
            "TRUNCATE shop.products",
        ):
            assert "User reader has no MODIFY permission on <table shop.products" in refusal(session, statement)
            assert "User reader has no MODIFY permission on <table shop.products" in refusal(
                session, session.prepare(statement)
            )
        # The user does not learn either what depends on a column.
        altered = "ALTER TABLE shop.products DROP v"
        assert "User reader has no ALTER permission on <table shop.products" in refusal(session, altered)
        assert len(list(session.execute("SELECT id FROM shop.products"))) == ROWS
        assert len(list(session.execute(NEAREST))) == 5


def test_what_gateways_keep_is_for_nobody_else(gateway, products):
    with logged_in(gateway.address, "reader") as session:
        for table in ("annulus.vector_indexes", "annulus.gateways", "shop.products_scylla_cdc_log"):
            assert "User reader has no SELECT permission" in refusal(session, f"SELECT * FROM {table}")
        assert "User reader has no MODIFY permission" in refusal(session, "TRUNCATE annulus.vector_indexes")


def test_a_wrong_password_gets_the_nodes_own_answer(gateway, guarded):
    node, _ = guarded
    for user, password in (("reader", "wrong"), ("nobody", "at all")):
        errors = []
        for address in (node, gateway.address):
            with pytest.raises(NoHostAvailable) as raised, logged_in(address, user, password):
                pass
            [error] = raised.value.errors.values()
            errors.append(str(error).replace(str(address[1]), "PORT").replace(address[0], "HOST"))
        assert errors[0] == errors[1]
        assert "Provided username" in errors[0]


def test_a_gateway_with_a_wrong_password_refuses_clients_and_says_why(guarded, tmp_path):
    node, _ = guarded
    gateway = gateway_before(node, tmp_path, password="wrong")
    gateway.launch()
    try:
        why = "Provided username gateway and/or password are incorrect"
        eventually(lambda: why in (tmp_path / "gateway.log").read_text())
        with pytest.raises(NoHostAvailable, match=why), logged_in(gateway.address, "owner"):
            pass
    finally:
        gateway.kill()
