"""Measures for `waits` how long a client waits while others do the worst, and prints its tables.

    waits.py PART CQL HTTP PID FILE      measures a part at the server of that process id, which has
                                         no data yet, and adds records to FILE
    waits.py report FILE                 prints what FILE has as Markdown

PART is a, b, c-tables, c-secondary, c-vector or d. SCALE and RECORD are those of `waits`.

The client that waits is two processes: one reads a row of a small table, the other writes one, a
request at a time with a millisecond between two. They run through all of a part, and a request
counts by when it began and ended: as idle if it was answered before the load began, as loaded if
it was under way at any time from the load's begin to a second after its end. So the write that
stands still does not keep reads from being timed, and one request that waits long is seen whole.
"""

import array
import collections
import contextlib
import csv
import functools
import itertools
import json
import math
import multiprocessing
import os
import pathlib
import platform
import selectors
import statistics
import struct
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "drivers"))

from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile  # noqa: E402
from cassandra.policies import FallthroughRetryPolicy  # noqa: E402

from server import Elsewhere  # noqa: E402
from wire import (  # noqa: E402
    ERROR,
    EXECUTE,
    HEADER,
    ONE,
    PREPARE,
    QUERY,
    VALUES,
    Wire,
    long_string,
    query,
    value,
)

SCALE = float(os.environ.get("SCALE", "1"))
RECORD = os.environ.get("RECORD")

KEYSPACE = "CREATE KEYSPACE waits WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"

# The waits of a and b.
GOAL_MS = 400
KEYS = 1_000
PAUSE_SECONDS = 0.001
AFTER_FAILURE_SECONDS = 0.01
SETTLE_SECONDS = 1
IDLE_SECONDS = 3 * SCALE
# No statement of a load is sent later than this, and so no round of reads.
LOAD_SECONDS = 5 * SCALE
READS_SECONDS = 8 * SCALE
AFTER_SECONDS = 1
STATEMENT_SECONDS_MAX = 60
# After which the waiting client ends by itself.
CLIENT_SECONDS_MAX = 900

ADDED, REPLACED, BESIDE, READ_SET = 40_000, 40_000, 100_000, 300_000
ROWS_ADDED_TO = 12
# Numbers of six digits with a comma: a megabyte of JSON.
JSON_ELEMENTS = 150_000
JSON_LISTS = 8
READS_AT_ONCE, READS_ROUNDS = 100, 10

# The memory of c: times in each half, readings of a half, and seconds that both halves may take.
GOAL_LEFT_BYTES = 8_000_000
HALVES = {"tables": (5_000, 5, 80), "secondary": (1_000, 2, 20), "vector": (500, 2, 30)}
# The server looks every second for what it can write out or remove.
FLUSH_SECONDS, HALF_FLUSH_SECONDS = 2, 5

# The processor time of d.
GOAL_RATIO = 1.5
WINDOW_STEPS, SAMPLE, UPDATES, IN_FLIGHT, READS = 2_000, 100, 100_000, 200, 300

TABLE = "CREATE TABLE waits.NAME (p int, c int, v text, PRIMARY KEY (p, c))"
OF_VECTORS = "CREATE TABLE waits.NAME (p int PRIMARY KEY, v vector<float, 8>)"
BY_VECTOR = "USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}"
SCHEMA_CHANGES = {
    "tables": [TABLE, "DROP TABLE waits.NAME"],
    "secondary": [TABLE, "CREATE CUSTOM INDEX NAME_v ON waits.NAME (v) USING 'sai'", "DROP TABLE waits.NAME"],
    "vector": [OF_VECTORS, f"CREATE CUSTOM INDEX NAME_v ON waits.NAME (v) {BY_VECTOR}", "DROP TABLE waits.NAME"],
}
KINDS = {"tables": "a table", "secondary": "a table with a secondary index", "vector": "a table with a vector index"}


