"""An HTTP proxy in front of one store of objects. It counts the bytes that go through, and makes faults."""

import collections
import dataclasses
import http.client
import http.server
import re
import socket
import threading
import time
import urllib.parse

from server import eventually

# Headers of one connection, which are not passed on.
OF_A_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "expect", "content-length"}


@dataclasses.dataclass
class Request:
    """A request that came, with the number of bytes of its body and the status of its answer.

    The status is None while there is no answer, and 0 if the connection was cut instead."""

    method: str
    path: str
    bytes: int
    at: float
    status: int | None = None


@dataclasses.dataclass
class Fault:
    """What happens to requests of some methods, whose paths match. Every `every`-th of them is hit, `times` of them at
    most.

    kind: `status` (answers with `status` and `body`, and the store sees nothing), `cut` (the connection ends without an
    answer), `cut_late` (likewise, once the store has done it), `tear` (half of the answer's body, then the end),
    `garble` (one byte of the answer's body is another), `slow` (the answer waits for `seconds`), `trickle` (the answer
    takes `seconds`, in pieces)."""

    kind: str
    methods: tuple = ("GET", "PUT", "POST", "DELETE", "HEAD")
    path: str = ""
    every: int = 1
    times: int = 1_000_000
    status: int = 503
    body: bytes = b""
    seconds: float = 0.0
    seen: int = 0
    hits: int = 0

    def takes(self, method, path):
        if method not in self.methods or not re.search(self.path, urllib.parse.unquote(path)):
            return False
        self.seen += 1
        if self.hits >= self.times or self.seen % self.every:
            return False
        self.hits += 1
        return True


class Proxy:
    """The proxy before the store at `upstream`, (host, port), at `url` while it runs."""

    def __init__(self, upstream):
        self.upstream = upstream
        self.lock = threading.Lock()
        self.faults, self.requests = [], []
        outer = self

        class Handler(_Handler):
            proxy = outer

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.address = self._server.server_address[:2]
        self.url = "http://{}:{}".format(*self.address)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def fault(self, kind, **options):
        """Adds a fault and returns it. `clear` ends all."""
        fault = Fault(kind, **options)
        with self.lock:
            self.faults.append(fault)
        return fault

    def clear(self):
        with self.lock:
            self.faults.clear()

    def forget(self):
        """Begins to count from zero."""
        with self.lock:
            self.requests.clear()

    def wait_until_idle(self):
        """Waits until no request is under way."""
        eventually(lambda: all(request.status is not None for request in list(self.requests)))

    def begun(self, method, path, size):
        """Counts a request, and returns it with the fault that hits it."""
        with self.lock:
            request = Request(method, path, size, time.monotonic())
            self.requests.append(request)
            return request, next((fault for fault in self.faults if fault.takes(method, path)), None)

    def sent(self, path=""):
        """Bytes of the bodies of all PUTs and POSTs that the store took, whose paths match."""
        return sum(request.bytes for request in self._uploads(path))

    def puts(self, path=""):
        """How often each path that matches was sent to the store and taken."""
        return collections.Counter(request.path.partition("?")[0] for request in self._uploads(path))

    def _uploads(self, path):
        with self.lock:
            requests = list(self.requests)
        return [
            request
            for request in requests
            if request.method in ("PUT", "POST") and request.status in (200, 201) and re.search(path, urllib.parse.unquote(request.path))
        ]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Clients that go away, as they are killed in tests, are nothing to print."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer is one write of head and body: without this each waits for Nagle.
    disable_nagle_algorithm = True
    proxy = None

    def log_message(self, *_):
        """Prints nothing."""

    def _handle(self):
        body = self._body()
        request, fault = self.proxy.begun(self.command, self.path, len(body))
        kind = fault.kind if fault else None
        if kind == "status":
            request.status = fault.status
            return self._answer(fault.status, [("Content-Type", "application/xml")], fault.body)
        if kind == "cut":
            request.status = 0
            return self._cut()
        if kind == "slow":
            time.sleep(fault.seconds)
        status, headers, answer = self._forward(body)
        request.status = status
        if kind == "cut_late":
            return self._cut()
        if kind == "garble" and answer:
            middle = len(answer) // 2
            answer = answer[:middle] + bytes([answer[middle] ^ 1]) + answer[middle + 1 :]
        if kind == "tear" and len(answer) > 1:
            self._head(status, headers, len(answer))
            self.wfile.write(answer[: len(answer) // 2])
            return self._cut()
        if kind == "trickle" and len(answer) > 1:
            return self._trickle(status, headers, answer, fault.seconds)
        return self._answer(status, headers, answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _handle

    def _body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def _forward(self, body):
        """(status, headers, body) of the store's answer."""
        connection = http.client.HTTPConnection(*self.proxy.upstream, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in OF_A_CONNECTION:
                    connection.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in OF_A_CONNECTION]
            if self.command == "HEAD" and (length := answer.getheader("Content-Length")):
                headers.append(("Content-Length", length))
            return answer.status, headers, answer.read()
        except OSError as error:
            return 502, [], f"the proxy can't reach the store: {error}".encode()
        finally:
            connection.close()

    def _head(self, status, headers, length):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _answer(self, status, headers, body):
        self._head(status, headers, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _trickle(self, status, headers, body, seconds):
        self._head(status, headers, len(body))
        count = 8
        size = max(1, len(body) // count)
        for start in range(0, len(body), size):
            self.wfile.write(body[start : start + size])
            self.wfile.flush()
            time.sleep(seconds / count)

    def _cut(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)


def split(url):
    """(host, port) of a URL."""
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port
