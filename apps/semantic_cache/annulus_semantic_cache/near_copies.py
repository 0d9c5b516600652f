"""Rules for two prompts that are nearly the same word by word.

An embedding hardly sees that two words change places, or that one word of ten is another. So these
rules compare words. Each returns whether two prompts mean different things. They are strict: a miss
costs a call of the model, a false hit is a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_WORD = re.compile(r"-?\d[\d.,:/]*|[^\W_]+(?:['’][^\W_]+)*[+#]*")
_IGNORED = frozenset("a an the my our your please".split())
# Words that may come in addition: politeness, and the words between the keywords of a search.
_FILLERS = frozenset(
    "some kindly pls plz hi hello hey dear excuse thanks thank thx you much very so just me for us could can would "
    "will may might i i'd like love want need to know tell show give ask if don't mind be kind good morning evening "
    "sorry trouble bother help question quick exactly actually really properly perhaps maybe there grateful "
    "appreciate sir madam moment have how what what's is are do does did of in on from between and".split()
)
# Words of one meaning in most requests.
_SYNONYMS = [
    frozenset(group.split("/"))
    for group in (
        "delete/remove which/what explain/describe buy/purchase story/tale list/name cancel/terminate "
        "correct/fix/repair create/make/build begin/start big/large fast/quick fastest/quickest bring/take"
    ).split()
]


# "How do I", "how can you" and "how to" ask for the same.
_HOW = re.compile(r"\bhow (?:(?:do|can|could|should|would|might) (?:i|you|we|one)|to)\b")


def _words(text: str) -> list[str]:
    found = _WORD.findall(_HOW.sub("how", text.lower().replace("’", "'")))
    return [word for word in found if word not in _IGNORED]


def _places(ours: list[str], theirs: list[str]) -> list[int] | None:
    """Where two lists of one length differ, None for lists of two lengths."""
    if len(ours) != len(theirs):
        return None
    return [place for place, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one != other]


def _edits(one: str, other: str) -> int:
    """How many letters are typed, left out or changed to get from one word to the other (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, its in enumerate(other, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (letter != its))
    return row[-1]


def _one_meaning(one: str, other: str) -> bool:
    """Whether a word is the other with typing errors, in another form, or a synonym."""
    if any({one, other} <= group for group in _SYNONYMS):
        return True
    if one[0] != other[0] or any(letter.isdigit() for letter in one + other):
        return False
    return _edits(one, other) <= min(2, len(one) // 3)


def swapped(asked: str, stored: str) -> bool:
    """Two words change places: "JSON to YAML" and "YAML to JSON". Around "and" and "or" that changes nothing."""
    ours, theirs = _words(asked), _words(stored)
    match _places(ours, theirs):
        case [first, second] if ours[first] == theirs[second] and ours[second] == theirs[first]:
            return not {"and", "or"} & set(ours[first:second])
    return False


def replaced(asked: str, stored: str) -> bool:
    """One word is another in the same place: "in feet" and "in metres", "when" and "why"."""
    ours, theirs = _words(asked), _words(stored)
    match _places(ours, theirs):
        case [place] if len(ours) > 2:
            return not _one_meaning(ours[place], theirs[place])
    return False


def added(asked: str, stored: str) -> bool:
    """One prompt is the other with a condition: "cancel an order" and "cancel an order that has shipped"."""
    fewer, more = sorted((_words(asked), _words(stored)), key=len)
    if len(fewer) < 2:
        return False
    left = iter(more)
    extra: list[str] = []
    for word in fewer:
        for other in left:
            if other == word:
                break
            extra.append(other)
        else:
            return False
    return any(word not in _FILLERS for word in [*extra, *left])


RULES: dict[str, Callable[[str, str], bool]] = {"swapped": swapped, "replaced": replaced, "added": added}
