"""The Debian package: installed, started, upgraded, removed and purged, and nothing of the data lost."""

import configparser
import gzip
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from cassandra.cluster import Cluster
from chroot import free_port
from conftest import ROOT, tool

UNIT = "usr/lib/systemd/system/annulus.service"
CONFIGURATION = "etc/annulus/annulus.toml"


@pytest.fixture(scope="module")
def next_deb(program, tmp_path_factory):
    """The package of the next revision, with the program of this one."""
    environment = {**os.environ, "DEB_REVISION": "2"}
    made = subprocess.run(
        [sys.executable, ROOT / "packaging/deb.py", program], check=True, env=environment, capture_output=True, text=True
    )
    path = pathlib.Path(made.stdout.rsplit(" (", 1)[0])
    moved = shutil.move(path, tmp_path_factory.mktemp("next") / path.name)
    return pathlib.Path(moved)


def exec_start(system):
    """The command of the unit."""
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str
    unit.read_string((system.root / UNIT).read_text())
    service = unit["Service"]
    assert service["Type"] == "notify" and service["User"] == "annulus"
    return service["ExecStart"].split()


def start(system):
    """Starts what the unit starts, on free ports, as the unit's user."""
    ports = {"ANNULUS_CQL_PORT": str(free_port()), "ANNULUS_HTTP_PORT": str(free_port())}
    return system.serve(*exec_start(system), user="annulus:annulus", environment=ports)


def install(system, package):
    (system.root / package.name).write_bytes(package.read_bytes())
    system.run("dpkg", "-i", f"/{package.name}", environment={"DEBIAN_FRONTEND": "noninteractive"})


def names(server):
    """The rows that are there."""
    cluster = Cluster(["127.0.0.1"], port=server.cql_port)
    try:
        return [row.name for row in cluster.connect().execute("SELECT name FROM shop.products")]
    finally:
        cluster.shutdown()


def write_a_row(server):
    cluster = Cluster(["127.0.0.1"], port=server.cql_port)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.products (id int PRIMARY KEY, name text)")
    session.execute("INSERT INTO shop.products (id, name) VALUES (1, 'tea')")
    cluster.shutdown()


@pytest.mark.parametrize("release", ["bullseye", "bookworm"])
def test_data_outlive_upgrade_removal_and_purge(release, deb, next_deb, debian, tmp_path):
    system = debian(release, tmp_path)
    install(system, deb)
    server = start(system)
    assert server.user() == int(system.run("id", "-u", "annulus").stdout)
    write_a_row(server)
    assert server.stop() == 0

    # What an administrator changed stays.
    configuration = system.root / CONFIGURATION
    configuration.write_text(configuration.read_text().replace("#datacenter =", "datacenter ="))
    changed = configuration.read_text()
    install(system, next_deb)
    assert configuration.read_text() == changed
    server = start(system)
    assert names(server) == ["tea"]
    assert server.stop() == 0

    system.run("dpkg", "--remove", "annulus")
    assert not (system.root / "usr/bin/annulus").exists() and configuration.exists()
    system.run("dpkg", "--purge", "annulus")
    assert not configuration.exists()
    install(system, deb)
    server = start(system)
    assert names(server) == ["tea"]
    assert server.stop() == 0


def test_package_has_completions_pages_and_licences(deb, tmp_path):
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    for shell, name in [
        ("bash", "usr/share/bash-completion/completions/annulus"),
        ("zsh", "usr/share/zsh/vendor-completions/_annulus"),
        ("fish", "usr/share/fish/vendor_completions.d/annulus.fish"),
    ]:
        text = (tmp_path / name).read_text()
        assert "doctor" in text, name
        if shutil.which(shell):
            subprocess.run([shell, "-n", tmp_path / name], check=True)
    page = gzip.decompress((tmp_path / "usr/share/man/man1/annulus-serve.1.gz").read_bytes()).decode()
    assert "data\\-dir" in page
    licences = (tmp_path / "usr/share/doc/annulus/copyright").read_text()
    assert "License: Apache-2.0" in licences and "License: CC-BY-SA-4.0" in licences
    configuration = (tmp_path / CONFIGURATION).read_text()
    settings = [line for line in configuration.splitlines() if line and not line.startswith("#")]
    assert settings == ['data-dir = "/var/lib/annulus/annulus-data"']


def test_unit_is_valid_and_hardened(deb, tmp_path):
    subprocess.run(["dpkg-deb", "-x", deb, tmp_path], check=True)
    # The program is not installed here; all else of the unit is looked at as it is.
    unit = tmp_path / "annulus.service"
    unit.write_text((tmp_path / UNIT).read_text().replace("/usr/bin/annulus", "/bin/true"))
    verify = [tool("systemd-analyze", "systemd"), "verify", "--man=no", unit]
    result = subprocess.run(verify, capture_output=True, text=True)
    of_unit = [line for line in result.stderr.splitlines() if "annulus.service" in line]
    assert (result.returncode, of_unit) == (0, []), result.stderr
    security = ["systemd-analyze", "security", "--offline=true", f"--root={tmp_path}", "--threshold=25", "annulus.service"]
    result = subprocess.run(security, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_lintian_has_no_errors(deb):
    lintian = tool("lintian", "lintian")
    result = subprocess.run([lintian, "--allow-root", "--fail-on", "error", deb], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
