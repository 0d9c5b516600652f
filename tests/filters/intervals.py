"""A model of a table that several threads write to, which says what a search may have seen.

Each row has one writer, so that the order of its writes is known. A write happens somewhere between
the moment it was sent and the moment it was acknowledged, and a search sees each row at some moment
between its own two. So a search may see what the last write that was acknowledged before it left,
or what any write left that was on its way meanwhile. An expiry is known to the second."""

import collections
import itertools
import math

SECOND = 1.1
"""A TTL runs from the whole second in which the write came."""

Cell = collections.namedtuple("Cell", "value expires", defaults=(None,))
"""A cell. `expires` is None, or the first and the last moment at which the cell may expire."""

Version = collections.namedtuple("Version", "sent acknowledged cells")
"""The cells of a row after a write, by (column, path)."""

MARKER = ("", None)
"""The place of the cell that says that a row was inserted."""


def expiry(ttl, sent, acknowledged):
    return None if ttl is None else (sent + ttl - SECOND, acknowledged + ttl + SECOND)


class History:
    """The versions of one row, or of the static columns of one partition. `collections` has the
    kinds of the collection columns."""

    def __init__(self, collections):
        self._collections = collections
        self.versions = [Version(-math.inf, -math.inf, {})]

    def write(self, sent, acknowledged, change):
        """`change(cells)` returns the cells that the write leaves."""
        self.versions.append(Version(sent, acknowledged, change(dict(self.versions[-1].cells))))

    def delete(self, sent, acknowledged):
        self.write(sent, acknowledged, lambda _cells: {})

    def seen(self, began, ended):
        """The contents that a reader between two moments may see: dicts of columns; None where
        there is no row."""
        last = max(at for at, version in enumerate(self.versions) if version.acknowledged <= began)
        return [
            content
            for version in self.versions[last:]
            if version.sent < ended
            for content in self._contents(version.cells, began, ended)
        ]

    def _contents(self, cells, began, ended):
        doubtful = {cell.expires for cell in cells.values() if cell.expires and cell.expires[0] <= ended and began <= cell.expires[1]}
        for lives in itertools.product([True, False], repeat=len(doubtful)):
            is_live = dict(zip(doubtful, lives))

            def lives_still(cell):
                return cell.expires is None or is_live.get(cell.expires, ended < cell.expires[0])

            yield self._content({place: cell.value for place, cell in cells.items() if lives_still(cell)})

    def _content(self, values):
        if not values:
            return None
        content = collections.defaultdict(lambda: None)
        for (column, path), value in values.items():
            kind = self._collections.get(column)
            if kind is None:
                content[column] = value
            elif content[column] is None:
                content[column] = kind([path] if kind is set else {path: value})
            elif kind is set:
                content[column].add(path)
            else:
                content[column][path] = value
        return content
