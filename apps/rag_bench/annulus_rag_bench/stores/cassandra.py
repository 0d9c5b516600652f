"""Apache Cassandra 5: the published table and index, and an index of the date."""

from pathlib import Path
from typing import ClassVar, Self

from ..config import Settings
from ..footprint import disk_bytes, memory_bytes
from .cql import TABLE, CqlStore
from .server_process import CassandraProcess
from .store import StoreError, StoreSizes


class CassandraStore(CqlStore):
    """A node that runs already, or one of its own. It has no index of words."""

    name: ClassVar[str] = "cassandra"
    title: ClassVar[str] = "Apache Cassandra"
    durability: ClassVar[str] = (
        "In the commit log in memory when an insert returns, and synced every 10 s (`commitlog_sync: periodic`)."
    )
    index: ClassVar[str] = "SAI on the vector (cosine) and on the date, defaults. No index of words."
    has_hybrid: ClassVar[bool] = False
    # Cassandra 5.0.9 fails inserts of vectors that run side by side (CASSANDRA-21644), so that the node here has two
    # writers. What is beyond a few waits, and on a busy machine times out.
    inserts_in_flight: ClassVar[int] = 8
    start_command: ClassVar[str] = "Start one, and name it by RAG_HOST and RAG_PORT"
    indexes: ClassVar[tuple[str, ...]] = (
        f"CREATE CUSTOM INDEX IF NOT EXISTS ann_index ON {TABLE}(vector) USING 'StorageAttachedIndex'",
        f"CREATE CUSTOM INDEX IF NOT EXISTS date_index ON {TABLE}(publication_date) USING 'StorageAttachedIndex'",
    )

    def __init__(self, host: str, port: int, settings: Settings, node: CassandraProcess | None = None) -> None:
        super().__init__(host, port, settings)
        self._node = node

    @classmethod
    def start(cls, directory: Path, settings: Settings) -> Self:
        if not settings.own_servers:
            return cls(settings.host, settings.port, settings)
        node = CassandraProcess(directory)
        try:
            return cls(node.host, node.port, settings, node)
        except BaseException:
            node.stop()
            raise

    def sizes(self) -> StoreSizes:
        if self._node is None:
            raise StoreError("The sizes of a node that was not started here are not known: set RAG_OWN_SERVERS=true")
        note = "the node; its memory is what Java takes of a heap of up to 1 GiB"
        # What is only in the memtable takes no disk but that of the commit log, which counts as well.
        return StoreSizes(disk_bytes(self._node.data), memory_bytes([self._node.pid]), note)

    def close(self) -> None:
        super().close()
        if self._node is not None:
            self._node.stop()
