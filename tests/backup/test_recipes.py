"""Runs the recipes of docs/backup.md: its commands as they are written, with addresses and folders of the test."""

import pathlib
import re
import shlex

import data
from commands import run
from server import Server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/backup.md"


def recipe(title):
    """The commands below a heading of the page, each as words without `annulus`."""
    text = PAGE.read_text()
    [section] = re.findall(rf"^### {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^    annulus (.*)$", section, re.MULTILINE)
    assert commands, f"no command below {title}"
    return [shlex.split(command, comments=True) for command in commands]


class Machine:
    """Runs commands of a recipe, with the page's locations, folders and addresses replaced."""

    def __init__(self, folder, server):
        self.folder, self.server, self.started = folder, server, []

    def replaced(self, word):
        word = word.replace("s3:backups/", f"file://{self.folder}/backups/")
        return word.replace("/var/lib/", f"{self.folder}/")

    def run(self, command, **instead):
        """Runs one command against the server of this machine, and starts the server that it names."""
        words = [self.replaced(instead.get(word, word)) for word in command]
        if words[0] == "serve":
            self.server = Server(words[words.index("--data-dir") + 1]).start()
            self.started.append(self.server)
            return
        address = f"http://{self.server.host}:{self.server.http_port}"
        if "--http" in words:
            words[words.index("--http") + 1] = address
        elif "--data" not in words and "--cql" not in words:
            words += ["--http", address]
        run(*words)

    def stop(self):
        assert [server.stop() for server in self.started if server.is_running] == [0] * len(self.started)


def check(server, expected, keyspace=data.KEYSPACE):
    with data.connect(server) as cluster:
        session = cluster.connect()
        assert data.contents(session, keyspace) == expected
        data.wait_for_answers(session, keyspace)


def test_a_server_is_cloned(server, expected, tmp_path):
    machine = Machine(tmp_path, server)
    machine.run(["backup", "--location", "s3:backups/shop"])
    for command in recipe("Clone"):
        machine.run(command)
    check(machine.server, expected)
    # Both live on, each with its own backups.
    with data.connect(machine.server) as cluster:
        cluster.connect().execute("DELETE FROM shop.items WHERE id = 8")
    check(server, expected)
    Machine(tmp_path, server).run(["backup", "--location", "s3:backups/shop"])
    machine.stop()


def test_a_server_moves_to_another_machine(tmp_path):
    old = Server(tmp_path / "old").start()
    machine = Machine(tmp_path, old)
    with data.connect(old) as cluster:
        session = cluster.connect()
        data.make(session)
        commands = iter(recipe("Move to another machine"))
        machine.run(next(commands))
        session.execute("INSERT INTO shop.items (id, name) VALUES (700, 'between the two')")
        machine.run(next(commands))
        expected = data.contents(session)
    assert old.stop() == 0, old.log()
    for command in commands:
        machine.run(command)
    assert machine.server is not old and "700" in {key[0] for key in expected["items"]}
    check(machine.server, expected)
    machine.stop()


def test_a_table_is_brought_back_as_it_was(server, expected, session, tmp_path):
    machine = Machine(tmp_path, server)
    machine.run(["backup", "--location", "s3:backups/shop"])
    [command] = recipe("A table as it was")
    machine.run(command)
    check(server, expected, "shop_before")
    session.execute("DROP KEYSPACE shop_before")


def test_rows_go_to_another_topology(server, expected, other, tmp_path):
    machine = Machine(tmp_path, server)
    machine.run(["backup", "--location", "s3:backups/shop"])
    [command] = recipe("Another topology")
    address = command[command.index("--cql") + 1]
    machine.run(command, **{address: f"{other.host}:{other.cql_port}"})
    check(other, expected)


def test_the_page_has_no_other_recipes():
    titles = re.findall(r"^### (.*)$", PAGE.read_text(), re.MULTILINE)
    assert titles == ["Clone", "Move to another machine", "Another topology", "A table as it was", "Upgrade, and go back"]
