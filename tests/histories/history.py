"""A history: a table with writes and reads that follow from a seed, and the model beside it.

A difference is made small before it is reported: writes are left out as long as it stays."""

import itertools
import random

from cassandra import InvalidRequest
from cassandra.query import SimpleStatement
from kinds import KINDS
from model import Column, Table
from reads import random_read
from writes import UNTOLD, Impossible, cql_type, random_write

KEYSPACE = "histories"
REPLAYS_MAX = 150
_names = itertools.count()


class Difference(AssertionError):
    """The server's rows are not the model's."""


class History:
    """A history. `seed` decides the schema and every statement. `between(number)` is called before
    the write of that number, and may stop and start the server. It returns the session to go on
    with."""

    def __init__(self, seed, writes=120, reads_each=1, between=None):
        self.seed, self.count, self.reads_each = seed, writes, reads_each
        self.between = between or (lambda _number, session: session)
        self.rng = random.Random(seed)
        self.shape = random_shape(self.rng)

    def run(self, session):
        """Runs the history, and raises the first `Difference`. Returns (writes, reads, the session
        at the end)."""
        run = Run(self.shape, session)
        done, reads = [], 0
        for number in range(self.count):
            run.session = self.between(number, run.session)
            write = random_write(self.rng, run.table)
            run.write(write)
            done.append(write)
            for _ in range(self.reads_each):
                read = random_read(self.rng, run.table)
                reads += 1
                if difference := run.difference(read):
                    raise Difference(self._explain(run.session, done, read, difference))
        run.end()
        return len(done), reads, run.session

    def _explain(self, session, writes, read, difference):
        smaller = shrink(self.shape, session, writes, read)
        note = "" if smaller else "\n(replaying the same writes does not show it: these are all of them)"
        statements = "\n".join(f"  {write};" for write in smaller or writes)
        return (
            f"seed {self.seed}{note}\n  {create_table(self.shape, 't')};\n{statements}\n  {read};\n"
            f"{(smaller and replay(self.shape, session, smaller, read)) or difference}"
        )


def random_shape(rng):
    """(partition key, clustering with directions, static, regular), as `Table` takes them."""
    kind = lambda: rng.choice(KINDS)  # noqa: E731
    partition = [Column(f"p{n}", kind().without_empty(), None) for n in range(rng.choice([1, 1, 2]))]
    clustering = [(Column(f"c{n}", kind(), None), rng.random() < 0.4) for n in range(rng.choice([0, 1, 1, 2, 3]))]
    value = lambda name: Column(name, kind(), rng.choice([None, None, None, "set", "list", "map"]))  # noqa: E731
    static = [value(f"s{n}") for n in range(rng.choice([0, 0, 1, 2]))] if clustering else []
    regular = [value(f"v{n}") for n in range(rng.choice([0, 1, 2, 3]))]
    return partition, clustering, static, regular


def create_table(shape, name):
    partition, clustering, static, regular = shape
    columns = [f"{column.name} {cql_type(column)}" for column in partition]
    columns += [f"{column.name} {cql_type(column)}" for column, _ in clustering]
    columns += [f"{column.name} {cql_type(column)} STATIC" for column in static]
    columns += [f"{column.name} {cql_type(column)}" for column in regular]
    key = f"({', '.join(column.name for column in partition)})"
    key = ", ".join([key] + [column.name for column, _ in clustering])
    order = ", ".join(f"{column.name} {'DESC' if descending else 'ASC'}" for column, descending in clustering)
    order = f" WITH CLUSTERING ORDER BY ({order})" if order else ""
    return f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key})){order}"


class Run:
    """A table on the server and its model."""

    def __init__(self, shape, session):
        self.session, self.table = session, Table(*shape)
        self.name = f"{KEYSPACE}.t{next(_names)}"
        session.execute(create_table(shape, self.name))

    def end(self):
        self.session.execute(f"DROP TABLE {self.name}")

    def write(self, write):
        try:
            write.apply(self.table)
        except Impossible:
            try:
                self._execute(write)
            except InvalidRequest:
                return
            raise Difference(f"accepted, and it is not possible here: {write}") from None
        for text in write.text.split("; ") if write.text.startswith("ALTER") else [write.text]:
            self._execute(write, text)

    def difference(self, read):
        """The difference between the server's answer and the model's; None if there is none."""
        told = [_normal(tuple(row)) for row in self._execute(read, page_rows=read.page_rows)]
        wanted = [_normal(row) for row in read.expected(self.table)]
        if not read.ordered:
            told, wanted = sorted(told, key=repr), sorted(wanted, key=repr)
        if told == wanted:
            return None
        return f"  told    {told}\n  wanted  {wanted}"

    def _execute(self, statement, text=None, page_rows=None):
        text = (text or statement.text).replace("{t}", self.name)
        if statement.values:
            bound = self.session.prepare(text).bind(statement.values)
            bound.fetch_size = page_rows or 5000
            return list(self.session.execute(bound))
        return list(self.session.execute(SimpleStatement(text, fetch_size=page_rows or 5000)))


def replay(shape, session, writes, read):
    """The difference of a read after these writes on a fresh table."""
    run = Run(shape, session)
    try:
        for write in writes:
            run.write(write)
        return run.difference(read)
    except Exception:  # A write may be impossible without those left out.
        return None
    finally:
        run.end()


def shrink(shape, session, writes, read):
    """The shortest list of writes found after which the read still differs; empty if it does not
    differ after all of them."""
    if not replay(shape, session, writes, read):
        return []
    replays, part = 0, max(len(writes) // 2, 1)
    while replays < REPLAYS_MAX:
        at, shorter = 0, False
        while at < len(writes) and replays < REPLAYS_MAX:
            rest = writes[:at] + writes[at + part :]
            replays += 1
            if replay(shape, session, rest, read):
                writes, shorter = rest, True
            else:
                at += part
        if part == 1 and not shorter:
            break
        part = max(part // 2, 1)
    return writes


def _normal(value):
    """A value in a form that compares: collections as plain types, and all untold timestamps as
    one."""
    if isinstance(value, tuple):
        return tuple(map(_normal, value))
    if type(value).__name__ in ("SortedSet", "set", "frozenset"):
        return frozenset(value)
    if hasattr(value, "items"):
        return tuple(sorted(value.items()))
    if isinstance(value, list):
        return list(value)
    if isinstance(value, int) and not isinstance(value, bool) and UNTOLD <= value < 2**60:
        return "untold"
    return value
