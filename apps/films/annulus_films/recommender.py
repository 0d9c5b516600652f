"""The recommender: a wish to a vector, the vector to films, each with its reasons."""

from datetime import date

import numpy as np

from .database import COLUMNS, TABLE, DatabaseError, FilmDatabase, Row, film_of
from .embedding import EmbeddingCreator, Vectors
from .models import Match, Wish

# Rocchio's weights: what opinions add to the query's vector, and take from it.
LIKED_WEIGHT, DISLIKED_WEIGHT = 0.75, 0.25
# What one point of BM25 is worth next to a similarity of 0 to 1: the best of six values on the first, third,
# fifth ... query of queries.jsonl. `evaluate` reports the others apart.
WORDS_WEIGHT = 0.03
# Rows that each of the two searches of a hybrid one contributes.
CANDIDATES = 300

SIMILARITY = "similarity_cosine(plot_embedding, :vector) AS similarity"
BY_VECTOR = f"SELECT {COLUMNS}, {SIMILARITY} FROM {TABLE}$WHERE ORDER BY plot_embedding ANN OF :vector LIMIT :films"
# Only Annulus: one statement with two searches, whose ranks, scores and highlights it selects. A film that only
# one of them names has its true score in the other all the same.
HYBRID = f"""
    SELECT {COLUMNS}, {SIMILARITY},
        ANN_RANK(plot_embedding, :vector) AS vector_rank,
        BM25_RANK(plot, bm25_words(:words)) AS words_rank,
        BM25_SCORE(plot, bm25_words(:words)) AS words_score,
        BM25_HIGHLIGHT(plot, bm25_words(:words)) AS highlight
    FROM {TABLE}$WHERE
    ORDER BY ANN_SCORE(plot_embedding, :vector) + {WORDS_WEIGHT} * BM25_SCORE(plot, bm25_words(:words)) LIMIT :films
    WITH hybrid_options = {{'candidates': {CANDIDATES}}}
"""


class Recommender:
    """Finds films."""

    def __init__(self, database: FilmDatabase, embedder: EmbeddingCreator) -> None:
        """Raises `DatabaseError` where another model made the embeddings of the table."""
        self._database, self._embedder = database, embedder
        stored = database.embedding_model()
        if stored is None:
            raise DatabaseError("There are no films yet. Load them with: python -m annulus_films migrate")
        if stored != embedder.name:
            raise DatabaseError(
                f"The plots are embedded by {stored}, and sentences would be by {embedder.name}: "
                "their vectors can't be compared. Embed the plots again with: python -m annulus_films migrate"
            )

    def recommend(self, wish: Wish) -> list[Match]:
        """The films of a wish, the best first. Films that were judged already are not among them."""
        dialect = self._database.settings.dialect
        seen = wish.liked | wish.disliked | ({wish.like_film} if wish.like_film is not None else set())
        where, values = conditions(wish)
        if wish.genre is not None and not dialect.has_genre_filter:
            raise DatabaseError("ScyllaDB's index does not filter by the elements of a set: leave the genre out")
        values |= {"vector": self.query_vector(wish).tolist(), "films": wish.limit + len(seen)}
        hybrid = wish.hybrid and dialect.has_hybrid and wish.sentence != ""
        if hybrid:
            values["words"] = wish.sentence
        statement = (HYBRID if hybrid else BY_VECTOR).replace("$WHERE", where)
        matches = [match_of(row) for row in self._database.execute(statement, values) if row.id not in seen]
        return matches[: wish.limit]

    def query_vector(self, wish: Wish) -> Vectors:
        """The vector of a wish: its sentence or film, moved towards what is liked and away from what is not.

        It has length 1, so that cosine and dot product are the same number."""
        films = self._database.embeddings(
            {*wish.liked, *wish.disliked, *([wish.like_film] if wish.like_film is not None else [])}
        )
        if wish.sentence:
            start = self._embedder.embed([wish.sentence])[0]
        elif wish.like_film in films:
            start = np.array(films[wish.like_film], np.float32)
        else:
            raise DatabaseError(f"There is no film {wish.like_film}")
        liked = [films[id] for id in wish.liked if id in films]
        disliked = [films[id] for id in wish.disliked if id in films]
        return moved(start, liked, disliked)


def moved(start: Vectors, liked: list[list[float]], disliked: list[list[float]]) -> Vectors:
    """Rocchio's rule: the mean of what is liked is added to a vector, and that of what is not is taken from it."""
    vector = start.astype(np.float32)
    if liked:
        vector = vector + np.float32(LIKED_WEIGHT) * np.mean(np.array(liked, np.float32), axis=0)
    if disliked:
        vector = vector - np.float32(DISLIKED_WEIGHT) * np.mean(np.array(disliked, np.float32), axis=0)
    length = np.linalg.norm(vector)
    # Opinions that cancel the sentence leave no direction: then the sentence alone counts.
    return vector / length if length > 1e-6 else start


def conditions(wish: Wish) -> tuple[str, dict[str, object]]:
    """The WHERE of a wish, and the values of its markers."""
    found: dict[str, tuple[str, object]] = {}
    if wish.year_from is not None:
        found["year_from"] = ("release_date >= :year_from", date(wish.year_from, 1, 1))
    if wish.year_to is not None:
        found["year_to"] = ("release_date <= :year_to", date(wish.year_to, 12, 31))
    if wish.genre is not None:
        found["genre"] = ("genres CONTAINS :genre", wish.genre)
    where = " AND ".join(condition for condition, _ in found.values())
    return (f" WHERE {where}" if where else ""), {name: value for name, (_, value) in found.items()}


def match_of(row: Row) -> Match:
    """The match of a row. A search by vectors alone has no ranks and no words."""
    reasons = {name: getattr(row, name, None) for name in ("vector_rank", "words_rank", "words_score", "highlight")}
    return Match(film=film_of(row), similarity=row.similarity, **reasons)
