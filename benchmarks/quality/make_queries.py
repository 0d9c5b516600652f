"""Makes the known-item queries of benchmarks/quality, and writes them with their embeddings to
known_items.parquet. Each query is made of one document, which is what it should find.

    make_queries.py             needs what apps/embedder/requirements.txt names, and pyarrow
    make_queries.py --preview   and then says what nDCG@10 exact search and a plain BM25 give

Documents are the plots of the 10,000 films and the 50,000 dictionary senses. Of each collection
PER_KIND documents are drawn for each of two kinds of query, with a seed:

- `words`: half of the document's words in their order, but at least WORDS_MIN and at most WORDS_MAX,
  as somebody types who remembers some of them.
  They are neither stop words nor in the film's title, nor among the senses' headwords, and at least
  one more document has each.
- `paraphrase`: of a film all sentences but the first one, of a sense its definition without the
  headwords, said in other words. Names are dropped (what has a capital within a sentence, and
  numbers). A content word gives way to a synonym that has nothing of the document's words: one that
  WordNet, which the dictionary texts are, has as a headword of the same sense. Of several that one
  is taken with which the embedding of the whole changes least, as a person would take the one that
  is meant; that is the only help that vectors get. Of the content words without such a synonym
  DROPPED are dropped at random. Stop words stay.

The embedding is all-MiniLM-L6-v2's of the query's text, computed by apps/embedder.
"""

import collections
import math
import pathlib
import random
import re
import sys

import numpy as np
import pyarrow
import pyarrow.parquet

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
QUERIES = HERE / "known_items.parquet"
FILMS, TEXTS = ROOT / "samples/movies/movies.parquet", ROOT / "benchmarks/ann/data/texts50k_base.parquet"

