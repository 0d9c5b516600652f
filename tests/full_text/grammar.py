"""The grammar of text queries, by docs/text.md: a query as a tree of clauses.

    cat dog             either, and better with both
    cat AND dog         both; AND binds before OR, and OR is what comes between two without a word
    cat NOT dog, -dog   without it
    +cat dog            cat for certain
    (cat OR dog)^2      a group, twice the weight
    "black cat"~2       words side by side, or so many places apart
    wor*  word~1        what begins so, what is nearly so
    \\"                  an escaped character is no operator"""

import collections
import dataclasses

from analysis import folded, tokens

Nothing = collections.namedtuple("Nothing", "")
Term = collections.namedtuple("Term", "term boost")
Phrase = collections.namedtuple("Phrase", "terms slop boost")
Prefix = collections.namedtuple("Prefix", "prefix boost")
Fuzzy = collections.namedtuple("Fuzzy", "term distance boost")

SPECIAL = set('+-()"*~^\\')
"""What means something in a query, and must be escaped to be itself."""


@dataclasses.dataclass
class Boolean:
    must: list = dataclasses.field(default_factory=list)
    should: list = dataclasses.field(default_factory=list)
    must_not: list = dataclasses.field(default_factory=list)


class Malformed(Exception):
    """A query that has no meaning, and the place in it, counted from 1."""

    def __init__(self, place, fault):
        super().__init__(f"{fault} at character {place + 1}")
        self.place = place + 1


def words_as_they_are(text):
    """The query for the words of a text that has no operators: each operator in it is escaped."""
    escaped = "".join("\\" + character if character in SPECIAL else character for character in text)
    return " ".join("\\" + word if word in ("AND", "OR", "NOT") else word for word in escaped.split())


def parse(text, analyzer="standard"):
    parser = _Parser(text, analyzer)
    clause = parser.any_of()
    if parser.at < len(text):
        raise Malformed(parser.at, "a parenthesis that closes nothing")
    return clause


