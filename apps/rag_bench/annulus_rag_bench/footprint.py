"""What processes and directories take."""

from collections.abc import Iterable
from pathlib import Path

import psutil

BLOCK_BYTES = 512


def disk_bytes(directory: Path) -> int:
    """What the files of a directory take on the disk: what is reserved and not yet written counts, holes do not."""
    total = 0
    for file in directory.rglob("*"):
        try:
            status = file.lstat()
        except FileNotFoundError:
            # A file may go while others are counted.
            continue
        total += status.st_blocks * BLOCK_BYTES
    return total


def memory_bytes(pids: Iterable[int]) -> int:
    """The memory of processes. What several share is counted once, as each has its part of it (PSS)."""
    return sum(int(psutil.Process(pid).memory_full_info().pss) for pid in pids)


def family_of(pid: int) -> list[int]:
    """A process and those that it started."""
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]
