"""The C++ driver by its Python binding: main.py HOST:PORT KEYSPACE OTHERS, where OTHERS is a JSON
object of servers beside the first: {login: {address, user, password}, tls: {address, ca}}.

Each section prints 'ok NAME' or 'failed NAME: why'."""

import asyncio
import json
import sys
from datetime import date, datetime, time, timezone
from decimal import Decimal

import acsylla
from acsylla import errors

UTC = timezone.utc
EDGES = {
    "ascii": ["", "a~"],
    "bigint": [-(2**63), 2**63 - 1],
    "blob": [b"", b"\x00\xff" * 50_000],
    "boolean": [True, False],
    "date": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)],
    "decimal": [Decimal("-1.5"), Decimal("123456789012345678901234567890.1")],
    "double": [1.7976931348623157e308, 5e-324, float("inf")],
    # The driver has no type of its own for these: it reads and binds texts.
    "duration": ["1ns", "-1y2mo3d4h5m6s7ms8us9ns", "178956970y7mo2147483647d2562047h47m16s854ms775us807ns"],
    "float": [3.4028234663852886e38, -0.5],
    "inet": ["0.0.0.0", "255.255.255.255", "2001:db8::1"],
    "int": [-(2**31), 2**31 - 1],
    "smallint": [-(2**15), 2**15 - 1],
    "text": ["", "ä€𝄞", "x" * 70_000],
    "time": [time(0, 0), time(23, 59, 59, 999_999)],
    "timestamp": [datetime(1970, 1, 1, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 8, 5_000, tzinfo=UTC)],
    "timeuuid": ["00000000-0000-1000-8080-808080808080"],
    "tinyint": [-128, 127],
    "uuid": ["ffffffff-ffff-4fff-bfff-ffffffffffff"],
    # The driver leaves these to the application as bytes.
    "varint": [number.to_bytes(14, "big", signed=True) for number in (-(2**100), 0, 128, -129)],
    "list<int>": [[1, 1, -1]],
    "set<text>": [{"a", "b"}],
    "map<text, int>": [{"a": 1, "b": -1}],
    "tuple<int, text>": [(1, "a")],
}


def divided(address):
    host, port = address.rsplit(":", 1)
    return {"contact_points": [host], "port": int(port), "log_level": "disabled"}


async def connected(address, **options):
    return await acsylla.create_cluster(**divided(address), **options).create_session()


class Client:
    def __init__(self, session, keyspace, address, others):
        self.session, self.keyspace, self.address, self.others = session, keyspace, address, others

    async def execute(self, text):
        return await self.session.execute(acsylla.create_statement(text))

    async def prepared(self, text, *values, **options):
        prepared = await self.session.create_prepared(text)
        statement = prepared.bind(**options)
        statement.bind_list(list(values))
        return await self.session.execute(statement)

    async def fails(self, text, error):
        try:
            await self.execute(text)
        except error as raised:
            return str(raised)
        raise AssertionError(f"{text} is no error")


async def metadata(client):
    await client.execute("CREATE TYPE place (street text, zip int)")
    await client.execute(
        "CREATE TABLE described (a int, c timeuuid, d frozen<place>, s text static, PRIMARY KEY (a, c)) "
        "WITH CLUSTERING ORDER BY (c DESC)"
    )
    await client.execute("CREATE INDEX described_d ON described (d)")
    async with asyncio.timeout(20):
        while "described_d" not in client.session.get_metadata().get_indexes(client.keyspace):
            await asyncio.sleep(0.02)
    known = client.session.get_metadata()
    assert known.get_version()[0] >= 4, known.get_version()
    assert known.get_tables(client.keyspace) == ["described"], known.get_tables(client.keyspace)
    table = known.get_table_meta(client.keyspace, "described")
    assert {column.name for column in table.columns} == {"a", "c", "d", "s"}
    assert known.get_user_types(client.keyspace) == ["place"]


