"""README's start, as one program."""

import contextlib
import io
import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def test_the_start_prints_what_it_stored(binary, monkeypatch):
    monkeypatch.setenv("ANNULUS_BINARY", str(binary))
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    first, *found, last = printed.getvalue().splitlines()
    assert (first, last) == ("cocoa", "{'name': 'spade'}")
    assert len(found) == 1 and "'name': 'tea'" in found[0], "one row costs less than 5"
