"""Runs an engine as a contender. It reads requests from standard input and writes replies to
standard output, a line of JSON each.

    peers.py NAME DOCUMENTS QUERIES FOLDER        NAME is fts5, zvec or served

{"do": "build"} makes the index from the start: {"elapsed", "bytes", "documents", "about"}. {"do": "count",
"kind"} counts all documents that each query finds: {"counts"}. {"do": "search", "kind", "queries",
"repeat"} answers the first so many queries, so many times: {"elapsed", "hits", "ids"}, the sum of the
ids. `elapsed` is {"cpu_seconds", "wall_seconds"}, of all threads of the process, for `served` of the
server's. Whatever fails is {"failed"}.

`served` is `annulus serve`, which runs at the addresses in ANNULUS_CQL and ANNULUS_HTTP as the
process ANNULUS_PID: rows are written by CQL, and searched by HTTP.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import time

BATCH = 1_000
KEYSPACE, INDEX_SECONDS_MAX = "text", 900


class Stopwatch:
    def __init__(self, cpu=time.process_time):
        self._cpu = cpu
        self._cpu_at_start, self._wall_at_start = cpu(), time.perf_counter()

    def elapsed(self):
        return {
            "cpu_seconds": self._cpu() - self._cpu_at_start,
            "wall_seconds": time.perf_counter() - self._wall_at_start,
        }


def bytes_in(folder):
    return sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.is_file())


def written(kind, words, either, both):
    """A query in a peer's language: its words as a phrase, or joined by what means "or" or "and"."""
    if kind == "phrase":
        return f'"{" ".join(words)}"'
    return (either if kind == "or" else both).join(words)


