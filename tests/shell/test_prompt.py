"""`annulus shell` at a terminal: several lines, completion, history, pages, colours, Ctrl-C."""

import re
import stat

import pytest
from script import command, environment
from terminal import Terminal

UP, CONTROL_C, CONTROL_D = "\x1b[A", "\x03", "\x04"


@pytest.fixture
def shell(shop, tmp_path):
    """Starts a shell, and waits for its prompt."""
    opened = []

    def start(*arguments, columns=100, prompt=r"annulus:shop> ", **variables):
        variables = environment(XDG_STATE_HOME=str(tmp_path / "state"), **variables)
        terminal = Terminal(command(shop, "-k", "shop", *arguments), variables, columns)
        opened.append(terminal)
        terminal.expect(prompt)
        return terminal

    yield start
    for terminal in opened:
        terminal.__exit__()


def leave(terminal):
    terminal.type("\\q\r")
    assert terminal.ends() == 0


def test_a_statement_may_have_several_lines(shell):
    terminal = shell()
    terminal.type('SELECT id, "Name"\rFROM goods -- ; here\rWHERE id = 1;\r')
    answer = terminal.expect(r"\(1 row\)")
    assert 'tea; "green"' in answer
    terminal.expect("annulus:shop> ")
    leave(terminal)


def test_names_are_completed(shell):
    terminal = shell()
    terminal.type("SEL\tid FROM go\t")
    terminal.expect("SELECTid FROM goods")
    terminal.type(CONTROL_C)
    terminal.expect("annulus:shop> ")
    terminal.type("DESCRIBE num\t;\r")
    terminal.expect(r"CREATE TABLE shop\.numbers")
    terminal.expect("annulus:shop> ")
    leave(terminal)


def test_a_failed_statement_and_control_c_leave_the_prompt(shell):
    terminal = shell()
    terminal.type("SELECT * FROM nothing;\r")
    terminal.expect("Invalid: ")
    terminal.expect("annulus:shop> ")
    terminal.type("SELECT id FROM\r goo" + CONTROL_C)
    terminal.expect(r"annulus:shop> \r*$")
    terminal.type("SELECT count(*) FROM numbers;\r")
    assert "250" in terminal.expect(r"\(1 row\)")
    terminal.expect("annulus:shop> ")
    terminal.type(CONTROL_D)
    assert terminal.ends() == 0


def test_the_history_is_for_the_next_shell_without_passwords(shell, tmp_path):
    first = shell()
    first.type("SELECT n FROM numbers\rLIMIT 3;\r")
    first.expect(r"\(3 rows\)")
    first.expect("annulus:shop> ")
    first.type("CREATE ROLE ada WITH PASSWORD = 'lovelace';\r")
    first.expect(r"annulus:shop> \r*$")
    leave(first)
    history = tmp_path / "state" / "annulus" / "shell_history"
    assert "lovelace" not in history.read_text() and "LIMIT 3" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) & 0o077 == 0
    second = shell()
    # The newest is \q, and before it the statement of two lines.
    second.type(UP + UP + "\r")
    second.expect(r"\(3 rows\)")
    second.expect("annulus:shop> ")
    leave(second)


def test_tables_fit_the_terminal(shell):
    terminal = shell(columns=60)
    terminal.type("SELECT * FROM goods WHERE id = 1;\r")
    answer = terminal.expect(r"\(1 row\)")
    rows = [line for line in answer.replace("\r", "").splitlines() if "|" in line]
    assert len(rows) == 2 and all(len(line) <= 60 for line in rows), answer
    assert "…" in rows[1]
    terminal.expect("annulus:shop> ")
    terminal.type("EXPAND ON\r")
    terminal.expect(r"each cell: on\.")
    terminal.expect("annulus:shop> ")
    terminal.type("SELECT * FROM goods WHERE id = 1;\r")
    answer = terminal.expect(r"\(1 row\)")
    assert "@ row 1" in answer and re.search(r"embedding +\| \[1\.0, 2\.0, 3\.0, … 12 numbers\]", answer)
    terminal.expect("annulus:shop> ")
    leave(terminal)


def test_pages_wait_for_enter_and_end_with_q(shell):
    terminal = shell()
    terminal.type("SELECT n FROM numbers;\r")
    terminal.expect("-- more")
    terminal.type("\r")
    assert " 150" in terminal.expect(r" 199\s")
    terminal.expect("-- more: Enter, or q to end --")
    terminal.type("q\r")
    terminal.expect(r"\(200 rows\)")
    terminal.expect("annulus:shop> ")
    terminal.type("PAGING OFF\r")
    terminal.expect(r"Paging: off\.")
    terminal.expect("annulus:shop> ")
    terminal.type("SELECT n FROM numbers;\r")
    terminal.expect(r"\(250 rows\)")
    terminal.expect("annulus:shop> ")
    leave(terminal)


def test_commands_of_cqlsh_and_psql(shell, tmp_path):
    terminal = shell()
    file = tmp_path / "some.cql"
    file.write_text("SELECT n FROM numbers WHERE p = 0 AND n = 42;\nSELECT wrong;\n")
    for typed, shown in [
        ("CONSISTENCY", r"Consistency: LOCAL_QUORUM\."),
        ("CONSISTENCY one", r"Consistency: ONE\."),
        ("\\timing", r"Timing: on\."),
        ("SELECT id FROM goods WHERE id = 3;", r"Time: \d+\.\d+ ms"),
        ("TRACING ON", r"Tracing: on\."),
        ("SELECT id FROM goods WHERE id = 3;", r"Trace [0-9a-f-]{36}"),
        ("TRACING OFF", r"Tracing: off\."),
        (f"SOURCE '{file}'", r" 42\s[\s\S]*some\.cql:2: "),
        ("\\d", r"numbers"),
        ("\\d goods", r"CREATE TABLE shop\.goods"),
        ("\\?", r"\.import FILE"),
        ("\\nothing", r"\\nothing is no command"),
    ]:
        terminal.type(typed + "\r")
        terminal.expect(shown)
        terminal.expect("annulus:shop> ")
    terminal.type("USE system;\r")
    terminal.expect("annulus:system> ")
    leave(terminal)


def test_colours_are_for_those_who_want_them(shell):
    bold = b"\x1b[1;34mSELECT"
    for variables, has_colours in [({}, True), ({"NO_COLOR": "1"}, False)]:
        terminal = shell(**variables)
        terminal.type('SELECT "Name" FROM goods WHERE id = 3;\r')
        terminal.expect(r"\(1 row\)")
        terminal.expect("annulus:shop> ")
        assert (bold in terminal.raw, b"\x1b[2mnull" in terminal.raw) == (has_colours, has_colours)
        leave(terminal)


def test_values_do_not_write_to_the_terminal(shell):
    terminal = shell()
    terminal.type("INSERT INTO goods (id, \"Name\") VALUES (9, blobAsText(0x1b5d303b68691b5b324a));\r")
    terminal.expect(r"annulus:shop> \r*$")
    terminal.type('SELECT "Name" FROM goods WHERE id = 9;\r')
    assert r"\u{1b}]0;hi\u{1b}[2J" in terminal.expect(r"\(1 row\)")
    assert b"\x1b]0;hi" not in terminal.raw
    terminal.expect("annulus:shop> ")
    terminal.type("DELETE FROM goods WHERE id = 9;\r")
    terminal.expect(r"annulus:shop> \r*$")
    leave(terminal)
