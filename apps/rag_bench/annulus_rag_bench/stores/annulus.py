"""Annulus: the published table, an index of vectors that filters by date, and an index of words."""

from pathlib import Path
from typing import ClassVar, Self

from ..config import Settings
from ..footprint import disk_bytes, memory_bytes
from .cql import SELECT, TABLE, CqlStore
from .server_process import AnnulusProcess
from .store import StoreError, StoreSizes


class AnnulusStore(CqlStore):
    """A server that runs already, or one of its own."""

    name: ClassVar[str] = "annulus"
    title: ClassVar[str] = "Annulus"
    durability: ClassVar[str] = "Synced to the disk before an insert returns (`--durability synced`)."
    index: ClassVar[str] = (
        "A graph of cosines (`vector_index`, defaults) with the date in it, and words (`fulltext_index`, `english`)."
    )
    has_hybrid: ClassVar[bool] = True
    inserts_in_flight: ClassVar[int] = 32
    start_command: ClassVar[str] = "Start one with: make run"
    # Only Annulus: the index keeps the date, so that it filters by itself. The published index, with an index of the
    # class SAI on the date, works as well; this one needs no second structure on each insert.
    indexes: ClassVar[tuple[str, ...]] = (
        f"CREATE CUSTOM INDEX IF NOT EXISTS ann_index ON {TABLE} (vector, publication_date) "
        "USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}",
        f"CREATE CUSTOM INDEX IF NOT EXISTS word_index ON {TABLE} (body, publication_date) "
        "USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}",
    )
    # Only Annulus: one statement that fuses the ranks of both searches.
    hybrid: ClassVar[str | None] = (
        f"{SELECT} $WHERE ORDER BY RRF(ANN(vector, :vector), BM25(body, bm25_words(:words))) LIMIT :articles"
    )

    def __init__(self, host: str, port: int, settings: Settings, server: AnnulusProcess | None = None) -> None:
        super().__init__(host, port, settings)
        self._server = server

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        if not settings.own_servers:
            return cls(settings.host, settings.port, settings)
        server = AnnulusProcess(settings.annulus_binary, directory)
        try:
            return cls("127.0.0.1", server.port, settings, server)
        except BaseException:
            server.stop()
            raise

    def version(self) -> str:
        # `system.local` has the version of Cassandra that drivers are to take it for.
        return self._server.version if self._server is not None else super().version()

    def sizes(self) -> StoreSizes:
        if self._server is None:
            raise StoreError("The sizes of a server that was not started here are not known: set RAG_OWN_SERVERS=true")
        memory = memory_bytes([self._server.pid])
        return StoreSizes(disk_bytes(self._server.data), memory, "the server")

    def close(self) -> None:
        super().close()
        if self._server is not None:
            self._server.stop()
