"""Settings: which store, where it is, and which models embed and answer.

Each has a default for a server on this machine, and an environment variable in place of it.
"""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

APPLICATION = Path(__file__).resolve().parents[1]
REPOSITORY = APPLICATION.parents[1]
# Embeddings that were computed, the files of the stores in this process, and the report.
TARGET = REPOSITORY / "target/rag_bench"


class Settings(BaseSettings):
    """The settings of one run."""

    model_config = SettingsConfigDict(env_prefix="RAG_", populate_by_name=True, extra="ignore")

    # The one setting that picks the dialect: a name of `stores.STORES`.
    store: str = "annulus"
    # Where Annulus or Cassandra listens. The other stores run in this process or are started by it.
    host: str = "127.0.0.1"
    port: int = Field(default=9042, ge=1, le=65535)
    username: str | None = None
    password: SecretStr | None = None
    # True: a store starts a server of its own in its directory, as the benchmark and the tests have it.
    own_servers: bool = False
    # The program that `own_servers` starts for Annulus.
    annulus_binary: Path = Field(default=REPOSITORY / "target/release/annulus", validation_alias="ANNULUS_BINARY")
    directory: Path = TARGET
    # Unset: the bundled model in this process. Set: a server in OpenAI's form, such as https://api.openai.com/v1.
    embeddings_url: str | None = None
    embeddings_model: str = "text-embedding-3-small"
    embeddings_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    # Unset: the stub of apps/embedder, which only repeats. Set: a server in OpenAI's form that writes answers.
    model_url: str | None = None
    model: str = "gpt-4o-mini"
    model_key: SecretStr | None = Field(default=None, validation_alias="OPENAI_API_KEY")
    # What sorts out articles that don't help: their distance from the question, or the model, in one more call.
    grader: Literal["distance", "model"] = "distance"
    # Articles that are farther don't help. Measured for the bundled embeddings: the page's evaluation shows how.
    distance_max: float = Field(default=0.6, gt=0, le=2)

    @model_validator(mode="after")
    def _login_is_whole(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("a login needs both RAG_USERNAME and RAG_PASSWORD")
        return self
