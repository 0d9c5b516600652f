"""A server in OpenAI's form whose answers a test writes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer(ThreadingHTTPServer):
    """Answers every request with what a test says, and remembers the last one."""

    daemon_threads = True
    status, answer = 200, b""
    path: str | None = None
    key: str | None = None
    body: dict[str, object] = {}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def say(self, text: object) -> None:
        """Answers with a text from now on."""
        self.status, self.answer = 200, json.dumps({"choices": [{"message": {"content": text}}]}).encode()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, ChatServer)
        server.path, server.key = self.path, self.headers["Authorization"]
        server.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(server)

    def do_GET(self) -> None:
        assert isinstance(self.server, ChatServer)
        self._answer(self.server)

    def _answer(self, server: ChatServer) -> None:
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(server.answer)))
        self.end_headers()
        self.wfile.write(server.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing."""


@contextlib.contextmanager
def running_chat_server() -> Iterator[ChatServer]:
    server = ChatServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
