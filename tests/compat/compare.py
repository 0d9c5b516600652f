"""Finds answers that differ. Rows, names, types and codes of errors count; the words of errors and
warnings do not."""

import dataclasses


@dataclasses.dataclass
class Answers:
    """Two different answers to a step."""

    step: str
    expected: str
    got: str

    def __str__(self):
        return f"{self.step}\n--- Cassandra\n{self.expected}\n--- Annulus\n{self.got}"

    def is_as_told_in(self, difference):
        return self.step == difference.step and what_counts(self.got) == what_counts(difference.answer)


def differences(golden, replayed):
    """The pairs of answers that differ, of two lists of (step, answer)."""
    pairs = zip(golden, replayed, strict=True)
    return [
        Answers(step, expected, got)
        for (step, expected), (_, got) in pairs
        if what_counts(expected) != what_counts(got)
    ]


def what_counts(answer):
    lines = [line for line in answer.split("\n") if not line.startswith("warning: ")]
    return [line.partition(": ")[0] if line.startswith("error ") else line for line in lines]