async def schema_events(client):
    """The driver has no callback for them: by them it keeps its metadata up to date."""

    async def learns(what):
        async with asyncio.timeout(20):
            while not what(client.session.get_metadata()):
                await asyncio.sleep(0.02)

    def columns(known):
        if "told" not in known.get_tables(client.keyspace):
            return None
        return {column.name for column in known.get_table_meta(client.keyspace, "told").columns}

    other = await connected(client.address)
    await other.use_keyspace(client.keyspace)
    for text, wanted in (
        ("CREATE TABLE told (p int PRIMARY KEY)", {"p"}),
        ("ALTER TABLE told ADD v text", {"p", "v"}),
        ("DROP TABLE told", None),
    ):
        await other.execute(acsylla.create_statement(text))
        await learns(lambda known: columns(known) == wanted)
    await other.execute(acsylla.create_statement("CREATE TYPE told (n int)"))
    await learns(lambda known: "told" in known.get_user_types(client.keyspace))
    await other.close()


def of_type(number, kind, values):
    async def there_and_back(client):
        table = f"values_{number}"
        await client.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v {kind})")
        for id, value in enumerate([*values, None]):
            await client.prepared(f"INSERT INTO {table} (id, v) VALUES (?, ?)", id, value)
            result = await client.prepared(f"SELECT v FROM {table} WHERE id = ?", id)
            read = result.first().column_value("v")
            same = str(read) == str(value) if isinstance(value, (str, Decimal)) else read == value
            assert same, (value, read)

    return there_and_back


async def user_types(client):
    await client.execute("CREATE TABLE placed (id int PRIMARY KEY, at frozen<place>, others list<frozen<place>>)")
    place = {"street": "s", "zip": 1}
    await client.prepared("INSERT INTO placed (id, at, others) VALUES (?, ?, ?)", 1, place, [place, place])
    row = (await client.execute("SELECT at, others FROM placed")).first()
    assert (row.column_value("at"), row.column_value("others")) == (place, [place, place])


async def batches(client):
    await client.execute("CREATE TABLE batched (p int PRIMARY KEY, v text)")
    prepared = await client.session.create_prepared("INSERT INTO batched (p, v) VALUES (?, ?)")
    for batch in (acsylla.create_batch_logged(), acsylla.create_batch_unlogged()):
        for p in range(4):
            statement = prepared.bind()
            statement.bind_list([p, f"v{p}"])
            batch.add_statement(statement)
        batch.add_statement(acsylla.create_statement("DELETE FROM batched WHERE p = 9"))
        await client.session.execute_batch(batch)
    assert (await client.execute("SELECT p FROM batched")).count() == 4


async def conditions(client):
    await client.execute("CREATE TABLE conditional (p int PRIMARY KEY, v text)")
    insert = "INSERT INTO conditional (p, v) VALUES (?, ?) IF NOT EXISTS"
    first = await client.prepared(insert, 1, "one")
    assert first.first().column_value("[applied]") is True
    second = (await client.prepared(insert, 1, "two")).first()
    assert (second.column_value("[applied]"), second.column_value("v")) == (False, "one")
    update = await client.prepared("UPDATE conditional SET v = ? WHERE p = ? IF v = ?", "x", 1, "one")
    assert update.first().column_value("[applied]") is True


async def counters(client):
    await client.execute("CREATE TABLE counted (p int PRIMARY KEY, n counter)")
    add = "UPDATE counted SET n = n + ? WHERE p = ?"
    await asyncio.gather(*(client.prepared(add, 2, 1) for _ in range(50)))
    batch = acsylla.create_batch_counter()
    batch.add_statement(acsylla.create_statement("UPDATE counted SET n = n - 1 WHERE p = 1"))
    await client.session.execute_batch(batch)
    assert (await client.execute("SELECT n FROM counted")).first().column_value("n") == 99


