"""README's start, as one program."""

import contextlib
import io
import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[1] / "README.md"


def test_the_start_prints_what_it_stored(server):
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    at_home = 'Cluster(["127.0.0.1"]'
    assert at_home in program
    printed = io.StringIO()
    names = {}
    with contextlib.redirect_stdout(printed):
        exec(program.replace(at_home, f"{at_home}, port={server.cql_port}"), names)
    names["session"].cluster.shutdown()
    first, second, values = printed.getvalue().splitlines()
    near = {first.split()[1], second.split()[1]}
    assert near == {"1", "2"}, "both are candidates of the search for the vector"
    assert first.startswith("1 ") and first.endswith(" 1 black tea {'year': 2020, 'kind': 'drink'}")
    assert second.startswith("2 ") and second.endswith(" None a red spade {'year': 2003, 'kind': 'tool'}")
    assert values == "[b'two'] ['a', 'b']"