class Fts5:
    """A table of FTS5 without contents, so that only the index is stored, merged by `optimize`. The
    filter's column is in a table of its own. Of the ways to write these statements, each is the one
    that takes least: without the `+` SQLite looks for each admitted row in each posting list, and
    `rank` takes longer than `bm25`."""

    about = f"SQLite {sqlite3.sqlite_version}"
    cpu = staticmethod(time.process_time)

    def __init__(self, folder):
        self._file = pathlib.Path(folder) / "fts5.db"
        self._file.unlink(missing_ok=True)
        self._database = sqlite3.connect(self._file, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA cache_size = -1000000")

    def build(self, documents):
        execute = self._database.execute
        execute("CREATE VIRTUAL TABLE texts USING fts5 (body, content = '', tokenize = 'unicode61')")
        execute("BEGIN")
        rows = ((id, body) for id, (_, body) in enumerate(documents))
        self._database.executemany("INSERT INTO texts (rowid, body) VALUES (?, ?)", rows)
        execute("INSERT INTO texts (texts) VALUES ('optimize')")
        execute("COMMIT")

    def bytes(self):
        return self._file.stat().st_size

    def build_filter(self, documents):
        self._database.execute("CREATE TABLE columns (id INTEGER PRIMARY KEY, c INTEGER)")
        rows = ((id, int(value)) for id, (value, _) in enumerate(documents))
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO columns VALUES (?, ?)", rows)
        self._database.execute("CREATE INDEX by_c ON columns (c)")
        self._database.execute("COMMIT")

    def query(self, kind, words):
        words = words if kind == "phrase" else [f'"{word}"' for word in words]
        return written(kind, words, " OR ", " AND ")

    def search(self, query, admitted, limit):
        if admitted is None:
            text = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT ?"
            return [id for (id,) in self._database.execute(text, (query, limit))]
        text = (
            "SELECT rowid FROM texts WHERE texts MATCH ? AND +rowid IN (SELECT id FROM columns WHERE c = ?) "
            "ORDER BY bm25(texts) LIMIT ?"
        )
        return [id for (id,) in self._database.execute(text, (query, admitted, limit))]

    def count(self, query, admitted):
        text, values = "SELECT count(*) FROM texts WHERE texts MATCH ?", [query]
        if admitted is not None:
            text += " AND +rowid IN (SELECT id FROM columns WHERE c = ?)"
            values.append(admitted)
        return self._database.execute(text, values).fetchone()[0]


class Zvec:
    """A collection without vectors. It counts no more than 100,000 documents."""

    cpu = staticmethod(time.process_time)
    counted_max = 100_000

    def __init__(self, folder):
        import importlib.metadata

        import zvec

        self.about = f"zvec {importlib.metadata.version('zvec')}"
        self._zvec, self._folder = zvec, pathlib.Path(folder) / "collection"
        with contextlib.suppress(RuntimeError):  # It can be set up once only.
            zvec.init(query_threads=1, optimize_threads=1, log_level=zvec.LogLevel.ERROR)
        shutil.rmtree(self._folder, ignore_errors=True)
        fields = [
            zvec.FieldSchema("c", zvec.DataType.INT64, index_param=zvec.InvertIndexParam()),
            zvec.FieldSchema("body", zvec.DataType.STRING, index_param=zvec.FtsIndexParam(tokenizer_name="standard")),
        ]
        schema = zvec.CollectionSchema(name="texts", fields=fields)
        self._texts = zvec.create_and_open(path=str(self._folder), schema=schema)

    def build(self, documents):
        batch = []
        for id, (value, body) in enumerate(documents):
            batch.append(self._zvec.Doc(id=str(id), fields={"c": int(value), "body": body}))
            if len(batch) == BATCH:
                self._texts.insert(batch)
                batch = []
        if batch:
            self._texts.insert(batch)
        self._texts.optimize()
        self._texts.flush()

    def bytes(self):
        """All of the collection: it can't be without its documents."""
        return bytes_in(self._folder)

    def build_filter(self, documents):
        pass

    def query(self, kind, words):
        words = words if kind in ("phrase", "or") else [f"+{word}" for word in words]
        return written(kind, words, " ", " ")

    def search(self, query, admitted, limit):
        of_words = self._zvec.Query(field_name="body", fts=self._zvec.Fts(query_string=query))
        condition = None if admitted is None else f"c = {admitted}"
        found = self._texts.query(of_words, topk=limit, filter=condition, output_fields=[])
        return [int(one.id) for one in found]

    def count(self, query, admitted):
        return len(self.search(query, admitted, self.counted_max))


class Served:
    """A table of `annulus serve` with a full-text index."""

    about = "annulus serve, HTTP"

    def __init__(self, folder):
        from cassandra.cluster import Cluster

        host, port = os.environ["ANNULUS_CQL"].rsplit(":", 1)
        self._tasks = pathlib.Path(f"/proc/{os.environ['ANNULUS_PID']}/task")
        self._http = http.client.HTTPConnection(os.environ["ANNULUS_HTTP"], timeout=60)
        self._session = Cluster([host], port=int(port), protocol_version=4).connect()
        self._session.default_timeout = 120
        self._session.execute(f"DROP KEYSPACE IF EXISTS {KEYSPACE}")
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        self._session.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}")
        self._session.set_keyspace(KEYSPACE)
        self._session.execute("CREATE TABLE texts (id int PRIMARY KEY, c int, body text)")

    def cpu(self):
        """Nanoseconds that each thread ran are the first number of its `schedstat`."""
        ran = 0
        for task in self._tasks.iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                ran += int((task / "schedstat").read_text().split()[0])
        return ran / 1e9

    def prepare(self, documents):
        from cassandra.concurrent import execute_concurrent_with_args

        insert = self._session.prepare("INSERT INTO texts (id, c, body) VALUES (?, ?, ?)")
        rows = ((id, int(value), body) for id, (value, body) in enumerate(documents))
        for success, error in execute_concurrent_with_args(
            self._session, insert, rows, concurrency=128, results_generator=True
        ):
            if not success:
                raise error

    def build(self, documents):
        """Builds the index of rows that are there."""
        self._session.execute(
            "CREATE CUSTOM INDEX texts_body ON texts (body, c) USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'simple'}"
        )
        deadline = time.monotonic() + INDEX_SECONDS_MAX
        while self._get("status").get("status") != "SERVING":
            if time.monotonic() > deadline:
                raise TimeoutError("the index does not serve")
            time.sleep(0.05)

    def _get(self, route):
        self._http.request("GET", f"/api/v1/indexes/{KEYSPACE}/texts_body/{route}")
        response = self._http.getresponse()
        text = response.read()
        return json.loads(text) if response.status == 200 else {}

    def bytes(self):
        return self._get("status").get("fts_index_size_bytes")

    def build_filter(self, documents):
        pass

    def query(self, kind, words):
        return written(kind, words, " ", " AND ")

    def search(self, query, admitted, limit):
        body = {"query": query, "limit": limit}
        if admitted is not None:
            restrictions = [{"type": "==", "lhs": "c", "rhs": admitted}]
            body["filter"] = {"restrictions": restrictions, "allow_filtering": True}
        headers = {"Content-type": "application/json"}
        self._http.request("POST", f"/api/v1/indexes/{KEYSPACE}/texts_body/bm25", json.dumps(body), headers)
        response = self._http.getresponse()
        text = response.read()
        if response.status != 200:
            raise RuntimeError(f"{response.status} {text.decode()}")
        return json.loads(text)["primary_keys"]["id"]

    def count(self, query, admitted):
        if admitted is None:
            text, values = "SELECT count(*) FROM texts WHERE BM25(body, %s) > 0", (query,)
        else:
            text, values = "SELECT count(*) FROM texts WHERE BM25(body, %s) > 0 AND c = %s", (query, admitted)
        return self._session.execute(text, values).one()[0]