def connected(host, port):
    """A cluster of the driver that reads no schema and tries nothing again."""
    profile = ExecutionProfile(request_timeout=STATEMENT_SECONDS_MAX, retry_policy=FallthroughRetryPolicy())
    return Cluster(
        [host],
        port=port,
        protocol_version=4,
        compression=False,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
        schema_event_refresh_window=-1,
        topology_event_refresh_window=-1,
    )


# The client that waits.

OPERATIONS = {
    "read": ("SELECT v FROM waits.small WHERE k = ?", lambda number: (number % KEYS,)),
    "write": ("UPDATE waits.small SET v = ? WHERE k = ?", lambda number: (number, number % KEYS)),
}


class Timed:
    """Requests of a client: when each began and ended, in ns of the clock that all processes share."""

    def __init__(self):
        self.begins, self.ends = array.array("q"), array.array("q")
        self.failed = []  # (begin, end, kind)
        self.since, self.used = time.monotonic(), time.process_time()

    def taken(self):
        """What was timed, with the share of a core that this process kept busy meanwhile."""
        cores = (time.process_time() - self.used) / max(time.monotonic() - self.since, 1e-9)
        return self.begins, self.ends, self.failed, cores


def wait(host, port, operation, pipe):
    """Runs as a process: times requests until the pipe is closed, and answers each message of it
    with those since the last one."""
    text, values = OPERATIONS[operation]
    with connected(host, port) as cluster:
        session = cluster.connect()
        statement = session.prepare(text)
        timed, number = Timed(), 0
        pipe.send("ready")
        until = time.monotonic() + CLIENT_SECONDS_MAX
        while time.monotonic() < until:
            if pipe.poll():
                try:
                    pipe.recv()
                except EOFError:
                    return
                pipe.send(timed.taken())
                timed = Timed()
            number += 1
            begin = time.monotonic_ns()
            try:
                session.execute(statement, values(number))
            except Exception as error:
                timed.failed.append((begin, time.monotonic_ns(), type(error).__name__))
                time.sleep(AFTER_FAILURE_SECONDS)
            else:
                timed.begins.append(begin)
                timed.ends.append(time.monotonic_ns())
            time.sleep(PAUSE_SECONDS)


