#!/usr/bin/env python3
"""Traces which thread has which processor while an index service answers one search, and two that
come at the same time.

    trace.py URL QUERIES.fbin PID DIRECTORY

Searches are posted to URL; PID is the service's process; files needed during the run go to
DIRECTORY. For one search and for two, the moment of median length is written as a table. It has a
line for each change of what a processor does, with the microseconds since the first byte was sent.
Below it stands which thread was preempted by which, over all such moments.

Needs Linux, `perf` and the right to trace the scheduler: root.
"""

import collections
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
from typing import NamedTuple

MOMENTS = 21
# The pause between two moments, so that all threads go to sleep.
PAUSE_S = 0.02
WARM_UP = 200
TIMEOUT_S = 10
EVENT = re.compile(r"\[(\d+)\]\s+(\d+)\.(\d{9}): sched:(sched_switch|sched_waking): (.*)")
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) ")
WAKING = re.compile(r"comm=(.*) pid=(\d+) ")
IDLE = "0"


def main():
    url, queries, pid, directory = sys.argv[1:]
    directory = pathlib.Path(directory)
    trace, moments = directory / "perf.data", directory / "moments.json"
    record = ["perf", "record", "-q", "-a", "-c", "1", "-k", "CLOCK_MONOTONIC", "-e", "sched:sched_switch,sched:sched_waking"]
    asking = [sys.executable, __file__, "--ask", url, queries, str(moments)]
    subprocess.run([*record, "-o", trace, "--", *asking], check=True, stdout=sys.stderr)
    told = json.loads(moments.read_text())
    service = {task.name for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}
    events = whole(read(trace))
    for at_once, title in ((1, "One search"), (2, "Two searches at once")):
        mine = sorted((m for m in told["moments"] if m["at_once"] == at_once), key=lambda m: m["end"] - m["begin"])
        print(f"\n## {title}\n")
        names = Names(service, str(told["client"]))
        show(mine[len(mine) // 2], events, names)
        print(f"\nIn {len(mine)} such moments:")
        for (one, other), times in preempted(mine, events, names).most_common():
            print(f"    {one} was preempted by {other} {times} times")


class Event(NamedTuple):
    """An event of the scheduler: a thread is woken, or a processor goes from one thread to
    another."""

    at: int  # nanoseconds
    processor: int
    # (number, name)
    thread: tuple
    # The thread that the processor goes on with; absent if the thread is woken.
    after: tuple | None = None
    is_preempted: bool = False


class Names:
    """Names threads. Those of the service are numbered as they appear."""

    def __init__(self, service, client):
        self._service, self._client, self._numbers = service, client, {}

    def of(self, thread):
        tid, comm = thread
        if tid == IDLE:
            return "idle"
        if tid == self._client:
            return "client"
        if tid in self._service:
            return f"service {self._numbers.setdefault(tid, len(self._numbers) + 1)}"
        return comm


def read(trace):
    """Yields the events of a trace."""
    script = ["perf", "script", "--ns", "-i", trace, "-F", "cpu,time,event,trace"]
    for line in subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines():
        if not (found := EVENT.search(line)):
            continue
        processor, seconds, fraction, event, rest = found.groups()
        at, processor = int(seconds) * 10**9 + int(fraction), int(processor)
        if event == "sched_waking":
            comm, tid = WAKING.match(rest).groups()
            yield Event(at, processor, (tid, comm))
        else:
            comm, tid, state, next_comm, next_tid = SWITCH.match(rest).groups()
            yield Event(at, processor, (tid, comm), (next_tid, next_comm), state.startswith("R") and tid != IDLE)


def whole(events):
    """Adds events that are missing. Of a processor that was idle some machines don't tell what it
    goes on with. It is taken to do so when that thread was last woken, or when the processor last
    did something else."""
    found, busy, last, woken = [], {}, {}, {}
    for event in events:
        processor = event.processor
        if event.after is None:
            woken[event.thread[0]] = event.at
        else:
            if busy.get(processor, event.thread[0]) != event.thread[0]:
                at = max(last[processor], woken.get(event.thread[0], 0))
                found.append(Event(at, processor, (IDLE, "swapper"), event.thread))
            busy[processor], last[processor] = event.after[0], event.at
        found.append(event)
    return sorted(found, key=lambda event: event.at)


def show(moment, events, names):
    """Prints a moment as a table."""
    busy = {event.processor: "idle" for event in events}
    for event in events:
        if event.at < moment["begin"] and event.after is not None:
            busy[event.processor] = names.of(event.after)
    processors = sorted(busy)
    print("      µs  " + "".join(f"{f'processor {processor}':<18}" for processor in processors).rstrip())

    def line(at, what=""):
        cells = "".join(f"{busy[processor]:<18}" for processor in processors)
        print(f"{(at - moment['begin']) / 1000:>8.1f}  {cells}{what}".rstrip())

    line(moment["begin"])
    for event in events:
        if not moment["begin"] <= event.at <= moment["end"]:
            continue
        if event.after is None:
            line(event.at, f"{busy[event.processor]} wakes {names.of(event.thread)}")
        else:
            busy[event.processor] = names.of(event.after)
            line(event.at, f"{names.of(event.thread)} is preempted" if event.is_preempted else "")
    line(moment["end"], "answered")


def preempted(moments, events, names):
    """Prints how often a thread that could have gone on gave way to which other one."""
    times = collections.Counter()
    for event in events:
        if event.is_preempted and any(moment["begin"] <= event.at <= moment["end"] for moment in moments):
            times[tuple(names.of(thread).split()[0] for thread in (event.thread, event.after))] += 1
    return times


def ask(url, queries, moments):
    """Sends searches, one at a time and two at once in turns, and writes their times to the file
    `moments`."""
    address = urllib.parse.urlsplit(url)
    with open(queries, "rb") as file:
        _, dimensions = struct.unpack("<II", file.read(8))
        body = file.read(4 * dimensions)
    head = (
        f"POST {address.path}?limit=10 HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/octet-stream\r\n"
        f"Accept: application/vnd.annulus.neighbours.v1\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body
    connections = [socket.create_connection((address.hostname, address.port), TIMEOUT_S) for _ in range(2)]
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def search(at_once):
        begin = time.monotonic_ns()
        for connection in connections[:at_once]:
            connection.sendall(request)
        for connection in connections[:at_once]:
            take(connection)
        return {"at_once": at_once, "begin": begin, "end": time.monotonic_ns()}

    for _ in range(WARM_UP):
        search(2)
    found = []
    for _ in range(MOMENTS):
        for at_once in (1, 2):
            time.sleep(PAUSE_S)
            found.append(search(at_once))
    # The id of this process is that of its only thread.
    pathlib.Path(moments).write_text(json.dumps({"client": os.getpid(), "moments": found}))


def take(connection):
    """Reads one whole answer."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        sys.exit(f"{head.splitlines()[0].decode()}: {body.decode(errors='replace')}")
    [length] = re.findall(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length):
        body += received(connection)


def received(connection):
    """The next bytes that have come."""
    return connection.recv(1 << 16) or sys.exit("the service closed the connection")


if __name__ == "__main__":
    if sys.argv[1] == "--ask":
        ask(*sys.argv[2:])
    else:
        main()
