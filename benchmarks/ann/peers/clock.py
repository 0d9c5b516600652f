"""Measures processor time of this process or of a server's."""

import os
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def own() -> float:
    """The processor seconds of all threads of this process."""
    return time.process_time()


def of_process(pid: int):
    """Makes a function that tells the processor seconds of all threads of another process, in
    hundredths (proc(5))."""

    def seconds() -> float:
        # The second field is a name in brackets, which may have spaces. User and system time are
        # the 14th and 15th fields.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    return seconds


class Stopwatch:
    def __init__(self, cpu):
        self._cpu = cpu
        self._cpu_at_start, self._wall_at_start = cpu(), time.perf_counter()

    def elapsed(self) -> dict:
        return {
            "cpu_seconds": self._cpu() - self._cpu_at_start,
            "wall_seconds": time.perf_counter() - self._wall_at_start,
        }
