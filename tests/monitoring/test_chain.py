"""A real large cell, from the server's log to one alert: rsyslog, the stages of Promtail, the rule of Loki,
Alertmanager, mail and Slack."""

import itertools

import pytest
from chain import alert_chain
from clients import client_of_one
from server import Server, eventually

REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
# Twice the threshold of cells.
LARGE = "x" * (2 << 20)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    with alert_chain(tmp_path_factory.mktemp("chain")) as chain:
        yield chain


@pytest.fixture(scope="module")
def logging_server(chain, tmp_path_factory):
    """A server that logs to rsyslog."""
    with chain.rsyslog():
        server = Server(tmp_path_factory.mktemp("server") / "data", "--log-syslog", chain.log_address).start()
        with client_of_one((server.host, server.cql_port)) as cluster:
            server.session = cluster.connect()
            server.session.execute(f"CREATE KEYSPACE shop WITH replication = {REPLICATION}")
            server.session.execute("CREATE TABLE shop.manuals (id int PRIMARY KEY, body text)")
            server.insert = server.session.prepare("INSERT INTO shop.manuals (id, body) VALUES (?, ?)")
            yield server
    # rsyslog is away by now, which neither queries nor the stop wait for.
    assert server.stop() == 0, server.log()


def large_lines(chain):
    return [entry for entry in list(chain.receiver.entries) if entry.labels.get("module") == "large_data"]


def test_a_large_cell_is_one_alert(chain, logging_server):
    logging_server.session.execute(logging_server.insert, (1, "small"))
    logging_server.session.execute(logging_server.insert, (2, LARGE))
    (line,) = eventually(lambda: large_lines(chain), 60)
    assert chain.receiver.refused == []
    assert line.labels["app"] == "annulus" and line.labels["severity"] == "warning" and line.labels["shard"].isdigit()
    for name in ("shop", "manuals", "body"):
        assert name in line.line

    chain.evaluate_until(lambda: chain.slack.posted and chain.mail.mails)
    (alert,) = chain.active_alerts()
    assert alert["labels"]["alertname"] == "HighThroughputLogStreams" and alert["labels"]["msg"] == line.line
    assert alert["annotations"]["description"] == f"127.0.0.1 {line.line}"
    (message,) = chain.slack.posted
    assert "HighThroughputLogStreams" in message["attachments"][0]["title"]
    assert "manuals" in message["attachments"][0]["text"]
    (mail,) = chain.mail.mails
    assert "HighThroughputLogStreams" in mail


def test_every_line_has_its_head_and_severity(chain, logging_server):
    entries = list(chain.receiver.entries)
    assert entries
    for entry in entries:
        assert {"shard", "module"} <= set(entry.labels), entry
        assert entry.labels["severity"] in {"error", "warning", "informational", "debug"}
    warnings = sum(entry.labels["severity"] == "warning" for entry in entries)
    assert sum(chain.receiver.pipeline.counters.values()) == warnings >= 1


def test_the_local_socket_is_as_good(chain, logging_server, tmp_path):
    before = len(chain.receiver.entries)
    with Server(tmp_path / "data", "--log-syslog", f"unix:{chain.log_socket}") as server:
        (entry, *_) = eventually(lambda: chain.receiver.entries[before:], 60)
        assert entry.labels["app"] == "annulus" and {"shard", "module"} <= set(entry.labels), entry
    assert "panicked" not in server.log()


def test_queries_go_on_without_the_receiver(chain, tmp_path):
    with chain.rsyslog():
        server = Server(tmp_path / "data", "--log-syslog", chain.log_address).start()
    with client_of_one((server.host, server.cql_port)) as cluster:
        session = cluster.connect()
        session.execute(f"CREATE KEYSPACE shop WITH replication = {REPLICATION}")
        session.execute("CREATE TABLE shop.manuals (id int PRIMARY KEY, body text)")
        insert = session.prepare("INSERT INTO shop.manuals (id, body) VALUES (?, ?)")
        for number in range(20):
            session.execute(insert, (number, LARGE), timeout=30)
        assert session.execute("SELECT count(*) FROM shop.manuals").one()[0] == 20

        # Once it is back, lines arrive again. A table's column is logged once in ten minutes.
        before = len(large_lines(chain))
        with chain.rsyslog():
            tables = itertools.count()

            def arrives():
                table = f"shop.later_{next(tables)}"
                session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, body text)")
                session.execute(f"INSERT INTO {table} (id, body) VALUES (0, %s)", (LARGE,))
                return len(large_lines(chain)) > before

            eventually(arrives, 60, every=0.5)
    assert server.stop() == 0, server.log()
