"""Rules that need no model: prompts about what is current, and small differences that change a meaning.

Embeddings of "enable the log" and "disable the log" are close, and so are those of "the budget of
2023" and "of 2024". A rule finds such a pair by its words, and makes it a miss. `tune` measures
each threshold with these rules and without.
"""

from __future__ import annotations

import pathlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable

from annulus_semantic_cache import near_copies

_VOLATILE = [
    r"\b(today|tonight|tomorrow|yesterday|nowadays|current|currently|latest|newest|recent|recently)\b",
    r"\b(right|as of|until|by) now\b|\bnow\?$|\bat the moment\b|\bso far\b|\bup[- ]to[- ]date\b",
    r"\bthis (hour|morning|afternoon|evening|week|weekend|month|quarter|year|season)\b",
    r"\b(last|next|past) (hour|night|week|weekend|month|quarter|year|season|\d+ (hours|days|weeks))\b",
    r"\b(weather|forecast|news|headlines|breaking|stock price|share price|exchange rate|price of)\b",
    r"\bwhat (time|day|date) is it\b|\bwhat is the (time|date)\b|\bhow old is\b|\bstill (alive|open|available)\b",
    r"\b(heute|morgen|gestern|aktuelle?[nmrs]?|derzeit|neueste[nmrs]?|jetzt|diese[ns]? (woche|monat|jahr))\b",
    r"\b(aujourd'hui|actuel(le)?s?|actuellement|dernière?s?|hier|demain|maintenant)\b",
    r"\b(hoy|ayer|mañana|actual(es|mente)?|últim[oa]s?|ahora|esta semana)\b",
    r"今天|现在|最新|目前|昨天|明天|今日|現在|сегодня|сейчас|текущ|последн(яя|ий|ие|юю)|вчера|завтра",
]


class VolatileRule:
    """Which prompts are about the newest or current thing."""

    def __init__(self, expressions: Iterable[str] = tuple(_VOLATILE)) -> None:
        """Raises ValueError for a text that is no regular expression."""
        try:
            self._expressions = [re.compile(one, re.IGNORECASE) for one in expressions]
        except re.error as error:
            raise ValueError(f"{error.pattern!r} is no regular expression: {error}") from None

    @classmethod
    def of(cls, path: str) -> VolatileRule:
        """The rule of a file with a regular expression a line, or the built-in one for an empty path."""
        if not path:
            return cls()
        lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
        return cls(line for line in lines if line.strip() and not line.startswith("#"))

    def holds(self, text: str) -> bool:
        """Whether a prompt is volatile."""
        return any(one.search(text) for one in self._expressions)


_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
# Ordinals are not among them: "first shown", "second thoughts".
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), start=2)
} | {"hundred": "100", "thousand": "1000", "million": "1000000"}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_POLITE = re.compile(r"\b(don['’]?t mind|no (rush|worries|problem)|why not|why don['’]?t (you|we))\b", re.IGNORECASE)
_NEGATIONS = frozenset("no not never without none nobody nothing neither nor cannot except unless".split())
_WITHOUT_APOSTROPHE = frozenset(
    "dont doesnt didnt isnt arent wasnt cant couldnt wont wouldnt shouldnt hasnt havent".split()
)
_OPPOSITES = [
    pair.split("/")
    for pair in (
        "enable/disable on/off start/stop open/close open/closed increase/decrease raise/lower more/less most/least "
        "max/min maximum/minimum largest/smallest biggest/smallest highest/lowest longest/shortest fastest/slowest "
        "oldest/youngest best/worst good/bad before/after above/below over/under up/down left/right first/last "
        "add/remove insert/delete create/delete install/uninstall upgrade/downgrade upload/download import/export "
        "encode/decode encrypt/decrypt compress/decompress lock/unlock connect/disconnect subscribe/unsubscribe "
        "allow/deny allow/block allow/forbid show/hide hot/cold warm/cold big/small large/small long/short "
        "fast/slow high/low old/new old/young buy/sell borrow/lend send/receive push/pull read/write "
        "input/output client/server frontend/backend public/private local/remote local/global inner/outer "
        "male/female men/women man/woman boy/girl boys/girls mother/father his/her north/south east/west "
        "winter/summer morning/evening day/night safe/dangerous safe/unsafe legal/illegal possible/impossible "
        "advantages/disadvantages pros/cons benefits/risks benefits/drawbacks positive/negative win/lose gain/lose "
        "ascending/descending asc/desc vertical/horizontal row/column rows/columns synchronous/asynchronous "
        "merge/split mount/unmount attach/detach freeze/thaw melt/freeze inhale/exhale arrive/depart arrival/departure "
        "entrance/exit parent/child father/son cause/prevent with/without grant/revoke tighten/loosen accept/reject "
        "approve/reject hire/fire deposit/withdraw sender/recipient teacher/student inside/outside cats/dogs cat/dog"
    ).split()
]


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text)]


