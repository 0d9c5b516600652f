"""Memory of a server, and open files enough for a thousand clients."""

import pathlib
import resource


def anonymous_bytes(server):
    """The memory of a server's process that is no file's, in bytes."""
    for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the system does not tell RssAnon")


def may_open(files):
    """Raises this process' limit of open files if it is lower. Returns whether the system allows so many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        return False
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return True