class Waiting:
    """The processes of the client that waits, by what each does."""

    def __init__(self, server):
        self.server, self.processes = server, {}

    def __enter__(self):
        # A fork would share the driver's threads and sockets.
        context = multiprocessing.get_context("spawn")
        for operation in OPERATIONS:
            ours, theirs = context.Pipe()
            arguments = (self.server.host, self.server.cql_port, operation, theirs)
            process = context.Process(target=wait, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.processes[operation] = process, ours
        for operation in self.processes:
            assert self.answer(operation) == "ready"
        time.sleep(SETTLE_SECONDS)
        return self

    def __exit__(self, *_):
        for _, pipe in self.processes.values():
            pipe.close()
        for process, _ in self.processes.values():
            process.join(STATEMENT_SECONDS_MAX)
            if process.is_alive():
                process.terminate()

    def answer(self, operation):
        pipe = self.processes[operation][1]
        assert pipe.poll(2 * STATEMENT_SECONDS_MAX), f"the client's {operation}s have come to a halt"
        return pipe.recv()

    def take(self):
        """What has been timed since the last call, by operation."""
        for _, pipe in self.processes.values():
            pipe.send("take")
        return {operation: self.answer(operation) for operation in self.processes}


def wait_beside(results, waiting, case, load):
    """Times the waiting client on the idle server, then while `load` runs."""
    print(f"{case} ...", file=sys.stderr)
    time.sleep(SETTLE_SECONDS)
    waiting.take()
    idle_begin = time.monotonic_ns()
    time.sleep(IDLE_SECONDS)
    load_begin = time.monotonic_ns()
    sent = load()
    load_end = time.monotonic_ns() + int(AFTER_SECONDS * 1e9)
    time.sleep(AFTER_SECONDS)
    for operation, (begins, ends, failed, cores) in waiting.take().items():
        requests = list(zip(begins, ends))
        phases = {
            "idle": (lambda begin, end: begin >= idle_begin and end < load_begin, (load_begin - idle_begin) / 1e9),
            "load": (lambda begin, end: end >= load_begin and begin <= load_end, (load_end - load_begin) / 1e9),
        }
        record = {"type": "wait", "case": case, "operation": operation, "goal_ms": GOAL_MS, "sent": sent.record()}
        for phase, (is_in, seconds) in phases.items():
            latencies = [end - begin for begin, end in requests if is_in(begin, end)]
            errors = collections.Counter(kind for begin, end, kind in failed if is_in(begin, end))
            record[phase] = {"latency_ms": latency_ms(latencies), "operations": len(latencies), "failed": errors}
            results.add(measurement(case, operation, phase, record[phase], seconds, cores))
        results.add(record)
        keep(case, operation, requests, failed, idle_begin, load_begin, load_end)


def keep(case, operation, requests, failed, idle_begin, load_begin, load_end):
    """Writes every latency of a case to a file, with times from when the load began."""
    if not RECORD:
        return
    name = "-".join("".join(letter if letter.isalnum() else " " for letter in case).split())
    with open(pathlib.Path(RECORD) / f"{name}-{operation}s.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("begin_ns", "end_ns", "failed"))
        rows = [(begin, end, "") for begin, end in requests] + failed
        for begin, end, kind in sorted(rows):
            if end >= idle_begin and begin <= load_end:
                table.writerow((begin - load_begin, end - load_begin, kind))


def quantile(ordered, share):
    """The smallest of the values in order that a share of them does not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def latency_ms(latencies_ns):
    """The mean, the quantiles and the longest, in ms; all are 0 if there are no latencies."""
    if not latencies_ns:
        return dict.fromkeys(("mean", "p50", "p90", "p99", "p999", "max"), 0.0)
    ordered = sorted(latencies_ns)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1}
    return {"mean": statistics.fmean(ordered) / 1e6} | {
        name: quantile(ordered, share) / 1e6 for name, share in shares.items()
    }


def measurement(case, operation, phase, figures, seconds, cores):
    """A record as `annulus bench` writes it."""
    return {
        "type": "measurement",
        "operation": operation,
        "target": "",
        "series": f"{case}: {'idle' if phase == 'idle' else 'meanwhile'}",
        "dataset": "",
        "concurrency": 1,
        "operations": figures["operations"],
        "seconds": seconds,
        "rate_per_s": figures["operations"] / max(seconds, 1e-9),
        "latency_ms": figures["latency_ms"],
        "short_answers": 0,
        "errors": figures["failed"],
        "not_sent": 0,
        "client_cpu_cores": cores,
        "client_cores": len(os.sched_getaffinity(0)),
        "moments": [],
        "figures": {},
    }


# The loads.


class Sent:
    """The requests of a load."""

    def __init__(self):
        self.seconds = []  # of each that was answered
        self.failed = collections.Counter()  # by kind

    def fail(self, kind, text):
        self.failed[kind] += 1
        if self.failed[kind] == 1:
            print(f"  {kind}: {text[:300]}", file=sys.stderr)

    def record(self):
        longest = max(self.seconds, default=0)
        median = statistics.median(self.seconds) if self.seconds else 0
        return {"answered": len(self.seconds), "failed": self.failed, "median_s": median, "longest_s": longest}


def one_after_another(session, statements):
    """Executes statements one at a time, as many as begin within the time of a load."""
    sent, until = Sent(), time.monotonic() + LOAD_SECONDS
    for statement in statements:
        began = time.monotonic()
        if began > until:
            break
        try:
            session.execute(statement)
        except Exception as error:
            sent.fail(type(error).__name__, str(error))
        else:
            sent.seconds.append(time.monotonic() - began)
    return sent


def all_at_once(session, statements, rounds):
    """Executes all statements at once, in as many rounds as begin within the time of a load."""
    sent, until = Sent(), time.monotonic() + LOAD_SECONDS
    for _ in range(rounds):
        began = time.monotonic()
        if began > until:
            break
        under_way = [session.execute_async(statement) for statement in statements]
        for future in under_way:
            try:
                future.result()
            except Exception as error:
                sent.fail(type(error).__name__, str(error))
            else:
                # From when the round was sent, so that of the last is the time of the round.
                sent.seconds.append(time.monotonic() - began)
    return sent


def numbers(count, first=0):
    return list(range(first, first + count))


def additions(session):
    """Smaller elements for sets: bound, and written out."""
    for form in ("bound", "written out"):
        table = f"waits.sets_{form.replace(' ', '_')}"
        session.execute(f"CREATE TABLE {table} (p int PRIMARY KEY, s set<int>)")
        fill = session.prepare(f"INSERT INTO {table} (p, s) VALUES (?, ?)")
        for p in range(ROWS_ADDED_TO):
            session.execute(fill, (p, numbers(ADDED, 1_000_000)))
        if form == "bound":
            add = session.prepare(f"UPDATE {table} SET s = s + ? WHERE p = ?")
            statements = [add.bind((numbers(ADDED), p)) for p in range(ROWS_ADDED_TO)]
        else:
            literal = ", ".join(map(str, numbers(ADDED)))
            statements = [f"UPDATE {table} SET s = s + {{{literal}}} WHERE p = {p}" for p in range(ROWS_ADDED_TO)]
        yield f"`s = s + {{...}}`: {ADDED:,} smaller elements to {ADDED:,}, {form}", statements
        session.execute(f"DROP TABLE {table}")


def replacements(session):
    """A map that gets other keys each time."""
    session.execute("CREATE TABLE waits.maps (p int PRIMARY KEY, m map<int, int>)")
    replace = session.prepare("UPDATE waits.maps SET m = ? WHERE p = 1")
    one, other = (replace.bind((dict.fromkeys(numbers(REPLACED, first), 1),)) for first in (0, 1_000_000))
    session.execute(one)
    yield f"a map of {REPLACED:,} replaced by other keys", [other, one] * 20
    session.execute("DROP TABLE waits.maps")


def updates(session, server):
    """An int beside a large set, without and with a vector index on the table."""
    for name, beside in (("plain", ""), ("indexed", ", vector index")):
        table = f"waits.{name}"
        session.execute(f"CREATE TABLE {table} (p int PRIMARY KEY, i int, s set<int>, v vector<float, 3>)")
        if beside:
            session.execute(f"CREATE CUSTOM INDEX {name}_v ON {table} (v) {BY_VECTOR}")
        session.execute(f"INSERT INTO {table} (p, i, v) VALUES (1, 0, [1, 2, 3])")
        session.execute(session.prepare(f"UPDATE {table} SET s = ? WHERE p = 1"), (numbers(BESIDE),))
        if beside:
            server.wait_for_index("waits", f"{name}_v", 1)
        update = session.prepare(f"UPDATE {table} SET i = ? WHERE p = 1")
        yield f"an int beside a set of {BESIDE:,}{beside}", [update.bind((i,)) for i in range(1_000)]
        session.execute(f"DROP TABLE {table}")


def json_lists(session):
    """A row with a list of a megabyte of JSON."""
    session.execute("CREATE TABLE waits.lists (p int PRIMARY KEY, l list<int>)")
    insert = session.prepare("INSERT INTO waits.lists JSON ?")
    lists = (numbers(JSON_ELEMENTS, 100_000 + number) for number in range(JSON_LISTS))
    return [insert.bind((json.dumps({"p": 1, "l": elements}, separators=(",", ":")),)) for elements in lists]


def part_a(results, server, _pid):
    with small_table(server) as session, Waiting(server) as waiting:
        cases = itertools.chain(additions(session), replacements(session), updates(session, server))
        for case, statements in cases:
            wait_beside(results, waiting, case, functools.partial(one_after_another, session, statements))
        lists = json_lists(session)
        case = "`INSERT JSON` of lists of 1 MB to one row"
        load = functools.partial(one_after_another, session, lists * 3)
        wait_beside(results, waiting, f"{case}, {JSON_LISTS} one after another", load)
        load = functools.partial(all_at_once, session, lists, 3)
        wait_beside(results, waiting, f"{case}, {JSON_LISTS} at once", load)


@contextlib.contextmanager
def small_table(server):
    """A session, with the table of the client that waits."""
    with connected(server.host, server.cql_port) as cluster:
        session = cluster.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE waits.small (k int PRIMARY KEY, v int)")
        insert = session.prepare("INSERT INTO waits.small (k, v) VALUES (?, 0)")
        for future in [session.execute_async(insert, (k,)) for k in range(KEYS)]:
            future.result()
        yield session


class Reader:
    """A connection that asks for a row and drops the bytes of the answer, so that the load is the
    server's work and not this process'."""

    ERROR_BYTES = 400

    def __init__(self, server):
        self.socket = Wire(server).socket
        self.header, self.kept, self.left = b"", b"", 0

    def ask(self, frame):
        self.header, self.kept, self.left = b"", b"", 0
        self.socket.sendall(frame)

    def take(self, buffer):
        """Takes bytes that are there. Returns None until the answer is whole, then a code and a text,
        which are 0 and empty unless the answer is an error; -1 says that the connection has ended."""
        try:
            return self._take(buffer)
        except OSError as error:
            return -1, str(error)

    def _take(self, buffer):
        if len(self.header) < HEADER.size:
            some = self.socket.recv(HEADER.size - len(self.header))
            if not some:
                return -1, "the server has closed the connection"
            self.header += some
            if len(self.header) == HEADER.size:
                self.left = HEADER.unpack(self.header)[4]
            return None
        count = self.socket.recv_into(buffer, min(len(buffer), self.left))
        if not count:
            return -1, "the server has closed the connection"
        self.kept += bytes(buffer[: min(count, self.ERROR_BYTES - len(self.kept))])
        self.left -= count
        if self.left:
            return None
        if HEADER.unpack(self.header)[3] == ERROR:
            return struct.unpack_from(">i", self.kept)[0], self.kept[6:].decode(errors="replace")
        return 0, ""


def read_at_once(readers, statement):
    """Has all readers ask at once, in as many rounds as begin within the time for them."""
    sent, until = Sent(), time.monotonic() + READS_SECONDS
    body, buffer = query(statement), memoryview(bytearray(1 << 18))
    frame = HEADER.pack(4, 0, 0, QUERY, len(body)) + body
    open_readers = set(readers)
    for _ in range(READS_ROUNDS):
        if time.monotonic() > until or not open_readers:
            break
        for reader, code, text in answers(open_readers, frame, buffer, sent):
            if code:
                sent.fail("closed" if code < 0 else f"0x{code:04x}", text)
            if code < 0:
                open_readers.discard(reader)
    return sent


def answers(readers, frame, buffer, sent):
    """The readers with what each gets, in the order in which answers are whole. The times of those
    that are no errors are noted."""
    began, found = time.monotonic(), []
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            try:
                reader.ask(frame)
            except OSError as error:
                found.append((reader, -1, str(error)))
            else:
                selector.register(reader.socket, selectors.EVENT_READ, reader)
        while selector.get_map():
            ready = selector.select(STATEMENT_SECONDS_MAX)
            if not ready:
                silent = [key.data for key in selector.get_map().values()]
                return found + [(reader, -1, f"no answer within {STATEMENT_SECONDS_MAX} s") for reader in silent]
            for key, _ in ready:
                outcome = key.data.take(buffer)
                if outcome is None:
                    continue
                selector.unregister(key.fileobj)
                found.append((key.data, *outcome))
                if outcome[0] == 0:
                    sent.seconds.append(time.monotonic() - began)
    return found


def part_b(results, server, _pid):
    with small_table(server) as session, Waiting(server) as waiting:
        session.execute("CREATE TABLE waits.large (p int PRIMARY KEY, s set<int>)")
        session.execute(session.prepare("INSERT INTO waits.large (p, s) VALUES (1, ?)"), (numbers(READ_SET),))
        readers = [Reader(server) for _ in range(READS_AT_ONCE)]
        load = functools.partial(read_at_once, readers, "SELECT s FROM waits.large WHERE p = 1")
        wait_beside(results, waiting, f"{READS_AT_ONCE} reads at once of a row with a set of {READ_SET:,}", load)
        for reader in readers:
            reader.socket.close()


# What is left behind.


def resident(pid):
    """Bytes of a process that are in memory, and those of them that are its own."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    whole = sum(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
    own = sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean:", "Private_Dirty:")))
    return whole << 10, own << 10


def ask(wire, statement):
    answer = wire.query(statement)
    assert answer is not None, "the server has closed the connection"
    assert answer.error is None, (statement, answer.error)


def part_c(kind, results, server, pid):
    """Has tables made and dropped, each of another name, and reads the memory now and then."""
    whole_count, parts, seconds = HALVES[kind]
    count = max(parts, int(whole_count * SCALE))
    step = count // parts
    with Wire(server) as wire:
        ask(wire, KEYSPACE)
        time.sleep(FLUSH_SECONDS)
        done, ends, began = 0, [(0, *resident(pid))], time.monotonic()
        points(results, kind, *ends[0])
        for _ in range(2):
            until, this_half = time.monotonic() + seconds * SCALE / 2, 0
            while this_half < count and time.monotonic() < until:
                for statement in SCHEMA_CHANGES[kind]:
                    ask(wire, statement.replace("NAME", f"t{done}"))
                done, this_half = done + 1, this_half + 1
                if this_half % step == 0 and this_half < count:
                    until += FLUSH_SECONDS
                    time.sleep(FLUSH_SECONDS)
                    points(results, kind, done, *resident(pid))
            time.sleep(HALF_FLUSH_SECONDS)
            ends.append((done, *resident(pid)))
            points(results, kind, *ends[-1])
    results.add(
        {
            "type": "left",
            "kind": kind,
            "planned": count,
            "goal_bytes": GOAL_LEFT_BYTES,
            "seconds": time.monotonic() - began,
            "ends": [{"done": done, "resident": whole, "private": own} for done, whole, own in ends],
        }
    )


def points(results, kind, done, whole, own):
    print(f"{KINDS[kind]}, {done:,} times: {whole / 1e6:.1f} MB resident, {own / 1e6:.1f} MB private", file=sys.stderr)
    for series, size in (("resident", whole), ("private", own)):
        results.add(
            {
                "type": "point",
                "chart": f"memory after {KINDS[kind]} was made and dropped",
                "x_label": "times",
                "y_label": "MB",
                "series": series,
                "x": done,
                "y": size / 1e6,
            }
        )


# What it costs in the end.


def processor_seconds(pid):
    """Processor time of a process, to the nanosecond, by the clock that Linux has for each."""
    return time.clock_gettime((~pid << 3) | 2)


class Prepared:
    """A prepared statement of ints, executed without a driver, whose work would take longer than the
    server's."""

    def __init__(self, wire, statement):
        self.wire = wire
        answer = wire.ask(PREPARE, long_string(statement))
        assert answer.error is None, answer.error
        (length,) = struct.unpack_from(">H", answer.body, 4)
        self.id = answer.body[4 : 6 + length]

    def body(self, *values):
        head = self.id + struct.pack(">HBH", ONE, VALUES, len(values))
        return head + b"".join(value(struct.pack(">i", number)) for number in values)

    def execute(self, *values):
        answer = self.wire.ask(EXECUTE, self.body(*values))
        assert answer is not None and answer.error is None, answer and answer.error

    def execute_all(self, rows):
        """Executes for all rows, which are sent together."""
        bodies = [self.body(*row) for row in rows]
        frames = (HEADER.pack(4, 0, at, EXECUTE, len(body)) + body for at, body in enumerate(bodies))
        self.wire.socket.sendall(b"".join(frames))
        for _ in bodies:
            answer = self.wire.receive()
            assert answer is not None and answer.error is None, answer and answer.error


def mean_cost(pid, times, work):
    """Mean µs of the server's processor, and mean ms, of a call of `work`, which gets its number."""
    used, began = processor_seconds(pid), time.monotonic()
    for number in range(times):
        work(number)
    seconds = time.monotonic() - began
    return (processor_seconds(pid) - used) / times * 1e6, seconds / times * 1e3


def window_costs(wire, pid, steps):
    """Costs of the first and the last steps of a sliding window."""
    ask(wire, "CREATE TABLE waits.sliding (p int, c int, v int, PRIMARY KEY (p, c))")
    insert = Prepared(wire, "INSERT INTO waits.sliding (p, c, v) VALUES (?, ?, 1)")
    delete = Prepared(wire, "DELETE FROM waits.sliding WHERE p = ? AND c < ?")

    def slide(p, first, number):
        insert.execute(p, first + number)
        delete.execute(p, first + number)

    # Another partition warms up.
    mean_cost(pid, SAMPLE, functools.partial(slide, 0, 0))
    first = mean_cost(pid, SAMPLE, functools.partial(slide, 1, 0))
    mean_cost(pid, steps - 2 * SAMPLE, functools.partial(slide, 1, SAMPLE))
    return first, mean_cost(pid, SAMPLE, functools.partial(slide, 1, steps - SAMPLE))


def read_costs(wire, pid, updates_wanted):
    """Costs of reads of a partition with one row, changed a few times and many times."""
    ask(wire, "CREATE TABLE waits.changed (p int, c int, v int, PRIMARY KEY (p, c))")
    update = Prepared(wire, "UPDATE waits.changed SET v = ? WHERE p = 1 AND c = 1")
    select = Prepared(wire, "SELECT * FROM waits.changed WHERE p = ?")

    def change(times):
        for first in range(0, times, IN_FLIGHT):
            update.execute_all([(first + at,) for at in range(min(IN_FLIGHT, times - first))])

    def read(_):
        select.execute(1)

    change(SAMPLE)
    mean_cost(pid, READS, read)
    first = mean_cost(pid, READS, read)
    change(updates_wanted - SAMPLE)
    time.sleep(SETTLE_SECONDS)
    return first, mean_cost(pid, READS, read)


def part_d(results, server, pid):
    steps, changes = max(4 * SAMPLE, int(WINDOW_STEPS * SCALE)), max(2 * SAMPLE, int(UPDATES * SCALE))
    with Wire(server) as wire:
        ask(wire, KEYSPACE)
        window = window_costs(wire, pid, steps)
        reads = read_costs(wire, pid, changes)
    for what, (first, last) in (
        (f"`INSERT` and `DELETE ... WHERE p = 1 AND c < k`, the first and the last {SAMPLE} of {steps:,}", window),
        (f"read of a partition, after {SAMPLE} updates of its row and after {changes:,}", reads),
    ):
        record = {"type": "constant", "what": what, "goal_ratio": GOAL_RATIO}
        for name, (processor_us, ms) in (("first", first), ("last", last)):
            record[name] = {"processor_us": processor_us, "ms": ms}
        results.add(record)


# The tables.


class Results:
    """The file of records."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def add(self, record):
        with open(self.path, "a") as file:
            file.write(json.dumps(record) + "\n")

    def add_environment(self):
        """The machine, once in a file, as `annulus bench` writes it."""
        if self.path.exists():
            return
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        models = [line for line in lines if line.startswith("model name")]
        version = subprocess.check_output([os.environ["ANNULUS"], "--version"], text=True)
        self.add(
            {
                "type": "environment",
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "version": version.split()[-1],
                "command": "benchmarks/experiments/waits",
                "cpu": models[0].partition(": ")[2] if models else platform.processor(),
                "cores": len(os.sched_getaffinity(0)),
                "load": list(os.getloadavg()),
                "system": f"{platform.system()} {platform.release()}",
            }
        )


def spelled(reached):
    return "reached" if reached else "missed"


def failures(failed):
    return ", ".join(f"{count:,} {kind}" for kind, count in failed.items())


def wait_row(record):
    cells = [record["case"], f"{record['operation']}s", f"below {record['goal_ms']}"]
    for phase in ("idle", "load"):
        latency = record[phase]["latency_ms"]
        none = not record[phase]["operations"]
        cells += ["–" if none else f"{latency[name]:.2f}" for name in ("p50", "p99", "max")]
    failed, load, sent = record["load"]["failed"], record["load"], record["sent"]
    reached = load["operations"] and load["latency_ms"]["max"] < record["goal_ms"] and not failed
    cells.append(spelled(reached) + (f", failed: {failures(failed)}" if failed else ""))
    text = f"{sent['answered']:,}, {sent['median_s']:.3f} s, the longest {sent['longest_s']:.3f} s"
    cells.append(text + (f"; refused: {failures(sent['failed'])}" if sent["failed"] else ""))
    return cells


def left_row(record):
    before, half, end = record["ends"]
    left = end["resident"] - half["resident"]
    of_plan = "" if end["done"] == 2 * record["planned"] else f", of {record['planned']:,} each as time was up"
    cells = [f"{KINDS[record['kind']]}, {half['done']:,} and {end['done'] - half['done']:,} times{of_plan}"]
    cells.append(f"below {record['goal_bytes'] / 1e6:.0f} MB")
    for name in ("resident", "private"):
        cells += [f"{at[name] / 1e6:.1f}" for at in (before, half, end)]
        cells.append(f"{(end[name] - half[name]) / 1e6:.1f}")
    return cells + [spelled(left < record["goal_bytes"]), f"{record['seconds']:.0f}"]


def constant_row(record):
    first, last = record["first"], record["last"]
    ratio = last["processor_us"] / max(first["processor_us"], 1e-9)
    cells = [record["what"], f"at most {record['goal_ratio']}"]
    cells += [f"{first['processor_us']:.0f}", f"{last['processor_us']:.0f}", f"{ratio:.2f}"]
    return cells + [spelled(ratio <= record["goal_ratio"]), f"{first['ms']:.2f}", f"{last['ms']:.2f}"]


TABLES = {
    "wait": (
        wait_row,
        "| while another client sends | it waits for | goal: longest, ms | idle: median, ms | P99 | longest "
        "| meanwhile: median, ms | P99 | longest | | statements, median time |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --- | --- |",
    ),
    "left": (
        left_row,
        "| made and dropped | goal: the second half leaves | resident, MB: before | after the first half | after both "
        "| left | private, MB: before | after the first half | after both | left | | s |",
        "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- | --: |",
    ),
    "constant": (
        constant_row,
        "| processor time of | goal: last / first | first, µs | last, µs | last / first | | first, ms | last, ms |",
        "| --- | --: | --: | --: | --: | --- | --: | --: |",
    ),
}


def report(path):
    with open(path) as file:
        records = [json.loads(line) for line in file]
    between = ""
    for kind, (row, heading, rule) in TABLES.items():
        of_kind = [record for record in records if record["type"] == kind]
        if of_kind:
            print(f"{between}{heading}\n{rule}")
            between = "\n"
        for record in of_kind:
            print(f"| {' | '.join(row(record))} |")


PARTS = {"a": part_a, "b": part_b, "d": part_d} | {f"c-{kind}": functools.partial(part_c, kind) for kind in HALVES}


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "report":
        report(arguments[1])
        return 0
    if len(arguments) != 5 or arguments[0] not in PARTS:
        print(__doc__, file=sys.stderr)
        return 2
    part, cql, http, pid, path = arguments
    results = Results(path)
    results.add_environment()
    PARTS[part](results, Elsewhere(cql, http), int(pid))
    return 0


# The processes of the waiting client load this file, too.
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
