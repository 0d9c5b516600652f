"""Tests definitions that gateways of an earlier version made."""

from clients import client_of_one
from definitions import CREATE, connect, defined, make_anew
from gateways import NETWORK, Gateway
from ring import free_port

KEYSPACE = "older"


def test_columns_that_came_later_are_added_and_used(gateway, tmp_path):
    host = f"{NETWORK}.10"
    address = host, free_port(host)
    upgraded = Gateway(address, gateway.node, [], tmp_path / "gateway.log", settings=["--index-keyspace", KEYSPACE])
    with client_of_one(gateway.node) as cluster:
        direct = cluster.connect()
        with upgraded, connect(upgraded) as cluster:
            session = cluster.connect()
            make_anew(session)
            session.execute(CREATE.format("ours", "vectors.t"))
        # An earlier version would have left the table like this.
        direct.execute(f"ALTER TABLE {KEYSPACE}.vector_indexes DROP (truncates, class_name)")
        with upgraded, connect(upgraded) as cluster:
            session = cluster.connect()
            # Without a class it is a vector index.
            assert set(defined(session)) == {"ours"}
            session.execute("INSERT INTO vectors.t (part, number, v) VALUES (1, 'one', [1, 1])")
            # The column is for notes of TRUNCATEs, which are gone afterwards.
            session.execute("TRUNCATE vectors.t")
            assert not list(session.execute("SELECT * FROM vectors.t"))
            [definition] = direct.execute(f"SELECT index_name, truncates FROM {KEYSPACE}.vector_indexes")
            assert definition == ("ours", None)
            session.execute("DROP KEYSPACE vectors")
        direct.execute(f"DROP KEYSPACE {KEYSPACE}")
