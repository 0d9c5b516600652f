"""The store of a service or a page: connected when it is first needed, so that either may start before its database."""

from collections.abc import Callable
from threading import Lock

from ..config import Settings
from ..stores import Store, store_class


class StoreConnection:
    """Gives the store that the settings name. Threads share it."""

    def __init__(self, settings: Settings, connect: Callable[[Settings], Store] | None = None) -> None:
        self._settings, self._connect = settings, connect or connected
        self._lock = Lock()
        self._store: Store | None = None

    def __call__(self) -> Store:
        """The store. Raises `StoreError` where nothing answers; the next call tries again."""
        with self._lock:
            if self._store is None:
                self._store = self._connect(self._settings)
            return self._store

    def close(self) -> None:
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = None


def connected(settings: Settings) -> Store:
    """The store that the settings name."""
    return store_class(settings.store).start(settings.directory / "stores" / settings.store, settings)
