"""Starts servers for tests on free ports of loopback: the two of this package, each as a process, and a scripted one.

    with running_embedder() as embedder, running_stub_model(delay=0.05) as model:
        openai.OpenAI(base_url=embedder.base_url, api_key="none").embeddings.create(...)
        model.stop()     # from here on connections are refused
        model.start()    # on the same port
    with running_scripted_server() as server:
        server.status, server.answer = 200, b"<html>"
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PACKAGE_ROOT = pathlib.Path(__file__).resolve().parents[1]
READY = re.compile(rb"ready: http://127\.0\.0\.1:(\d+)")
STARTS_WITHIN, ENDS_WITHIN = 60, 10


class TestServer:
    """A server of this package in a process of its own."""

    # Not a class of tests, whatever its name says to pytest.
    __test__ = False

    def __init__(self, module: str, *arguments: str) -> None:
        self._module, self._arguments = module, arguments
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The URL that clients of OpenAI take as their base."""
        return self.url + "/v1"

    @property
    def pid(self) -> int:
        """The id of the process."""
        if self._process is None:
            raise RuntimeError(f"{self._module} doesn't run")
        return self._process.pid

    def start(self) -> None:
        """Starts the server, and returns when it listens: on a free port, later on the same one again."""
        path = os.pathsep.join(filter(None, [str(PACKAGE_ROOT), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, "--port", str(self.port), *self._arguments],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            self.port = self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends the process. Connections are refused from then on."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def get(self, path: str) -> Any:
        """The JSON that a GET of `path` answers."""
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> int:
        """The port of the line that says that the server listens."""
        assert process.stdout is not None
        output, deadline = b"", time.monotonic() + STARTS_WITHIN
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            piece = os.read(process.stdout.fileno(), 4096)
            output += piece
            if ready := READY.search(output):
                return int(ready[1])
            if not piece:
                raise RuntimeError(f"{self._module} ended with {process.wait()} before it listened")
        raise TimeoutError(f"{self._module} doesn't listen after {STARTS_WITHIN} s")


class StubModelServer(TestServer):
    """The stub model in a process of its own."""

    @property
    def calls(self) -> int:
        """How many chat requests have come."""
        return int(self.get("/calls")["calls"])

    @property
    def last(self) -> Any:
        """The newest chat request: `{"authorization": ..., "body": ...}`, or None."""
        return self.get("/calls")["last"]


@contextlib.contextmanager
def running_embedder(*arguments: str) -> Iterator[TestServer]:
    """An embedding server. `arguments` are more options of its command line."""
    server = TestServer("annulus_embedder", *arguments)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def running_stub_model(delay: float = 0.0) -> Iterator[StubModelServer]:
    """A stub model whose answers take `delay` seconds."""
    server = StubModelServer("annulus_embedder.stub_model", "--delay", str(delay))
    try:
        server.start()
        yield server
    finally:
        server.stop()


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request with the bytes that a test chose, and remembers the last request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ScriptedHandler)
        self.status, self.answer = 200, b""
        self.path: str | None = None
        self.authorization: str | None = None
        self.body: Any = None

    @property
    def base_url(self) -> str:
        """The URL that clients of OpenAI take as their base."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def say(self, text: object) -> None:
        """Has each chat request answered with a text from now on."""
        self.status, self.answer = 200, json.dumps({"choices": [{"message": {"content": text}}]}).encode()

    def embed(self, *vectors: list[float]) -> None:
        """Has each request for embeddings answered with these vectors from now on."""
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        self.status, self.answer = 200, json.dumps({"data": data}).encode()


class _ScriptedHandler(BaseHTTPRequestHandler):
    server: ScriptedServer

    def do_POST(self) -> None:
        self.server.path, self.server.authorization = self.path, self.headers["Authorization"]
        self.server.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        """Writes nothing."""


@contextlib.contextmanager
def running_scripted_server() -> Iterator[ScriptedServer]:
    """A scripted server in a thread."""
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