async def paging(client):
    await client.execute("CREATE TABLE paged (p int, c int, PRIMARY KEY (p, c))")
    for c in range(105):
        await client.prepared("INSERT INTO paged (p, c) VALUES (1, ?)", c)
    prepared = await client.session.create_prepared("SELECT c FROM paged WHERE p = ?")
    state, seen = None, []
    for _ in range(20):
        statement = prepared.bind(page_size=10)
        statement.bind(0, 1)
        if state is not None:
            statement.set_page_state(state)
        result = await client.session.execute(statement)
        seen += [row.column_value("c") for row in result]
        if not result.has_more_pages():
            break
        state = result.page_state()
    assert seen == list(range(105)), seen


async def fails(client):
    assert "line 1:" in await client.fails("SELEC", errors.CassErrorServerSyntaxError)
    missing = await client.fails("SELECT * FROM missing", errors.CassErrorServerInvalidQuery)
    assert "table missing does not exist" in missing, missing
    await client.execute("CREATE TABLE twice (p int PRIMARY KEY)")
    await client.fails("CREATE TABLE twice (p int PRIMARY KEY)", errors.CassErrorServerAlreadyExists)
    await client.fails("DROP KEYSPACE system", errors.CassErrorServerUnauthorized)


async def vector_search(client):
    """The driver has no type for vectors: they are written and asked for as literals."""
    await client.execute("CREATE TABLE films (id int PRIMARY KEY, v vector<float, 2>)")
    await client.execute("CREATE CUSTOM INDEX films_v ON films (v) USING 'vector_index'")
    for id, vector in ((1, "[1, 0]"), (2, "[0, 1]"), (3, "[0.9, 0.1]")):
        await client.execute(f"INSERT INTO films (id, v) VALUES ({id}, {vector})")
    found = await client.execute("SELECT id FROM films ORDER BY v ANN OF [1, 0] LIMIT 2")
    assert [row.column_value("id") for row in found] == [1, 3]


async def refused(error, address, **options):
    try:
        session = await connected(address, **options)
    except error as raised:
        return str(raised)
    await session.close()
    raise AssertionError("it comes in")


async def login(client):
    other = client.others["login"]
    user, password = other["user"], other["password"]
    session = await connected(other["address"], username=user, password=password)
    await session.execute(acsylla.create_statement("SELECT key FROM system.local"))
    await session.close()
    said = await refused(errors.CassErrorServerBadCredentials, other["address"], username=user, password="wrong")
    assert "incorrect" in said, said
    await refused(errors.CassException, other["address"])


async def tls(client):
    other = client.others["tls"]
    with open(other["ca"]) as file:
        authority = file.read()
    identity = acsylla.SSLVerifyFlags.PEER_IDENTITY
    options = {"ssl_enabled": True, "ssl_verify_flags": identity}
    session = await connected(other["address"], ssl_trusted_cert=authority, **options)
    await session.execute(acsylla.create_statement("SELECT key FROM system.local"))
    await session.close()
    await refused(errors.CassException, other["address"], **options)
    await refused(errors.CassException, other["address"])


SECTIONS = {
    "metadata": metadata,
    "schema events": schema_events,
    **{f"type {kind}": of_type(number, kind, values) for number, (kind, values) in enumerate(EDGES.items())},
    "user types": user_types,
    "batches": batches,
    "conditions": conditions,
    "counters": counters,
    "paging": paging,
    "errors": fails,
    "vector search": vector_search,
    "login": login,
    "TLS": tls,
}


async def main(address, keyspace, others):
    first = await connected(address)
    await first.execute(
        acsylla.create_statement(
            f"CREATE KEYSPACE {keyspace} "
            "WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
    )
    await first.use_keyspace(keyspace)
    client, failed = Client(first, keyspace, address, json.loads(others)), 0
    for name, section in SECTIONS.items():
        try:
            await section(client)
            print(f"ok {name}", flush=True)
        except Exception as error:
            failed += 1
            print(f"failed {name}: {type(error).__name__}: {error}".replace("\n", " | "), flush=True)
    await client.execute(f"DROP KEYSPACE {keyspace}")
    await first.close()
    return failed


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main(*sys.argv[1:])) else 0)