PEERS = {"fts5": Fts5, "zvec": Zvec, "served": Served}


class Contender:
    def __init__(self, name, documents, queries, folder):
        self._kind, self._documents, self._folder = PEERS[name], pathlib.Path(documents), folder
        self._queries = json.loads(pathlib.Path(queries).read_text())
        self._peer = None

    def rows(self):
        with open(self._documents) as file:
            for line in file:
                yield line.rstrip("\n").split("\t", 1)

    def build(self):
        os.makedirs(self._folder, exist_ok=True)
        self._peer = None
        peer = self._peer = self._kind(self._folder)
        if hasattr(peer, "prepare"):
            peer.prepare(self.rows())
        stopwatch = Stopwatch(peer.cpu)
        peer.build(self.rows())
        elapsed, size = stopwatch.elapsed(), peer.bytes()
        peer.build_filter(self.rows())
        return {"elapsed": elapsed, "bytes": size, "documents": sum(1 for _ in self.rows()), "about": peer.about}

    def asked(self, kind, queries=None):
        """The peer's own form of queries, with the value that is admitted."""
        admitted = self._queries["admitted"] if kind.endswith("_filtered") else None
        form = kind.removesuffix("_filtered")
        return [(self._peer.query(form, words), admitted) for words in self._queries[kind][:queries]]

    def count(self, kind):
        peer = self._peer
        counts = [peer.count(*asked) for asked in self.asked(kind)]
        return {"counts": counts, "counted_max": getattr(peer, "counted_max", None)}

    def search(self, kind, queries, repeat):
        asked, limit, peer = self.asked(kind, queries), self._queries["limit"], self._peer
        hits = ids = 0
        stopwatch = Stopwatch(peer.cpu)
        for _ in range(repeat):
            for query, admitted in asked:
                found = peer.search(query, admitted, limit)
                hits += len(found)
                ids += sum(found)
        return {"elapsed": stopwatch.elapsed(), "hits": hits, "ids": ids}


def main():
    # What libraries print must not come between the replies.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    contender = Contender(*sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(contender, request.pop("do"))(**request)
        except Exception as error:  # The measurement gets the error and decides.
            reply = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
