"""Reads and writes statement files and golden files.

A statement begins in the first column and goes on in indented lines. `--` begins a line of comment.
Lines that begin with `@` belong to the statement after them:

    @page 3                 read it in pages of three rows
    @empty                  show an empty last page, too, by a line of its own
    @prepare                only prepare it
    @bind [1, 'a']          prepare it and execute it with these values (Python);
                            several are executed in turn
    @send [typed('int', 1)] send it unprepared with these values
    @wait 2                 wait that many seconds first
    @as alice secret        as another user, with this password

A golden file repeats each step, every line after `> `, and has the answer below it. differences.txt
has the same form with Annulus's own answers, below a heading for each reason: `# area: why`.
"""

import dataclasses
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
DIRECTIVES = {"page", "empty", "prepare", "bind", "send", "wait", "as"}
# Areas that need a server that asks for logins; all others need one that asks for none.
WITH_LOGIN = {"roles"}
QUOTE = "> "


@dataclasses.dataclass
class Step:
    lines: list  # as written, directives first

    @property
    def text(self):
        return "\n".join(self.lines)

    @property
    def statement(self):
        return "\n".join(line for line in self.lines if not line.startswith("@"))

    def directive(self, name):
        """The arguments of each directive of that name."""
        found = (line[1:].partition(" ") for line in self.lines if line.startswith("@"))
        return [argument for word, _, argument in found if word == name]


@dataclasses.dataclass
class Difference:
    """An answer of Annulus that differs from Cassandra's on purpose."""

    area: str
    reason: str
    step: str
    answer: str


def areas():
    """The names of the statement files."""
    return sorted(path.stem for path in (HERE / "statements").glob("*.cql"))


def read_statements(area):
    """The steps of a statement file."""
    steps, directives = [], []
    for number, line in enumerate((HERE / "statements" / f"{area}.cql").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("--"):
            continue
        if line.startswith("@"):
            assert line[1:].split(" ")[0] in DIRECTIVES, f"{area}.cql:{number}: unknown directive {line}"
            directives.append(line)
        elif line[0].isspace():
            assert steps and not directives, f"{area}.cql:{number}: no statement to continue"
            steps[-1].lines.append(line)
        else:
            steps.append(Step([*directives, line]))
            directives = []
    assert not directives, f"{area}.cql: directives without a statement at the end"
    return steps


def read_golden(area):
    """(text of the step, answer) of each step."""
    return [_step_and_answer(block) for block in _blocks(HERE / "golden" / f"{area}.txt")]


def read_differences():
    """The deliberate differences."""
    found = []
    for block in _blocks(HERE / "differences.txt"):
        if block.startswith("# "):
            area, _, reason = block.replace("\n#", "").removeprefix("# ").partition(": ")
            assert area and reason, block
        else:
            found.append(Difference(area, reason, *_step_and_answer(block)))
    return found


def _blocks(path):
    return path.read_text().strip("\n").split("\n\n")


def _step_and_answer(block):
    lines = block.split("\n")
    asked = [line.removeprefix(QUOTE) for line in lines if line.startswith(QUOTE)]
    return "\n".join(asked), "\n".join(lines[len(asked) :])


def write_golden(area, pairs):
    """Writes what `read_golden` reads."""
    blocks = []
    for text, answer in pairs:
        assert "\n\n" not in answer and not answer.startswith(QUOTE), answer
        blocks.append("\n".join(QUOTE + line for line in text.split("\n")) + "\n" + answer)
    (HERE / "golden" / f"{area}.txt").write_text("\n\n".join(blocks) + "\n")


def read_own_words():
    """The statements with common mistakes that Annulus explains in words of its own."""
    lines = (HERE / "own_words.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("--")}
