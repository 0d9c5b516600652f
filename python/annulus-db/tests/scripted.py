"""A server of HTTP that answers what a test says."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Noted(NamedTuple):
    """A request that came."""

    method: str
    path: str
    headers: Any
    body: Any
    connection: Any


class ScriptedServer:
    """A server at `url`. `answers` has functions of a handler, or (status, body, headers)."""

    def __init__(self):
        self.requests, self.answers = [], []
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                noted = json.loads(body) if body else None
                script.requests.append(Noted(self.command, self.path, self.headers, noted, self.client_address))
                answer = script.answers.pop(0)
                if callable(answer):
                    answer(self)
                    return
                status, sent, headers = (*answer, {})[:3]
                self.reply(status, sent, headers)

            def reply(self, status, sent, headers):
                payload = sent.encode() if isinstance(sent, str) else json.dumps(sent).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(payload)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_PUT = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


def hang_up(handler):
    """Ends the connection without an answer."""
    handler.close_connection = True


def chunks(*pieces):
    """An answer in pieces."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in [*pieces, b""]:
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    return answer
