"""`annulus shell` in scripts: -e, -f and stdin; tables, JSON and CSV; errors and exit codes."""

import csv
import io
import json
import signal
import socket
import subprocess

import pytest
from script import SECONDS, command, environment, run, shows

GOODS = 'SELECT id, "Name", price, tags, embedding FROM goods'


def test_rows_are_a_table_with_short_vectors_and_without_colours(shop):
    text = shows(shop, "-k", "shop", "-e", GOODS + " WHERE id = 1")
    assert "\x1b" not in text
    names, rule, row = text.splitlines()[1:4]
    assert [name.strip() for name in names.split("|")] == ["id", "Name", "price", "tags", "embedding"]
    assert set(rule) == {"-", "+"}
    cells = [cell.strip() for cell in row.split("|")]
    assert cells == ["1", 'tea; "green"', "2.50", "{'hot', 'leaf'}", "[1.0, 2.0, 3.0, … 12 numbers]"]
    assert text.endswith("\n(1 row)\n")


def test_json_is_an_object_a_line_with_the_values_of_select_json(shop):
    lines = shows(shop, "-k", "shop", "--json", "-e", GOODS).splitlines()
    rows = {row["id"]: row for row in map(json.loads, lines)}
    assert len(lines) == 3 and rows[3] == {"id": 3, "Name": None, "price": None, "tags": None, "embedding": None}
    assert rows[2]["Name"] == ""
    assert rows[1]["tags"] == ["hot", "leaf"] and rows[1]["embedding"][-1] == 12.5 and rows[1]["price"] == 2.5
    (answer,) = shows(shop, "--json", "-e", "SELECT JSON price, tags FROM shop.goods WHERE id = 1").splitlines()
    of_server = json.loads(json.loads(answer)["[json]"])
    assert of_server == {name: rows[1][name] for name in of_server}


def test_csv_has_names_once_over_all_pages(shop):
    rows = list(csv.reader(io.StringIO(shows(shop, "--csv", "-e", "PAGING 7; SELECT p, n FROM shop.numbers"))))
    assert rows == [["p", "n"], *(["0", str(n)] for n in range(250))]
    text = shows(shop, "--csv", "-k", "shop", "-e", 'SELECT id, "Name" FROM goods')
    assert sorted(text.splitlines()) == ['1,"tea; ""green"""', '2,""', "3,", "id,Name"]


def test_a_table_of_several_pages_has_its_names_once(shop):
    text = shows(shop, "-e", "PAGING 100\nSELECT n FROM shop.numbers;")
    assert text.count(" n\n") == 1 and text.endswith("(250 rows)\n")


def test_a_failed_statement_is_named_by_its_place_and_ends_the_script(shop, tmp_path):
    file = tmp_path / "wrong.cql"
    file.write_text("-- ; no statement\nUSE shop;\n\nSELECT id\nFRM goods;\nINSERT INTO goods (id) VALUES (77);\n")
    code, text, errors = run(shop, "-f", file)
    assert (code, text) == (1, "")
    assert errors.startswith(f"annulus: {file}:4: SyntaxError: ") and "FRM" in errors, errors
    assert "(0 rows)" in shows(shop, "-e", "SELECT * FROM shop.goods WHERE id = 77")
    code, _, errors = run(shop, "-e", "USE shop", "-e", "SELECT * FROM nothing")
    assert code == 1 and "annulus: -e (2):1: Invalid: " in errors and "nothing" in errors
    code, _, errors = run(shop, stdin="\n\nPAGING many\n")
    assert code == 1 and "stdin:3: PAGING [ON | OFF" in errors


def test_files_hold_batches_texts_and_other_files(shop, tmp_path):
    inner, outer = tmp_path / "it's inner.cql", tmp_path / "outer.cql"
    inner.write_text("INSERT INTO notes (id, body) VALUES (3, $$it's; $$);")
    quoted = str(inner).replace("'", "''")
    outer.write_text(
        "CREATE TABLE IF NOT EXISTS shop.notes (id int PRIMARY KEY, body text);\nUSE shop;\n"
        "BEGIN BATCH\n  INSERT INTO notes (id, body) VALUES (1, 'a;''b'); /* ; */\n"
        f"  INSERT INTO notes (id, body) VALUES (2, ';');\nAPPLY BATCH;\nSOURCE '{quoted}'\n"
        "SELECT body FROM notes;"
    )
    lines = shows(shop, "--json", "-f", outer).splitlines()
    assert sorted(json.loads(line)["body"] for line in lines) == [";", "a;'b", "it's; "]
    circle = tmp_path / "circle.cql"
    circle.write_text(f"SOURCE '{circle}'\n")
    code, _, errors = run(shop, "-f", circle)
    assert code == 1 and "circle" in errors
    code, _, errors = run(shop, "-f", tmp_path / "missing.cql")
    assert code == 1 and "missing.cql" in errors


def test_definitions_are_statements_that_can_be_run_again(shop, tmp_path):
    text = shows(shop, "-e", "DESCRIBE TABLE shop.goods")
    assert "CREATE TABLE shop.goods" in text and "rows)" not in text
    file = tmp_path / "again.cql"
    file.write_text(text.replace("shop.goods", "shop.goods2"))
    assert shows(shop, "-f", file) == ""
    assert "embedding" in shows(shop, "-e", "\\d shop.goods2")
    assert "goods2" in shows(shop, "-k", "shop", "-e", "\\d")


def take_interrupts():
    """Takes the signal as usual, also where these tests run in the background of a script, which ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_a_pipe_gets_the_answer_to_each_statement_at_once(shop):
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    with subprocess.Popen(command(shop, "--json"), preexec_fn=take_interrupts, **options) as shell:
        for key in (1, 2, 3):
            shell.stdin.write(f"SELECT id FROM shop.goods\nWHERE id = {key};\n")
            shell.stdin.flush()
            assert json.loads(shell.stdout.readline()) == {"id": key}
        shell.send_signal(signal.SIGINT)
        assert shell.wait(timeout=SECONDS) == -signal.SIGINT


def test_a_reader_that_has_seen_enough_is_no_failure(shop):
    with subprocess.Popen(
        command(shop, "--csv", "-e", "PAGING 1\nSELECT * FROM shop.numbers;"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as shell:
        assert shell.stdout.readline() == "p,n\n"
        shell.stdout.close()
        assert shell.wait(timeout=SECONDS) == 0 and shell.stderr.read() == ""


@pytest.mark.parametrize(
    "arguments, named",
    [
        (["--json", "--csv"], "cannot be used with"),
        (["--user", "ada"], "--password-file"),
        (["--ca", "/nowhere/ca.pem"], "/nowhere/ca.pem"),
    ],
)
def test_a_wrong_command_line_has_its_own_exit_code(shop, arguments, named):
    code, _, errors = run(shop, "-e", "SELECT 1", *arguments)
    assert code == 2 and named in errors, errors


def test_a_server_that_is_not_there_is_named_with_the_remedy():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    class Nothing:
        host, cql_port = "127.0.0.1", port

    code, _, errors = run(Nothing, "-e", "SELECT release_version FROM system.local")
    assert code == 1 and f"127.0.0.1:{port}" in errors and "annulus serve" in errors and "--cql" in errors


def test_the_keyspace_must_be_there(shop):
    code, _, errors = run(shop, "-k", "nowhere", "-e", "SELECT * FROM t")
    assert code == 1 and "--keyspace nowhere" in errors
