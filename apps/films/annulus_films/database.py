"""The database helper: one session, prepared statements, inserts and searches."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Self

from cassandra import DriverException, InvalidRequest, OperationTimedOut, RequestExecutionException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy
from cassandra.query import PreparedStatement, named_tuple_factory

from .config import Settings
from .models import Film

KEYSPACE, TABLE = "recommend", "recommend.movies"
COLUMNS = "id, title, release_date, genre, plot"
INSERTS_IN_FLIGHT = 32
REQUEST_SECONDS, RECONNECT_SECONDS = 20, 1
STATEMENTS_MAX = 64

Row = Any


class FilmLabel(NamedTuple):
    """What the page needs of every film."""

    id: int
    title: str
    genres: tuple[str, ...]


class DatabaseError(Exception):
    """The database can't answer. The text says why, and what helps."""


class FilmDatabase:
    """A session with the database."""

    def __init__(self, settings: Settings) -> None:
        """Connects. Raises `DatabaseError` where nothing answers."""
        self.settings = settings
        login = None
        if settings.username is not None and settings.password is not None:
            login = PlainTextAuthProvider(settings.username, settings.password.get_secret_value())
        profile = ExecutionProfile(request_timeout=REQUEST_SECONDS, row_factory=named_tuple_factory)
        self._cluster = Cluster(
            [settings.host],
            port=settings.port,
            auth_provider=login,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            # By default a database that comes back is found again after up to ten minutes.
            reconnection_policy=ConstantReconnectionPolicy(RECONNECT_SECONDS, max_attempts=None),
        )
        try:
            self._session = self._cluster.connect()
        except Exception as error:
            self._cluster.shutdown()
            raise self._explained(error) from error
        self._prepare = lru_cache(STATEMENTS_MAX)(self._session.prepare)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._cluster.shutdown()

    def execute(self, statement: str, values: Mapping[str, object] | None = None) -> list[Row]:
        """The rows of a statement, with values for its named markers."""
        try:
            if values is None:
                return list(self._session.execute(statement))
            return list(self._session.execute(self._prepare(statement).bind(dict(values))))
        except Exception as error:
            raise self._explained(error) from error

    def insert(self, films: Iterable[tuple[Film, list[float]]]) -> None:
        """Inserts films with their embeddings. A film that is there already is replaced."""
        names = "id, title, release_date, genre, genres, plot, plot_embedding"
        statement = f"INSERT INTO {TABLE} ({names}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        rows = (
            (film.id, film.title, film.release_date, film.genre, film.genres, film.plot, embedding)
            for film, embedding in films
        )
        try:
            insert: PreparedStatement = self._prepare(statement)
            execute_concurrent_with_args(self._session, insert, rows, INSERTS_IN_FLIGHT, raise_on_first_error=True)
        except Exception as error:
            raise self._explained(error) from error

    def embeddings(self, ids: Iterable[int]) -> dict[int, list[float]]:
        """The embeddings of films, by id. Those that are not in the table are left out."""
        statement = f"SELECT id, plot_embedding FROM {TABLE} WHERE id IN :ids"
        rows = self.execute(statement, {"ids": sorted(ids)})
        return {row.id: list(row.plot_embedding) for row in rows if row.plot_embedding is not None}

    def films(self, ids: Iterable[int]) -> list[Film]:
        """Films by id, in the order of the ids."""
        rows = self.execute(f"SELECT {COLUMNS} FROM {TABLE} WHERE id IN :ids", {"ids": sorted(ids)})
        return [film_of(row) for row in sorted(rows, key=lambda row: row.id)]

    def all_films(self) -> list[FilmLabel]:
        """Ids, titles and genres of all films, by id. It reads the table once."""
        rows = self.execute(f"SELECT id, title, release_date, genres FROM {TABLE}")
        films = (
            FilmLabel(row.id, f"{row.title} ({row.release_date.date().year})", tuple(sorted(row.genres or ())))
            for row in rows
        )
        return sorted(films)

    def count(self) -> int:
        """The number of films."""
        return int(self.execute(f"SELECT count(*) AS films FROM {TABLE}")[0].films)

    def embedding_model(self) -> str | None:
        """The name of the model that made the embeddings. None: no film is loaded."""
        statement = f"SELECT model FROM {KEYSPACE}.embedding_models WHERE table_name = :name"
        rows = self.execute(statement, {"name": TABLE})
        return rows[0].model if rows else None

    def set_embedding_model(self, model: str) -> None:
        """Remembers the model that made the embeddings."""
        statement = f"INSERT INTO {KEYSPACE}.embedding_models (table_name, model) VALUES (:name, :model)"
        self.execute(statement, {"name": TABLE, "model": model})

    def _explained(self, error: Exception) -> Exception:
        """The same error in words for the user, or the error itself where it is a fault of the program."""
        place = f"{self.settings.host}:{self.settings.port}"
        if isinstance(error, (NoHostAvailable, OperationTimedOut, ConnectionException, OSError)):
            return DatabaseError(f"No database answers at {place}. Start one with: make run")
        if isinstance(error, InvalidRequest) and "recommend" in str(error):
            return DatabaseError(f"{place} has no films yet. Load them with: python -m annulus_films migrate ({error})")
        if isinstance(error, (DriverException, RequestExecutionException)):
            return DatabaseError(f"{place} refuses: {error}")
        return error


def film_of(row: Row) -> Film:
    """The film of a row."""
    return Film(id=row.id, title=row.title, release_date=row.release_date.date(), genre=row.genre, plot=row.plot)
