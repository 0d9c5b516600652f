"""Settings: where the database is, how it speaks, and which model embeds sentences.

Each has a default for a server on this machine, and an environment variable in place of it.
"""

from enum import StrEnum
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

APPLICATION = Path(__file__).resolve().parents[1]
SAMPLE = APPLICATION.parents[1] / "samples/movies/movies.parquet"


class Dialect(StrEnum):
    """The database, which decides the schema and what a search may have."""

    ANNULUS = "annulus"
    SCYLLA = "scylla"
    CASSANDRA = "cassandra"

    @property
    def schema(self) -> Path:
        """The file of the statements that make the tables."""
        suffix = "" if self is Dialect.ANNULUS else f"-{self}"
        return APPLICATION / f"schema{suffix}.cql"

    @property
    def has_hybrid(self) -> bool:
        """Whether one statement can rank by words and vectors. Only Annulus has that."""
        return self is Dialect.ANNULUS

    @property
    def has_genre_filter(self) -> bool:
        """Whether the index filters by the elements of a set."""
        return self is not Dialect.SCYLLA


class Settings(BaseSettings):
    """The settings of one run."""

    model_config = SettingsConfigDict(env_prefix="FILMS_", populate_by_name=True, extra="ignore")

    dialect: Dialect = Field(default=Dialect.ANNULUS, validation_alias="ANNULUS_DIALECT")
    host: str = "127.0.0.1"
    port: int = Field(default=9042, ge=1, le=65535)
    username: str | None = None
    password: SecretStr | None = None
    # Unset: the bundled model in this process. Set: a server in OpenAI's form, such as https://api.openai.com/v1.
    embeddings_url: str | None = None
    embeddings_model: str = "text-embedding-3-small"
    embeddings_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")

    @model_validator(mode="after")
    def _login_is_whole(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("a login needs both FILMS_USERNAME and FILMS_PASSWORD")
        return self
