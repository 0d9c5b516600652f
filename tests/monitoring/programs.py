"""Finds, starts and stops Prometheus, Alertmanager and rsyslog: those on the PATH, else those of Debian's packages,
unpacked into target/monitoring without installing them."""

import contextlib
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from files import ROOT
from server import eventually

PACKAGES = ["prometheus", "prometheus-alertmanager", "rsyslog"]
# What rsyslog links, where it is not installed.
LIBRARIES = ["libestr0", "libfastjson4", "liblognorm5"]
UNPACKED = ROOT / "target/monitoring/root"
STOP_SECONDS = 20


def program(name):
    """The path of a program. Skips the test if there is none."""
    if found := shutil.which(name):
        return found
    if not UNPACKED.exists():
        _unpack()
    for folder in ("usr/bin", "usr/sbin"):
        if (UNPACKED / folder / name).exists():
            return str(UNPACKED / folder / name)
    pytest.skip(f"{name} is not here, and not to be had by apt: apt-get install {' '.join(PACKAGES)}")


def _unpack():
    downloads = UNPACKED.parent / "packages"
    downloads.mkdir(parents=True, exist_ok=True)
    if shutil.which("apt-get") is None:
        return
    command = ["apt-get", "download", "-q", *PACKAGES, *LIBRARIES]
    done = subprocess.run(command, cwd=downloads, capture_output=True, text=True)
    if done.returncode != 0:
        return
    for package in downloads.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, UNPACKED], check=True)


def environment():
    """The environment of programs that may be unpacked ones."""
    libraries = UNPACKED / f"usr/lib/{platform.machine()}-linux-gnu"
    return os.environ | {"LD_LIBRARY_PATH": str(libraries)} if UNPACKED.exists() else dict(os.environ)


def checked(name, *arguments):
    """Runs a program that checks files. Returns what it printed; it must succeed."""
    command = [program(name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def rsyslog_arguments():
    """Arguments by which an unpacked rsyslog finds its modules."""
    modules = UNPACKED / f"usr/lib/{platform.machine()}-linux-gnu/rsyslog"
    return [] if shutil.which("rsyslogd") else ["-M", str(modules)]


@contextlib.contextmanager
def running(name, arguments, log, ready):
    """A program that runs within the block. `ready()` becomes true once it serves."""
    with open(log, "ab") as output:
        command = [program(name), *map(str, arguments)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment())
    try:
        eventually(lambda: process.poll() is not None or ready(), 60)
        assert process.poll() is None, pathlib.Path(log).read_text()[-2000:]
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(url):
    """Whether a GET of a URL succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def answers_tcp(port):
    """Whether a port of loopback takes connections."""
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def prometheus(configuration, folder, port):
    """Prometheus with a file of settings. Yields its address."""
    address = f"http://127.0.0.1:{port}"
    arguments = [f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'series'}"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}"]
    with running("prometheus", arguments, folder / "prometheus.log", lambda: answers(f"{address}/-/ready")):
        yield address


@contextlib.contextmanager
def alertmanager(configuration, folder, port):
    """Alertmanager with a file of settings. Yields its address."""
    address = f"http://127.0.0.1:{port}"
    arguments = [f"--config.file={configuration}", f"--storage.path={folder / 'alertmanager'}"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    with running("prometheus-alertmanager", arguments, folder / "alertmanager.log", lambda: answers(f"{address}/-/ready")):
        yield address


@contextlib.contextmanager
def rsyslog(configuration, folder, ready):
    """rsyslog with a file of settings. Without a file of its id: one that was ended on a busy machine leaves it there."""
    arguments = ["-n", "-f", configuration, "-iNONE", *rsyslog_arguments()]
    with running("rsyslogd", arguments, folder / "rsyslog.log", ready):
        yield
