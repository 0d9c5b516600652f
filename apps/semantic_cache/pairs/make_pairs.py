"""Makes the pairs of `made.jsonl` by a rule from the titles of the film sample.

Each film serves one pair only, so that the halves of the set share no film. The result is the same
in each run. Only titles and years are used, no text of a plot.

    python apps/semantic_cache/pairs/make_pairs.py            # writes made.jsonl
    python apps/semantic_cache/pairs/make_pairs.py --check    # fails if the file has other pairs
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import lz4.block

HERE = pathlib.Path(__file__).resolve().parent
FILMS = HERE.parents[2] / "samples" / "movies" / "texts.lz4"
MADE = HERE.parent / "annulus_semantic_cache" / "pairs" / "made.jsonl"

# Pairs of each kind. Half are "same", so that the rates of both labels have equal weight.
SAME, OTHER_FILM, OTHER_YEAR, OTHER_QUESTION = 170, 80, 40, 50

# Questions about a film. An answer to one of a group answers the others of the group.
QUESTIONS = {
    "release": [
        "When did the film {} come out?",
        "What is the release year of {}?",
        "In which year was {} first shown in cinemas?",
        "I'd like to know what year the movie {} is from",
    ],
    "plot": [
        "What is the film {} about?",
        "Summarise the plot of {}",
        "Tell me the story of the movie {}",
        "Give me a synopsis of {}",
    ],
    "genre": [
        "What genre is the film {}?",
        "Which genre does {} belong to?",
        "Is {} a comedy, a drama or something else?",
        "How is the movie {} classified by genre?",
    ],
}

# Two films of one title may have one plot, genre, writer and even director, but not one cast.
QUESTIONS_ABOUT_THE_CAST = ["Who plays the lead in {}?", "Which actors are in {}?", "Who is in the cast of {}?"]

ARTICLES = ("the", "a", "an")


class Film(NamedTuple):
    title: str
    year: str


class Pair(NamedTuple):
    a: str
    b: str
    same: bool
    kind: str


def films() -> list[Film]:
    """The films with a plain title of at least two words, in the order of the sample."""
    texts = lz4.block.decompress(FILMS.read_bytes()).decode().split("\0")
    rows = zip(*[iter(texts[:-1])] * 4, strict=True)
    found = [Film(title, date[:4]) for title, _genre, date, _plot in rows]
    return [film for film in found if re.fullmatch(r"[A-Z][A-Za-z']*( [A-Za-z0-9']+){1,5}", film.title)]


def bare(title: str) -> list[str]:
    """The words of a title without articles, which people leave out."""
    return [word for word in title.lower().split() if word not in ARTICLES]


def other_years(choice: random.Random, by_title: dict[str, list[Film]]) -> Iterator[Pair]:
    """The same question about two films with one title, of different years."""
    for title in [title for title, found in by_title.items() if len(found) > 1]:
        first, second = by_title.pop(title)[:2]
        if first.year != second.year:
            question = choice.choice(QUESTIONS_ABOUT_THE_CAST)
            yield Pair(
                question.format(f"{title} of {first.year}"),
                question.format(f"{title} of {second.year}"),
                False,
                "made_other_year",
            )


def other_films(choice: random.Random, titles: list[str], by_title: dict[str, list[Film]]) -> Iterator[Pair]:
    """The same question about two films of different years whose titles share their first words or last word."""
    groups: dict[str, list[str]] = defaultdict(list)
    for title in titles:
        words = title.split()
        groups[" ".join(words[:-1]).lower()].append(title)
        groups[words[-1].lower()].append(title)
    free = set(titles)
    for shared, group in groups.items():
        left = [title for title in group if title in free]
        if shared in ARTICLES or len(left) < 2:
            continue
        first, second = left[:2]
        if bare(first) != bare(second) and by_title[first][0].year != by_title[second][0].year:
            free.difference_update((first, second))
            titles.remove(first)
            titles.remove(second)
            question = choice.choice(QUESTIONS["plot"] + QUESTIONS["release"])
            yield Pair(question.format(first), question.format(second), False, "made_other_film")


def other_questions(choice: random.Random, titles: list[str]) -> Iterator[Pair]:
    """Two questions about one film that have different answers."""
    while titles:
        title = titles.pop()
        first, second = choice.sample(sorted(QUESTIONS), 2)
        yield Pair(
            choice.choice(QUESTIONS[first]).format(title),
            choice.choice(QUESTIONS[second]).format(title),
            False,
            "made_other_question",
        )


def same_questions(choice: random.Random, titles: list[str]) -> Iterator[Pair]:
    """One question about one film in two wordings."""
    while titles:
        title = titles.pop()
        first, second = choice.sample(QUESTIONS[choice.choice(sorted(QUESTIONS))], 2)
        yield Pair(first.format(title), second.format(title), True, "made_paraphrase")


def pairs() -> Iterator[Pair]:
    """All pairs, kind by kind."""
    choice = random.Random(53)
    shuffled = films()
    choice.shuffle(shuffled)
    by_title: dict[str, list[Film]] = defaultdict(list)
    for film in shuffled:
        by_title[film.title].append(film)
    yield from itertools.islice(other_years(choice, by_title), OTHER_YEAR)
    titles = [title for title, found in by_title.items() if len(found) == 1]
    yield from itertools.islice(other_films(choice, titles, by_title), OTHER_FILM)
    yield from itertools.islice(other_questions(choice, titles), OTHER_QUESTION)
    yield from itertools.islice(same_questions(choice, titles), SAME)


def lines() -> str:
    """The file: a line of JSON for each pair. Pairs of a kind go to the halves in turn."""
    counts: dict[str, int] = defaultdict(int)
    made = []
    for pair in pairs():
        split = ("tune", "test")[counts[pair.kind] % 2]
        counts[pair.kind] += 1
        made.append(json.dumps({**pair._asdict(), "split": split}) + "\n")
    return "".join(made)


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes pairs of prompts from the titles of the film sample.")
    parser.add_argument("--check", action="store_true", help="compare with the file, and write nothing")
    made = lines()
    if not parser.parse_args().check:
        MADE.write_text(made, encoding="utf-8")
    elif MADE.read_text(encoding="utf-8") != made:
        sys.exit(f"{MADE.name} has other pairs than this program makes. Run it without --check.")


if __name__ == "__main__":
    main()