SEED = 50
RANK_CONSTANTS = (60, 10, 1)
PER_KIND, WORDS_MIN, WORDS_MAX = 100, 5, 8
CONTENT_WORDS_MIN, SYNONYMS_MAX, DROPPED = 4, 8, 1 / 2
# Words that begin with as many equal letters count as forms of one word.
STEM = 5
# The English stop words of Lucene, and some that say as little.
STOP_WORDS = set(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they
    this to was will with his her him he she its from who which has have had were been when where while after
    before about also one two more most other some any each than so up out all what""".split()
)


class Collection:
    def __init__(self, name, bodies, vectors, sources):
        """`sources` has for each document the words that its queries must not have, and the text that
        may be paraphrased."""
        self.name, self.bodies, self.vectors, self.sources = name, bodies, vectors, sources
        self.frequencies = collections.Counter()
        for body in bodies:
            self.frequencies.update(set(words_of(body)))


def words_of(text):
    return re.findall(r"[^\W_]+", text.lower())


def is_content(word):
    return len(word) > 2 and word not in STOP_WORDS and not word.isdigit()


def vectors_of(column):
    values = column.combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    return values.reshape(len(column), -1)


def films():
    table = pyarrow.parquet.read_table(FILMS, columns=["title", "plot", "plot_embedding"])
    bodies = table["plot"].to_pylist()
    sentences = [re.split(r"(?<=[a-z)][.!?]) (?=[A-Z])", body) for body in bodies]
    sources = [(set(words_of(title)), " ".join(later[1:])) for title, later in zip(table["title"].to_pylist(), sentences)]
    return Collection("films", bodies, vectors_of(table["plot_embedding"]), sources)


def texts():
    table = pyarrow.parquet.read_table(TEXTS, columns=["text", "embedding"])
    bodies = table["text"].to_pylist()
    parts = [body.split(": ", 1) for body in bodies]
    sources = [(set(words_of(heads)), " ".join(definition)) for heads, *definition in parts]
    return Collection("texts", bodies, vectors_of(table["embedding"]), sources)


def synonyms(bodies):
    """For each headword those that it shares a sense with."""
    others = collections.defaultdict(set)
    for body in bodies:
        heads = [head for head in body.split(": ", 1)[0].split(", ") if re.fullmatch("[a-z]+", head)]
        for head in heads:
            others[head].update(set(heads) - {head})
    return {head: sorted(of)[:SYNONYMS_MAX] for head, of in others.items() if of}


def headword(word, thesaurus):
    """The headword of which a word is a form, or the word itself."""
    for ending, instead in (("", ""), ("ies", "y"), ("s", ""), ("es", ""), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e")):
        if word.endswith(ending) and (form := word.removesuffix(ending) + instead) in thesaurus:
            return form
    return word


def of_words(collection, document, rng):
    excluded, _ = collection.sources[document]
    usable = {word: None for word in words_of(collection.bodies[document]) if is_content(word) and word not in excluded}
    usable = [word for word in usable if collection.frequencies[word] > 1]
    if len(usable) < WORDS_MIN:
        return None
    number = min(max(len(usable) // 2, WORDS_MIN), WORDS_MAX)
    return " ".join(usable[place] for place in sorted(rng.sample(range(len(usable)), number)))


def paraphrased(collection, document, rng, thesaurus, embed):
    excluded, text = collection.sources[document]
    stems = {word[:STEM] for word in words_of(collection.bodies[document])}
    said, content = [], 0
    for place, written in enumerate(re.findall(r"[^\W_]+", text)):
        word = written.lower()
        if (written != word and place > 0) or word in excluded or written.isdigit():
            continue
        if not is_content(word):
            said.append([word])
            continue
        others = [other for other in thesaurus.get(headword(word, thesaurus), []) if other[:STEM] not in stems]
        if not others and rng.random() < DROPPED:
            continue
        content += 1
        said.append(others or [word])
    if content < CONTENT_WORDS_MIN:
        return None
    meant = np.array(embed(text))
    for place, choices in enumerate(said):
        if len(choices) > 1:
            # Those to the right are still as they come first.
            texts = [" ".join(one[0] for one in said[:place] + [[choice]] + said[place + 1 :]) for choice in choices]
            nearest = max(range(len(choices)), key=lambda at: meant @ np.array(embed(texts[at])))
            said[place] = [choices[nearest]]
    return " ".join(one[0] for one in said)


def make():
    sys.path.append(str(ROOT / "apps/embedder"))
    from annulus_embedder.model import Embedder

    rng, embedder = random.Random(SEED), Embedder()

    def embed(text):
        return embedder.embed([text])[0].tolist()

    collections_of = [films(), texts()]
    thesaurus = synonyms(collections_of[1].bodies)
    rows = []
    for collection in collections_of:
        for kind, of in (("words", of_words), ("paraphrase", paraphrased)):
            drawn = rng.sample(range(len(collection.bodies)), len(collection.bodies))
            arguments = (rng,) if kind == "words" else (rng, thesaurus, embed)
            made = ((document, of(collection, document, *arguments)) for document in drawn)
            made = ((document, text) for document, text in made if text)
            for document, text in (next(made) for _ in range(PER_KIND)):
                rows.append((collection.name, kind, document, text, embed(text)))
    names = ("collection", "kind", "document", "text")
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    values = pyarrow.array(np.array([row[4] for row in rows], np.float16).reshape(-1))
    table["embedding"] = pyarrow.FixedSizeListArray.from_arrays(values, 384)
    pyarrow.parquet.write_table(pyarrow.table(table), QUERIES, compression="zstd")
    return collections_of


def ndcg(found, document):
    """nDCG@10 of an answer, where one document is relevant."""
    return 1 / math.log2(found.index(document) + 2) if document in found[:10] else 0


def preview(collections_of):
    """What exact search, BM25 without stemming and RRF of 100 candidates give."""
    rows = pyarrow.parquet.read_table(QUERIES).to_pylist()
    for collection in collections_of:
        bodies = [collections.Counter(word for word in words_of(body) if word not in STOP_WORDS) for body in collection.bodies]
        lengths = [sum(body.values()) for body in bodies]
        mean = sum(lengths) / len(lengths)
        postings = collections.defaultdict(list)
        for document, body in enumerate(bodies):
            for word, count in body.items():
                postings[word].append((document, count))
        gains = collections.defaultdict(list)
        for row in (row for row in rows if row["collection"] == collection.name):
            scores = collections.Counter()
            for word in set(words_of(row["text"])):
                of = postings.get(word, [])
                idf = math.log(1 + (len(bodies) - len(of) + 0.5) / (len(of) + 0.5))
                for document, count in of:
                    scores[document] += idf * count / (count + 1.2 * (0.25 + 0.75 * lengths[document] / mean))
            by_words = [document for document, _ in scores.most_common(100)]
            cosines = collection.vectors @ np.array(row["embedding"], np.float32)
            by_vectors = np.argsort(-cosines, kind="stable")[:100].tolist()
            answers = [by_words, by_vectors]
            for constant in RANK_CONSTANTS:
                fused = collections.Counter()
                for found in answers[:2]:
                    for rank, document in enumerate(found, 1):
                        fused[document] += 1 / (constant + rank)
                answers.append([document for document, _ in fused.most_common(10)])
            for kind in (row["kind"], "all"):
                gains[kind].append([ndcg(found, row["document"]) for found in answers])
        for kind, of in gains.items():
            print(collection.name, kind, "words, vectors, hybrid of", RANK_CONSTANTS, np.round(np.mean(of, axis=0), 3).tolist())


if __name__ == "__main__":
    made = make()
    if "--preview" in sys.argv:
        preview(made)
