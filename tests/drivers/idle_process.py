"""Shows what an idle server costs: python tests/drivers/idle_process.py [SECONDS]

ANNULUS_BINARY names the program to measure, such as target/dist/annulus. The figures are the memory of the process that
is no file's, and how often a second one of its threads gave up the processor and was woken, counted over SECONDS (30)
from the moment that the server had settled for as long."""

import pathlib
import re
import sys
import tempfile
import time

from memory import anonymous_bytes
from process import BINARY
from server import Server


def switches(pid):
    """How often the threads of a process have waited, by thread."""
    counts = {}
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.MULTILINE)
        counts[status.parent.name] = int(found[1])
    return counts


def processor_seconds(pid):
    """The time on processors that a process has had."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder, Server(pathlib.Path(folder) / "data") as server:
        time.sleep(seconds)
        before, busy = switches(server.pid), processor_seconds(server.pid)
        time.sleep(seconds)
        after, busy = switches(server.pid), processor_seconds(server.pid) - busy
        woken = sum(count - before.get(thread, 0) for thread, count in after.items())
        print(f"{BINARY}: {anonymous_bytes(server) / 2**20:.1f} MiB, {len(after)} threads")
        print(f"{woken / seconds:.1f} wake-ups a second, {1000 * busy / seconds:.2f} ms of a processor a second")


if __name__ == "__main__":
    main()
