"""Writes the documents and queries of a set, once, to files that all contenders read.

    documents.py SET FOLDER        SET is `texts`, or `made-N` for N made documents

`documents.tsv` has a line for each document: a number below 100, by which searches filter, a tab,
and words of a-z and 0-9 in lower case with a space between them, so that every analyzer splits them
alike. `queries.json` has the words of each query, by kind: {"one": [["word"], ...], "and": [[two]],
"phrase": [[two]], "or": [[five]], "one_filtered": ..., "or_filtered": ..., "limit": 10,
"admitted": 7}. Contenders make queries in their own language of them.

- Texts are the dictionary senses of benchmarks/ann/data, reduced to their words.
- Made documents have 5 to 120 words of a vocabulary of 200,000, drawn by Zipf's law with exponent
  1.07. After one word in five its own follower comes, so that there are phrases to be found.
- Words of queries are those of documents drawn at random: of the words that at least two documents
  have, without the 50 most frequent ones, which analyzers tend to drop. A word at a place of a
  document is frequent with the probability that it has in the documents, so words of one and of
  `or` are drawn by the logarithm of their frequency instead: rare ones come as often as frequent
  ones. `and` and `phrase` are two words of one document, those of a phrase being neighbours.
"""

import collections
import json
import pathlib
import re
import sys
import unicodedata

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ROOT / "benchmarks/ann/data/texts50k_base.parquet"

SEED = 50
VOCABULARY, ZIPF, FOLLOWED = 200_000, 1.07, 0.2
WORDS_MIN, WORDS_MAX = 5, 120
FILTER_VALUES, ADMITTED = 100, 7
QUERIES, LIMIT = 200, 10
TOO_FREQUENT, DOCUMENTS_MIN = 50, 2
BATCH = 20_000


def words_of(text):
    """The words of a text, with accents dropped."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.findall("[a-z0-9]+", plain)


def texts():
    import pyarrow.parquet

    for text in pyarrow.parquet.read_table(TEXTS, columns=["text"])["text"].to_pylist():
        yield words_of(text)


def made(count):
    rng = np.random.default_rng(SEED)
    names = np.array(names_of_words(rng), object)
    weights = np.arange(1, VOCABULARY + 1) ** -ZIPF
    bounds = np.cumsum(weights / weights.sum())
    followers = rng.permutation(VOCABULARY)
    for first in range(0, count, BATCH):
        lengths = rng.integers(WORDS_MIN, WORDS_MAX + 1, min(BATCH, count - first))
        drawn = np.minimum(np.searchsorted(bounds, rng.random(lengths.sum())), VOCABULARY - 1)
        follows = rng.random(len(drawn)) < FOLLOWED
        follows[0] = False
        # Of a run of followers each follows the word as it was drawn, which is as good.
        drawn[follows] = followers[drawn[np.flatnonzero(follows) - 1]]
        ends = np.cumsum(lengths)
        for begin, end in zip(ends - lengths, ends):
            yield names[drawn[begin:end]].tolist()


def names_of_words(rng):
    """Distinct words of three to ten letters, the frequent ones shorter."""
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    names, seen = [], set()
    while len(names) < VOCABULARY:
        length = min(3 + int(np.log10(len(names) + 1) + rng.random() * 2), 10)
        name = "".join(letters[rng.integers(0, len(letters), length)])
        if name not in seen:
            seen.add(name)
            names.append(name)
    return names


def write(documents, folder):
    """Writes the documents. Returns in how many each word is, and a sample of the documents."""
    rng = np.random.default_rng(SEED + 1)
    frequencies, sample, count = collections.Counter(), [], 0
    with open(folder / "documents.tsv", "w") as file:
        for words in documents:
            file.write(f"{rng.integers(FILTER_VALUES)}\t{' '.join(words)}\n")
            frequencies.update(set(words))
            # A reservoir: each document is in the sample with the same probability.
            count += 1
            if len(sample) < 20 * QUERIES:
                sample.append(words)
            elif (place := int(rng.integers(count))) < len(sample):
                sample[place] = words
    return frequencies, sample


def queries(frequencies, sample):
    rng = np.random.default_rng(SEED + 2)
    frequent = {word for word, _ in frequencies.most_common(TOO_FREQUENT)}
    usable = {word for word, count in frequencies.items() if count >= DOCUMENTS_MIN and word not in frequent}
    by_size = collections.defaultdict(list)
    for word in sorted(usable):
        by_size[int(np.log2(frequencies[word]))].append(word)
    sizes = sorted(by_size)

    def any_word():
        words = by_size[sizes[rng.integers(len(sizes))]]
        return words[rng.integers(len(words))]

    def several(count):
        words = []
        while len(words) < count:
            words = list(dict.fromkeys([*words, any_word()]))
        return words

    def of_document(pairs_of):
        while True:
            words = sample[rng.integers(len(sample))]
            pairs = [pair for pair in pairs_of(words) if set(pair) <= usable and pair[0] != pair[1]]
            if pairs:
                return list(pairs[rng.integers(len(pairs))])

    neighbours = lambda words: list(zip(words, words[1:]))  # noqa: E731
    apart = lambda words: list(zip(words, words[2:]))  # noqa: E731
    one, five = [several(1) for _ in range(QUERIES)], [several(5) for _ in range(QUERIES)]
    return {
        "one": one,
        "and": [of_document(apart) for _ in range(QUERIES)],
        "phrase": [of_document(neighbours) for _ in range(QUERIES)],
        "or": five,
        "one_filtered": one,
        "or_filtered": five,
        "limit": LIMIT,
        "admitted": ADMITTED,
    }


def make(name, folder):
    folder = pathlib.Path(folder)
    if (folder / "queries.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    documents = texts() if name == "texts" else made(int(name.removeprefix("made-")))
    made_queries = queries(*write(documents, folder))
    # The last file that is written: a folder that has it is whole.
    (folder / "queries.json").write_text(json.dumps(made_queries))


if __name__ == "__main__":
    make(*sys.argv[1:])