def _numbers(text: str) -> Counter[str]:
    found = Counter(_NUMBER.findall(text))
    found.update(_NUMBER_WORDS[word] for word in map(str.lower, _words(text)) if word in _NUMBER_WORDS)
    return found


def _negations(text: str) -> int:
    words = [word.lower() for word in _words(_POLITE.sub(" ", text))]
    return sum(word in _NEGATIONS or word.endswith("n't") or word in _WITHOUT_APOSTROPHE for word in words)


def _opposed(asked: str, stored: str) -> bool:
    ours = {word.lower() for word in _words(asked)}
    theirs = {word.lower() for word in _words(stored)}
    return any(
        (a in ours and b in theirs and b not in ours and a not in theirs)
        or (b in ours and a in theirs and a not in ours and b not in theirs)
        for a, b in _OPPOSITES
    )


# Of these a question has one, and it says what is asked for.
_ASKED_FOR = frozenset("who when where why".split())


def _asked_otherwise(asked: str, stored: str) -> bool:
    ours = _ASKED_FOR.intersection(map(str.lower, _words(asked)))
    theirs = _ASKED_FOR.intersection(map(str.lower, _words(stored)))
    return bool(ours and theirs) and not ours & theirs


_WAY = re.compile(
    r"\bfrom (?:(?:a|an|the|my|our|your) )?(\w+)\b.*?\b(?:to|into|onto) (?:(?:a|an|the|my|our|your) )?(\w+)\b",
    re.IGNORECASE,
)


def _turned_round(asked: str, stored: str) -> bool:
    """From a laptop to a server, and from a server to a laptop."""
    ours, theirs = _WAY.search(asked.lower()), _WAY.search(stored.lower())
    return ours is not None and theirs is not None and ours.groups() == theirs.groups()[::-1] and ours[1] != ours[2]


def _names(text: str) -> set[str]:
    """Words with a capital that don't begin a sentence, and those of capitals alone, in lower case."""
    found = set()
    for sentence in re.split(r"(?<=[.!?:;\n])\s+", text):
        for place, word in enumerate(_words(sentence)):
            capitals = sum(letter.isupper() for letter in word)
            if word in ("I", "I'm", "I've", "I'd", "I'll") or not capitals:
                continue
            if place > 0 or capitals > 1:
                found.add(word.lower().removesuffix("'s"))
    return found


def _renamed(asked: str, stored: str) -> bool:
    ours = {word.lower().removesuffix("'s") for word in _words(asked)}
    theirs = {word.lower().removesuffix("'s") for word in _words(stored)}
    return bool(_names(asked) - theirs or _names(stored) - ours)


def _signs(text: str) -> Counter[str]:
    """Letters that are not Latin, emoji and other signs, which the bundled English model hardly tells apart."""
    plain = unicodedata.normalize("NFKD", text)
    return Counter(sign for sign in plain if ord(sign) > 0x24F and unicodedata.category(sign)[0] in "LS")


# Signs such as those of C++ and C#, which tokenizers and readers of words pass over.
_MARKED = re.compile(r"\b[A-Za-z]+(?:\+\+|#)|\.[a-z]{2,4}\b")


RULES: dict[str, Callable[[str, str], bool]] = {
    "numbers": lambda asked, stored: _numbers(asked) != _numbers(stored),
    "negation": lambda asked, stored: (_negations(asked) > 0) != (_negations(stored) > 0),
    "opposites": lambda asked, stored: _opposed(asked, stored) or _turned_round(asked, stored),
    "asked": _asked_otherwise,
    "names": lambda asked, stored: (
        _renamed(asked, stored)
        or {one.lower() for one in _MARKED.findall(asked)} != {one.lower() for one in _MARKED.findall(stored)}
    ),
    "signs": lambda asked, stored: _signs(asked) != _signs(stored),
    **near_copies.RULES,
}


def difference(asked: str, stored: str, rules: Iterable[str]) -> str | None:
    """The first rule by which two prompts mean different things, None if none does."""
    return next((rule for rule in rules if RULES[rule](asked, stored)), None)
