"""Where the program is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from annulus_db.errors import StartError

# That of a wheel.
_OF_PACKAGE = Path(__file__).resolve().parent / "bin" / "annulus"
_VARIABLE = "ANNULUS_BINARY"


def find_binary(binary: str | os.PathLike[str] | None = None) -> Path:
    """The program `annulus`: `binary`, else that of this package, of ANNULUS_BINARY, of PATH.

    Raises:
        StartError: there is none.
    """
    if binary is not None:
        return _checked(binary, "binary")
    if _OF_PACKAGE.is_file():
        return _checked(_OF_PACKAGE, "the package's program")
    if named := os.environ.get(_VARIABLE):
        return _checked(named, _VARIABLE)
    # An installed annulus-db without a program has a script of that name, which would start itself.
    found = shutil.which("annulus")
    if found is not None and not _is_script(found):
        return Path(found)
    raise StartError(
        "there is no program: this installation of annulus-db has none, and neither ANNULUS_BINARY nor PATH names one",
        hint=f"install the wheel for this system, or set {_VARIABLE} to the file",
    )


def _checked(binary: str | os.PathLike[str], name: str) -> Path:
    path = Path(binary)
    if not os.access(path, os.X_OK) or path.is_dir():
        raise StartError(f"{name} is {path}, which is no program", hint="name the file `annulus`, as it was built")
    return path.resolve()


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"#!"
