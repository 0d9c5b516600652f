"""The command `annulus`: this process becomes the program."""

from __future__ import annotations

import os
import sys

from annulus_db._binary import find_binary
from annulus_db.errors import StartError


def main() -> None:
    """Runs the program with the arguments of this process."""
    try:
        binary = find_binary()
    except StartError as error:
        sys.exit(f"annulus: {error}")
    os.execv(binary, ["annulus", *sys.argv[1:]])


if __name__ == "__main__":
    main()
