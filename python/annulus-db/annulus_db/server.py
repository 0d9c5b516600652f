"""A server of one's own: `annulus serve`, which ends with this process."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from annulus_db._binary import find_binary
from annulus_db.errors import StartError

if TYPE_CHECKING:
    from annulus_db.async_client import AsyncClient
    from annulus_db.client import Client

_LAUNCHER = Path(__file__).resolve().parent / "_launch.py"
# The server prints it once its health route, `/health/ready`, says that it serves.
_READY = re.compile(r"is ready: CQL on (.+):(\d+), HTTP on (.+):(\d+)(, both under TLS)?$")
# What an error shows of the log.
_LOG_TAIL_BYTES = 3_000
# A stop takes up to ten seconds, and a slow disk more.
_STOP_SECONDS = 30.0


class Server:
    """A server on free ports of this machine.

    It starts at `with`, or by `start()`, and is ready then. It ends with the block, by `stop()`, and in any
    case with this process, even if that is killed. What is typed at a terminal, such as Ctrl-C, doesn't
    reach it.

        with annulus_db.Server() as server, server.client() as client:
            client.cql("CREATE KEYSPACE shop WITH ...")

    Args:
        data_dir: its directory, which is made and stays. Without one: a temporary one, which is removed when
            the server stops.
        cql_port: the port of CQL; 0 is a free one.
        http_port: the port of the HTTP API; 0 is a free one.
        arguments: further arguments of `annulus serve`, such as `["--memory-limit", "1GiB"]`.
        log: the file to which the log is appended. Without one: the data directory's name and `.log`.
        binary: the program. Without one: that of this package, else of ANNULUS_BINARY, else of PATH.
        start_timeout: seconds that a start may take. A large data directory takes some.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        cql_port: int = 0,
        http_port: int = 0,
        arguments: Sequence[str | os.PathLike[str]] = (),
        log: str | os.PathLike[str] | None = None,
        binary: str | os.PathLike[str] | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self._given_dir = None if data_dir is None else Path(data_dir)
        self._given_log = None if log is None else Path(log)
        self._ports = (cql_port, http_port)
        self._arguments = [os.fspath(argument) for argument in arguments]
        self._binary = binary
        self._start_timeout = start_timeout
        self._temporary: Path | None = None
        self._owner: int | None = None
        self._run: _Run | None = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> Server:
        """Starts the server, and waits until it is ready.

        Raises:
            StartError: it did not start; the error has the end of its log.
        """
        if self._run is not None:
            if self._run.is_running:
                raise StartError("the server runs already", hint="stop() it first")
            self.stop()
        binary = find_binary(self._binary)
        self._owner = os.getpid()
        atexit.register(self.stop)
        try:
            if self._given_dir is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="annulus-"))
            self._run = _Run(self._command(binary), self.log_path)
            self._run.wait_until_ready(self._start_timeout)
        except BaseException:
            self._end(with_temporary=False)
            raise
        return self

    def stop(self) -> None:
        """Stops the server if it runs: it ends what is in flight and writes all to the disk."""
        self._end(with_temporary=True)

    def _end(self, with_temporary: bool) -> None:
        # A process that was forked off this one has a copy of the object, but not of the server.
        if self._owner != os.getpid():
            return
        if self._run is not None:
            self._run.end()
            self._run = None
        atexit.unregister(self.stop)
        if self._temporary is not None:
            # A server that did not start leaves its log, which the error names.
            leaves = self._temporary if with_temporary else self._temporary / "data"
            shutil.rmtree(leaves, ignore_errors=True)
            self._temporary = None

    def client(
        self, *, user: str | None = None, password: str | None = None, timeout: float = 30.0, ca_file: str | None = None
    ) -> Client:
        """A client of this server."""
        from annulus_db.client import Client

        return Client(self.http_url, user=user, password=password, timeout=timeout, ca_file=ca_file)

    def async_client(
        self, *, user: str | None = None, password: str | None = None, timeout: float = 30.0, ca_file: str | None = None
    ) -> AsyncClient:
        """An asynchronous client of this server."""
        from annulus_db.async_client import AsyncClient

        return AsyncClient(self.http_url, user=user, password=password, timeout=timeout, ca_file=ca_file)

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        return self._run is not None and self._run.is_running

    @property
    def host(self) -> str:
        """Its address, such as `127.0.0.1`."""
        return self._ready_line.group(1).strip("[]")

    @property
    def cql_port(self) -> int:
        """The port for drivers of CQL."""
        return int(self._ready_line.group(2))

    @property
    def http_port(self) -> int:
        """The port of the HTTP API."""
        return int(self._ready_line.group(4))

    @property
    def http_url(self) -> str:
        """The HTTP API, such as `http://127.0.0.1:6080`."""
        ready = self._ready_line
        return f"{'https' if ready.group(5) else 'http'}://{ready.group(3)}:{ready.group(4)}"

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._started.process.pid

    @property
    def data_dir(self) -> Path:
        """Its directory."""
        if self._given_dir is not None:
            return self._given_dir
        if self._temporary is None:
            raise StartError("a temporary directory is made at the start", hint="start() the server first")
        return self._temporary / "data"

    @property
    def log_path(self) -> Path:
        """The file of its log."""
        if self._given_log is not None:
            return self._given_log
        data_dir = self.data_dir.absolute()
        return data_dir.with_name(f"{data_dir.name}.log")

    @property
    def _started(self) -> _Run:
        if self._run is None:
            raise StartError("the server does not run", hint="start() it, or use it by `with`")
        return self._run

    @property
    def _ready_line(self) -> re.Match[str]:
        line = self._started.ready_line
        if line is None:
            raise StartError("the server is not ready", hint="wait until start() returns")
        return line

    def _command(self, binary: Path) -> list[str]:
        cql_port, http_port = self._ports
        flags = ["--data-dir", str(self.data_dir), "--cql-port", str(cql_port), "--http-port", str(http_port)]
        return [str(binary), "serve", *flags, *self._arguments]


