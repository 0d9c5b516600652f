"""The recorded stories: steps with the answers of a real Cassandra, in one compressed file."""

import lzma
import pathlib

PATH = pathlib.Path(__file__).resolve().parent / "recorded.txt.xz"
QUOTE = "> "


def write(stories):
    """Writes the stories, each a list of (step, answer)."""
    texts = []
    for story in stories:
        blocks = []
        for step, answer in story:
            assert "\n\n" not in answer and not answer.startswith(QUOTE), answer
            blocks.append("\n".join(QUOTE + line for line in step.split("\n")) + "\n" + answer)
        texts.append("\n\n".join(blocks))
    PATH.write_bytes(lzma.compress("\n\n\n".join(texts).encode(), preset=9))


def read():
    """The stories, each a list of (step, answer)."""
    texts = lzma.decompress(PATH.read_bytes()).decode().split("\n\n\n")
    return [[_step_and_answer(block) for block in text.split("\n\n")] for text in texts]


def _step_and_answer(block):
    lines = block.split("\n")
    asked = [line.removeprefix(QUOTE) for line in lines if line.startswith(QUOTE)]
    return "\n".join(asked), "\n".join(lines[len(asked) :])
