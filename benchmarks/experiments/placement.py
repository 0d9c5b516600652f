"""Prints on which cores threads were put when they woke, and how long threads that could run
waited, from a trace of the system's scheduler.

    placement.py TRACE SERVER CLIENT

TRACE is the output of `perf script --ns -F comm,pid,tid,cpu,time,event,trace` for sched_switch,
sched_wakeup and sched_migrate_task. SERVER and CLIENT are the ids of their processes.

A thread waits from when it was woken, or lost its core to another thread, until it runs.
"""

import re
import sys

LINE = re.compile(r"^\s*.*?\s+(-?\d+)/(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+):\s+sched:(\w+):\s+(.*)$")
SWITCH = re.compile(r"prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) next_prio=")
WAKE = re.compile(r"comm=.* pid=(\d+) prio=-?\d+ target_cpu=(\d+)")
MIGRATE = re.compile(r"pid=(\d+) .*dest_cpu=(\d+)")
IDLE = 0
LONG_NS = 300_000


def read(path):
    """Reads the events in their order, and the process of each thread that was ever seen
    running."""
    events, process_of = [], {}
    with open(path) as trace:
        for line in trace:
            match = LINE.match(line)
            if not match:
                continue
            process, thread, core, seconds, nanoseconds, kind, rest = match.groups()
            process_of[int(thread)] = int(process)
            events.append((int(seconds) * 10**9 + int(nanoseconds), int(core), kind, rest))
    if not events:
        sys.exit(f"{path}: no event of the scheduler; was perf allowed to trace?")
    return sorted(events), process_of


class Wait:
    def __init__(self, core, how, began):
        self.core, self.how, self.began = core, how, began
        self.other_idle_ns = 0


def follow(events, cores):
    """Returns wakes as (thread, whether its core was busy, whether another was idle), and waits as
    (thread, how it began, ns, ns of it in which another core was idle)."""
    running = dict.fromkeys(cores, IDLE)
    waiting, wakes, waits = {}, [], []
    last = events[0][0]

    def another_idle(core):
        return any(thread == IDLE for other, thread in running.items() if other != core)

    for now, core, kind, rest in events:
        for wait in waiting.values():
            if another_idle(wait.core):
                wait.other_idle_ns += now - last
        last = now
        if kind == "sched_wakeup":
            thread, target = map(int, WAKE.search(rest).groups())
            if thread not in waiting and thread not in running.values():
                waiting[thread] = Wait(target, "woken", now)
                wakes.append((thread, running[target] != IDLE, another_idle(target)))
        elif kind == "sched_migrate_task":
            thread, target = map(int, MIGRATE.search(rest).groups())
            if thread in waiting:
                waiting[thread].core = target
        elif kind == "sched_switch":
            before, state, thread = SWITCH.search(rest).groups()
            running[core] = int(thread)
            if state.startswith("R") and int(before) != IDLE:
                waiting[int(before)] = Wait(core, "lost its core", now)
            wait = waiting.pop(int(thread), None)
            if wait:
                waits.append((int(thread), wait.how, now - wait.began, wait.other_idle_ns))
    return wakes, waits


def main(path, server, client):
    events, process_of = read(path)
    cores = sorted({core for _, core, _, _ in events})
    wakes, waits = follow(events, cores)
    switches = sum(kind == "sched_switch" for _, _, kind, _ in events)
    print(f"{len(cores)} cores, {(events[-1][0] - events[0][0]) / 1e6:.0f} ms, {switches:,} switches\n")
    print("| threads of the | woken | onto a busy core, another idle | how it came to wait | for over 0.3 ms | ms in all, longest | of these another core idle, % |")
    print("| --- | --: | --: | --- | --: | --: | --: |")
    for role, process in (("server", server), ("client", client)):
        onto = [busy and idle for thread, busy, idle in wakes if process_of.get(thread) == process]
        for how in ("woken", "lost its core"):
            long = [wait for wait in waits if process_of.get(wait[0]) == process and wait[1] == how and wait[2] > LONG_NS]
            total = sum(wait[2] for wait in long)
            idle = 100 * sum(wait[3] for wait in long) / total if total else 0
            longest = max((wait[2] for wait in long), default=0)
            print(f"| {role} | {len(onto):,} | {sum(onto):,} | {how} | {len(long):,} | {total / 1e6:.0f}, {longest / 1e6:.1f} | {idle:.0f} |")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
