"""The values that go through the application: a film, a wish, and a film that matches it."""

from datetime import date

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

DIMENSIONS = 384
# More than the model reads (256 tokens), and less than anything that a person types.
SENTENCE_CHARACTERS = 2_000
FILMS_MAX = 50
OPINIONS_MAX = 100


class Film(BaseModel):
    """A film without its embedding."""

    model_config = ConfigDict(frozen=True)

    id: int
    title: str
    release_date: date
    genre: str
    plot: str

    @property
    def genres(self) -> set[str]:
        """The parts of `genre`, which is a comma list."""
        return {part.strip() for part in self.genre.split(",") if part.strip()}


class Wish(BaseModel):
    """A search: a sentence or a film to start from, filters, and opinions about films."""

    model_config = ConfigDict(frozen=True)

    sentence: str = ""
    like_film: int | None = None
    year_from: int | None = Field(default=None, ge=1, le=9999)
    year_to: int | None = Field(default=None, ge=1, le=9999)
    genre: str | None = None
    liked: frozenset[int] = Field(default=frozenset(), max_length=OPINIONS_MAX)
    disliked: frozenset[int] = Field(default=frozenset(), max_length=OPINIONS_MAX)
    hybrid: bool = True
    limit: int = Field(default=5, ge=1, le=FILMS_MAX)

    @field_validator("sentence")
    @classmethod
    def _shortened(cls, sentence: str) -> str:
        # Half a character, which JSON can carry, is no text in UTF-8.
        return sentence[:SENTENCE_CHARACTERS].encode(errors="replace").decode().strip()

    @model_validator(mode="after")
    def _has_a_start(self) -> "Wish":
        if not self.sentence and self.like_film is None:
            raise ValueError("say what the film should be about")
        if self.year_from and self.year_to and self.year_from > self.year_to:
            raise ValueError(f"no year is both after {self.year_from} and before {self.year_to}")
        if self.liked & self.disliked:
            raise ValueError("a film is liked or disliked, not both")
        return self


class Match(BaseModel):
    """A film of an answer, and why it is there."""

    model_config = ConfigDict(frozen=True)

    film: Film
    # (1 + cosine) / 2: 1 for the same direction, 1/2 for unrelated texts.
    similarity: float
    # Places in the two searches of a hybrid one, from 1. None: that search did not name the film.
    vector_rank: int | None = None
    words_rank: int | None = None
    words_score: float | None = None
    # HTML: a part of the plot, with the words of the sentence in <b>.
    highlight: str | None = None

    @property
    def cosine(self) -> float:
        """The cosine of the angle between the film's embedding and the query's, -1 to 1."""
        return 2 * self.similarity - 1
