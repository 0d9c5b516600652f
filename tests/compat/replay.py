"""Runs the steps of an area against a server and renders its answers.

As a program it replays every area against a server that runs already, and shows the differences to
the golden files: replay.py HOST:PORT [AREA ...]
"""

import datetime
import decimal
import functools
import ipaddress
import sys
import time
import uuid

from cassandra import AuthenticationFailed
from cassandra.protocol import ErrorMessage
from cassandra.query import UNSET_VALUE
from cassandra.util import Date, Duration, Time

import compare
import script
from client import Client, Raw, encode, type_name, typed
from literal import literal

# The names that the Python of a directive may use.
NAMES = {
    "UNSET": UNSET_VALUE,
    "raw": lambda text: Raw.fromhex(text),
    "typed": typed,
    "uuid": uuid.UUID,
    "decimal": decimal.Decimal,
    "date": Date,
    "time": Time,
    "duration": Duration,
    "timestamp": datetime.datetime.fromisoformat,
    "inet": lambda text: str(ipaddress.ip_address(text)),
    "nan": float("nan"),
    "inf": float("inf"),
}
MOST_PAGES = 1000


def replay(client, area):
    """(text of the step, answer) of each step, in a keyspace of its own, made anew."""
    begin(client, area)
    return [(step.text, answer(client, step)) for step in script.read_statements(area)]


def begin(client, area):
    """Makes an area's keyspace anew and uses it."""
    keyspace = f"compat_{area}"
    for statement in (
        f"DROP KEYSPACE IF EXISTS {keyspace}",
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
        f"USE {keyspace}",
    ):
        result = client.query(statement)
        if isinstance(result, ErrorMessage):
            raise result


def answer(client, step):
    """The rendered answer, or answers, to a step."""
    wait(step)
    for login in step.directive("as"):
        try:
            client = client.of(*login.split(" "))
        except AuthenticationFailed as refused:
            return f"login refused: {str(refused).partition(': ')[2]}"
    page_size = next(map(int, step.directive("page")), None)
    shows_empty = bool(step.directive("empty"))
    if step.directive("prepare") or step.directive("bind"):
        prepared = client.prepare(step.statement)
        if isinstance(prepared, ErrorMessage):
            return _error(prepared)
        lines = [_prepared(prepared)]
        for values in map(evaluate, step.directive("bind")):
            bound = encoded(prepared, values)
            execute = functools.partial(client.execute, prepared, bound)
            lines.append(_pages(execute, page_size, shows_empty))
        return "\n".join(lines)
    values = next(map(evaluate, step.directive("send")), None)
    return _pages(functools.partial(client.query, step.statement, values), page_size, shows_empty)


def wait(step):
    """Waits as long as the step says."""
    for seconds in step.directive("wait"):
        time.sleep(float(seconds))


def evaluate(python):
    """The value of a directive."""
    return eval(python, dict(NAMES))


def encoded(prepared, values):
    """Values in the form of a prepared statement's variables. Values beyond the variables must be
    `Raw`."""
    columns = prepared.bind_metadata
    return [encode(columns[i] if i < len(columns) else None, value) for i, value in enumerate(values)]


def _pages(ask, page_size, shows_empty):
    """All pages of an answer. An empty last page is left out unless the step is about it."""
    message = ask(page_size=page_size)
    text = _render(message)
    for number in range(MOST_PAGES):
        if isinstance(message, ErrorMessage) or message.paging_state is None:
            return text
        message = ask(page_size=page_size, paging_state=message.paging_state)
        if isinstance(message, ErrorMessage):
            text += "\n" + _error(message)
        elif message.parsed_rows or message.paging_state is not None or shows_empty:
            text += "\n".join(["\n-- next page", *_rows(message)])
    return f"{text}\nmore than {MOST_PAGES} pages"


def _render(message):
    if isinstance(message, ErrorMessage):
        return _error(message)
    lines = _warnings(message)
    if message.parsed_rows is not None:
        lines += [_columns("columns", message.column_metadata), *_rows(message)]
    elif message.new_keyspace:
        lines.append(f"keyspace {message.new_keyspace}")
    elif event := message.schema_change_event:
        parts = [event["target_type"], event["change_type"], event["keyspace"]]
        parts += [event[key] for key in ("table", "type", "function", "aggregate") if key in event]
        lines.append(" ".join(map(str, parts)))
    else:
        lines.append("done")
    return "\n".join(lines)


def _warnings(message):
    # One warning of Cassandra has the statement's id in it, and is only about how these tests
    # choose a keyspace.
    texts = [_one_line(warning) for warning in message.warnings or () if not warning.startswith("`USE <keyspace>`")]
    return [f"warning: {text}" for text in texts]


def _error(message):
    # Cassandra gives a function's signatures in another order each time.
    before, colon, signatures = message.message.partition("(known type signatures: ")
    ordered = ", system.".join(sorted(signatures.removesuffix(")").removeprefix("system.").split(", system.")))
    text = f"{before}{colon}system.{ordered})" if colon else before
    return f"error {message.code:04x} {type(message).__name__}: {_one_line(text)}"


def _one_line(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _columns(what, metadata):
    """The columns of a result or of a statement's variables: tables, names, types."""
    sources = sorted({f"{column[0]}.{column[1]}" for column in metadata})
    source = f" of {', '.join(sources)}" if sources else ""
    return f"{what}{source}: " + " | ".join(f"{column[2]} {type_name(column[3])}" for column in metadata)


def _rows(message):
    types = [column[3] for column in message.column_metadata]
    return [" | ".join(map(literal, types, row)) for row in message.parsed_rows]


def _prepared(message):
    lines = _warnings(message)
    lines.append(_columns("variables", message.bind_metadata))
    if message.pk_indexes:
        lines.append("partition key from variables " + ", ".join(map(str, message.pk_indexes)))
    if message.column_metadata:
        lines.append(_columns("prepared columns", message.column_metadata))
    return "\n".join(lines)


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    with Client(host, int(port)) as client:
        for area in sys.argv[2:] or script.areas():
            for each in compare.differences(script.read_golden(area), replay(client, area)):
                print(f"[{area}]\n{each}\n")


if __name__ == "__main__":
    main()