class _Parser:
    def __init__(self, text, analyzer):
        self.text, self.analyzer, self.at, self.is_empty = text, analyzer, 0, True

    def any_of(self):
        """Clauses without a word between them, or OR."""
        clause, after_or, self.is_empty = Boolean(), None, True
        while not self._ends():
            for sign, one in self._all_of():
                _put(clause, sign, one)
            self.is_empty, after_or = False, None
            self._skip()
            if self._word() == "OR":
                after_or = self.at
                self.at += 2
        if after_or is not None:
            raise Malformed(after_or, "nothing after OR")
        return _simple(clause)

    def _ends(self):
        """Whether nothing is left of this group, after white space."""
        self._skip()
        return self.at == len(self.text) or self.text[self.at] == ")"

    def _all_of(self):
        """[(sign, clause)] of clauses that AND joins, as one."""
        joined = [self._signed()]
        while self._skip() or self._word() == "AND":
            place = self.at
            self.at += 3
            if self._ends():
                raise Malformed(place, "nothing after AND")
            joined.append(self._signed())
        if len(joined) == 1:
            return joined
        clause = Boolean()
        for sign, one in joined:
            _put(clause, sign or "+", one)
        return [("", _simple(clause))]

    def _signed(self):
        word, place = self._word(), self.at
        if word in ("AND", "OR"):
            raise Malformed(place, f"no word before {word}")
        if word == "NOT":
            self.at += 3
            if self._ends():
                raise Malformed(place, "nothing after NOT")
            return "-", self._primary()
        sign = self.text[place] if self.text[place] in "+-" else ""
        self.at += len(sign)
        if sign and (self._ends() or self.at > place + 1):
            raise Malformed(place, f"no word directly after {sign}")
        return sign, self._primary()

    def _primary(self):
        if self.text[self.at] == "(":
            return self._group()
        if self.text[self.at] == '"':
            return self._phrase()
        start, word = self.at, self._raw(")(\"~^*")
        if word in ("AND", "OR", "NOT") and not self._is("*") and not self._is("~") and self.text[start] != "\\":
            raise Malformed(start, "an operator in place of a word")
        if self._is("*"):
            if not word:
                raise Malformed(start, "a prefix of nothing")
            self.at += 1
            words, boost = folded(word, self.analyzer), self._boost()
            return Prefix(words[-1], boost) if words else Nothing()
        if not word:
            raise Malformed(start, "no word")
        if self._is("~"):
            self.at += 1
            digits = self._digits()
            distance = int(digits) if digits else 2
            words, boost = folded(word, self.analyzer), self._boost()
            return Fuzzy(words[-1], distance, boost) if words else Nothing()
        return _of_tokens(tokens(word, self.analyzer), 0, self._boost())

    def _group(self):
        start = self.at
        self.at += 1
        clause = self.any_of()
        if not self._is(")"):
            raise Malformed(start, "a parenthesis that is not closed")
        if self.is_empty:
            raise Malformed(start, "parentheses with nothing inside")
        self.is_empty = False
        self.at += 1
        return _boosted(clause, self._boost())

    def _phrase(self):
        start = self.at
        self.at += 1
        text = self._raw('"', of_phrase=True)
        if not self._is('"'):
            raise Malformed(start, "a quote that is not closed")
        self.at += 1
        slop = 0
        if self._is("~"):
            self.at += 1
            slop = int(self._digits() or 0)
        return _of_tokens(tokens(text, self.analyzer), slop, self._boost())

    def _raw(self, ends, of_phrase=False):
        """The text up to one of these characters or a space, without its escapes."""
        found = ""
        while self.at < len(self.text) and self.text[self.at] not in ends:
            character = self.text[self.at]
            if character.isspace() and not of_phrase:
                break
            if character == "\\":
                self.at += 1
                if self.at == len(self.text):
                    raise Malformed(self.at - 1, "an escape of nothing")
                character = self.text[self.at]
            found += character
            self.at += 1
        return found

    def _boost(self):
        if not self._is("^"):
            return 1.0
        place = self.at
        self.at += 1
        digits = self._digits(".")
        if not digits:
            raise Malformed(place, "a boost without a number")
        return float(digits)

    def _digits(self, more=""):
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isdigit() or self.text[self.at] in more):
            self.at += 1
        return self.text[start : self.at]

    def _is(self, character):
        return self.text.startswith(character, self.at)

    def _skip(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _word(self):
        """The operator at this place, if one does."""
        for word in ("AND", "OR", "NOT"):
            after = self.at + len(word)
            if self._is(word) and (after == len(self.text) or self.text[after].isspace() or self.text[after] in "()\""):
                return word
        return None


def _put(clause, sign, one):
    """Adds a clause. One without a word, as it has stop words alone, says nothing."""
    if isinstance(one, Nothing):
        return
    {"+": clause.must, "-": clause.must_not, "": clause.should}[sign].append(one)


def _simple(clause):
    """A clause without its wrapping, if it has but one part."""
    if not clause.must_not and len(clause.must) + len(clause.should) == 1:
        return (clause.must + clause.should)[0]
    return clause if clause.must or clause.should or clause.must_not else Nothing()


def _of_tokens(found, slop, boost):
    """The clause of one word or phrase, whose tokens are side by side."""
    if not found:
        return Nothing()
    if len(found) == 1:
        return Term(found[0][0], boost)
    first = found[0][1]
    return Phrase(tuple((position - first, term) for term, position in found), slop, boost)


def _boosted(clause, boost):
    """A clause with the boost of its group."""
    if boost == 1 or isinstance(clause, Nothing):
        return clause
    if isinstance(clause, Boolean):
        of = lambda clauses: [_boosted(one, boost) for one in clauses]  # noqa: E731
        return Boolean(of(clause.must), of(clause.should), clause.must_not)
    return clause._replace(boost=clause.boost * boost)
