"""A root folder of another system, with what programs there need."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading

READY = re.compile(r"ready: CQL on [\d.]+:(\d+), HTTP on [\d.]+:(\d+)")
START_SECONDS = 60
# `chroot` itself is found here, too.
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def free_port():
    """A port that was free just now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Chroot:
    """The system below a folder."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self._mounted = []
        self._servers = []

    def mount(self):
        """Mounts /proc, and the devices that programs write to. No service starts in the system."""
        proc = self.root / "proc"
        proc.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
        self._mounted.append(proc)
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)

    def close(self):
        """Ends all servers and unmounts."""
        for server in self._servers:
            server.kill()
        while self._mounted:
            subprocess.run(["umount", "--lazy", self._mounted.pop()], check=True)

    def command(self, *arguments, user=None):
        """The command that runs another one there, as a user."""
        as_user = [f"--userspec={user}"] if user else []
        return ["chroot", *as_user, self.root, *arguments]

    def run(self, *arguments, user=None, check=True, environment=None):
        """Runs a command there until it ends."""
        given = {"PATH": PATHS, **(environment or {})}
        result = subprocess.run(self.command(*arguments, user=user), capture_output=True, text=True, env=given, timeout=300)
        assert not check or result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
        return result

    def serve(self, *arguments, user, environment=None):
        """Starts a server there, and waits until it is ready."""
        server = ServerThere(self.command(*arguments, user=user), environment or {})
        self._servers.append(server)
        return server


class ServerThere:
    """A server that runs in another root."""

    def __init__(self, command, environment):
        given = {"PATH": PATHS, **environment}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=given)
        timer = threading.Timer(START_SECONDS, self._process.kill)
        timer.start()
        try:
            for line in self._process.stdout:
                if ready := READY.search(line):
                    self.cql_port, self.http_port = map(int, ready.groups())
                    return
        finally:
            timer.cancel()
        raise AssertionError(f"not ready: exit code {self._process.wait()}")

    def user(self):
        """The number of the user that it runs as."""
        return os.stat(f"/proc/{self._process.pid}").st_uid

    def stop(self):
        """Stops it. Returns the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=30)

    def kill(self):
        """Ends it, if it runs still."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
