"""Requests to the HTTP API that concern text indexes, in one place, as their bodies are."""

import json

from server import eventually


class Refused(Exception):
    """An answer that is none, with its status and text."""

    def __init__(self, status, text):
        super().__init__(f"{status} {text}")
        self.status, self.text = status, text


class Service:
    """The HTTP API of an `IndexService`."""

    def __init__(self, server):
        self.server = server

    def post(self, keyspace, index, route, body):
        """(status, text) of a request."""
        return self.server.http(f"/api/v1/indexes/{keyspace}/{index}/{route}", body)

    def _answer(self, keyspace, index, route, body):
        status, text = self.post(keyspace, index, route, body)
        if status != 200:
            raise Refused(status, text)
        return json.loads(text)

    def bm25(self, keyspace, index, query, limit, filter=None):
        """[(key, score)] of the best rows; a key is the tuple of its columns."""
        body = {"query": query, "limit": limit} | ({} if filter is None else {"filter": filter})
        return _scored(self._answer(keyspace, index, "bm25", body), "scores")

    def ann(self, keyspace, index, vector, limit, filter=None):
        body = {"vector": vector, "limit": limit} | ({} if filter is None else {"filter": filter})
        return _scored(self._answer(keyspace, index, "ann", body), "similarity_scores")

    def highlight(self, keyspace, index, query, documents, **options):
        body = {"query": query, "documents": documents} | ({"options": options} if options else {})
        return self._answer(keyspace, index, "highlight", body)["highlights"]

    def matches(self, keyspace, index, query, limit, filter=None):
        """The keys of all rows that match, in pages of `limit`."""
        found, after = [], None
        while True:
            body = {"query": query, "limit": limit}
            body |= {} if filter is None else {"filter": filter}
            body |= {} if after is None else {"after": after}
            answer = self._answer(keyspace, index, "matches", body)
            keys = _keys(answer)
            assert len(keys) <= limit, answer
            found += keys
            after = answer.get("next")
            if after is None:
                return found

    def wait(self, keyspace, index, count, seconds=60):
        self.server.wait_for_index(keyspace, index, count, seconds)

    def eventually_serves(self, keyspace, index, seconds=60):
        serves = lambda: self.server.index_status(keyspace, index)["status"] == "SERVING"  # noqa: E731
        eventually(serves, seconds)


def _keys(answer):
    return list(zip(*answer["primary_keys"].values()))


def _scored(answer, scores):
    keys = _keys(answer)
    assert len(keys) == len(answer[scores]), answer
    return list(zip(keys, answer[scores]))


def restriction(type, lhs, rhs, **more):
    return {"type": type, "lhs": lhs, "rhs": rhs, **more}


def restrictions(*all_of):
    """A filter as ScyllaDB sends it, with permission to filter."""
    return {"restrictions": list(all_of), "allow_filtering": True}


def tree(*all_of):
    """A filter of conditions, each a restriction or {"and": [..]}, {"or": [..]} or {"not": {..}}."""
    (first, *others) = all_of
    whole = {"and": list(all_of)} if others or "type" in first else first
    return whole | {"allow_filtering": True}


def has_words(column, query):
    """The condition that the text of a column matches a query."""
    return {"type": "BM25", "lhs": column, "rhs": query}
