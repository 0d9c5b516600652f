"""Becomes a program that ends with its parent: `python _launch.py PARENT PROGRAM ARGUMENT...`.

A program of its own, because Python's `preexec_fn` would fork a process that may have threads. It is run
without `site`, and imports nothing that takes long.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, program = int(sys.argv[1]), sys.argv[2]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # It may have ended before the call.
    if os.getppid() == parent:
        try:
            os.execv(program, ["annulus", *sys.argv[3:]])
        except OSError as error:
            sys.exit(f"{program} can't be run: {error}")
