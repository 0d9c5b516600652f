"""The tokens that each analyzer makes of a text, by the rules of docs/text.md and not by the code of
the index.

The lists of stop words are those of Lucene for English, and of the Snowball project (3-clause BSD)
for the other languages; stop_words.json has each as lines of words. The stemmers are Snowball's own
for Python.

Python and Rust differ on a few characters, such as vowel signs of Indic scripts, which Rust counts
among letters. The texts of these tests have none of them."""

import json
import pathlib
import re

import snowballstemmer

LANGUAGES = ("english", "german", "french", "spanish", "italian", "portuguese", "russian")
ANALYZERS = ("standard", "simple", "whitespace", *LANGUAGES, "cjk")

TOKEN_BYTES_MAX = 255

_LISTS = json.loads((pathlib.Path(__file__).parent / "stop_words.json").read_text())
STOP_WORDS = {language: frozenset(" ".join(lines).split()) for language, lines in _LISTS.items()}
_STEMMERS = {language: snowballstemmer.stemmer(language) for language in LANGUAGES}

# Han with its extensions and compatibility forms, Hiragana, Katakana, Hangul.
_CJK = [
    (0x1100, 0x11FF), (0x3005, 0x3007), (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF),
    (0x3130, 0x318F), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
]  # fmt: skip


def tokens(text, analyzer):
    """The tokens of a text as [(term, position)]. Positions count all tokens, also stop words and
    those that are too long, which are no terms."""
    return [(term, at) for at, term in enumerate(_terms(text, analyzer)) if term is not None]


def folded(word, analyzer):
    """The words of a prefix, or of a word that may differ in letters: neither stemmed nor dropped."""
    return [word] if analyzer == "whitespace" else _words(word)


def _terms(text, analyzer):
    """The term of each token; None if it has none."""
    if analyzer == "whitespace":
        return [_short(word) for word in re.findall(r"[^ \t\n\f\r]+", text)]
    if analyzer == "cjk":
        return [_short(gram) for word in _words(text) for gram in _grams(word)]
    words = _words(text)
    if analyzer == "simple":
        return [_short(word) for word in words]
    language = "english" if analyzer == "standard" else analyzer
    stem = (lambda word: word) if analyzer == "standard" else _STEMMERS[language].stemWord
    return [None if word in STOP_WORDS[language] or _short(word) is None else stem(word) for word in words]


def _short(term):
    return term if len(term.encode()) <= TOKEN_BYTES_MAX else None


def _words(text):
    """Runs of letters and digits, in lower case. A character becomes lower case by itself, so that
    a sigma at the end of a word is like any other."""
    words, word = [], ""
    for character in text + " ":
        if character.isalnum():
            word += character.lower()
        elif word:
            words.append(word)
            word = ""
    return words


def is_cjk(character):
    return any(first <= ord(character) <= last for first, last in _CJK)


def _grams(word):
    """The pairs of neighbours in each run of Chinese, Japanese or Korean characters; what is between
    such runs as it is. A run of one character is itself."""
    start = 0
    for at in range(1, len(word) + 1):
        if at < len(word) and is_cjk(word[at]) == is_cjk(word[start]):
            continue
        run = word[start:at]
        if is_cjk(run[0]) and len(run) > 1:
            yield from (run[n : n + 2] for n in range(len(run) - 1))
        else:
            yield run
        start = at