class _Run:
    """One run of the program, with a thread that starts it and waits for its end.

    The system sends the signal of a parent's end when the thread that started the process ends, so this
    must be one that lives as long as the process."""

    process: subprocess.Popen[str]

    def __init__(self, command: list[str], log_path: Path) -> None:
        self.ready_line: re.Match[str] | None = None
        self._log_path = log_path
        self._failure: OSError | None = None
        self._launched = threading.Event()
        self._ready_or_ended = threading.Event()
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with open(log_path, "ab") as log:
            self._log_begin = log.tell()
        self._thread = threading.Thread(target=self._follow, args=(command,), name="annulus", daemon=True)
        self._thread.start()
        self._launched.wait()
        if self._failure is not None:
            raise StartError(f"{command[0]} can't be run: {self._failure}") from self._failure

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def wait_until_ready(self, seconds: float) -> None:
        """Waits until the server is ready. Raises StartError if it is not, or ends."""
        in_time = self._ready_or_ended.wait(seconds)
        if self.ready_line is not None:
            return
        if in_time:
            # The thread ends once it has the exit code.
            self._thread.join()
            what = f"annulus ended with code {self.process.returncode} before it was ready"
        else:
            what = f"annulus was not ready within {seconds:g} s, and start_timeout= gives it more"
        raise StartError(f"{what}. The end of its log ({self._log_path}):\n{self._log_tail()}")

    def end(self) -> None:
        """Ends the process, and waits for it."""
        self._signal(signal.SIGTERM)
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            self._signal(signal.SIGKILL)
            self._thread.join()

    def _signal(self, number: signal.Signals) -> None:
        # Popen passes over a process that has ended.
        if self._failure is None:
            self.process.send_signal(number)

    def _follow(self, command: list[str]) -> None:
        try:
            with open(self._log_path, "ab") as log:
                self.process = self._launch(command, log)
        except OSError as error:
            self._failure = error
            return
        finally:
            self._launched.set()
        try:
            assert self.process.stdout is not None
            with self.process.stdout as printed:
                for line in printed:
                    if (ready := _READY.search(line.rstrip())) is not None:
                        self.ready_line = ready
                        self._ready_or_ended.set()
            self.process.wait()
        finally:
            self._ready_or_ended.set()

    def _launch(self, command: list[str], log: IO[bytes]) -> subprocess.Popen[str]:
        # An interpreter within another program, such as uwsgi, may not know where Python is.
        if sys.platform == "linux" and sys.executable:
            command = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def _log_tail(self) -> str:
        with open(self._log_path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_begin, size - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
