"""Runs the pieces of docs/drivers.md, one for each language, at a server with TLS and logins.

A piece whose driver is not installed is left out, unless PIECES names its language: the targets of
the Makefile that install a driver do so."""

import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

import sectioned
from process import BINARY
from server import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/drivers.md"
JAVA = ROOT / "target/clients/java-build/lib"
NODE = ROOT / "tests/clients/node/node_modules"
GO = ROOT / "tests/clients/gocql"
RUST = ROOT / "crates/annulus/examples/nearest.rs"
PASSWORD = "sesame-open"
REQUIRED = os.environ.get("PIECES", "").split()


def needs(language, is_installed, remedy):
    """A mark for a test that leaves it out where the driver of its language is not installed."""
    return pytest.mark.skipif(language not in REQUIRED and not is_installed, reason=remedy)


def piece(language):
    """The one block of the page in that language."""
    (block,) = re.findall(f"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return block


def tour():
    """README's statements that make the shop."""
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "CREATE KEYSPACE" in block]
    return [statement for part in block.split(";") if (statement := part.strip())]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server as the page describes it, and the folder with `certs`, from which the pieces run."""
    folder = tmp_path_factory.mktemp("drivers")
    certs, superuser = folder / "certs", folder / "superuser"
    made = [BINARY, "certificate", "--out", certs, "--name", "localhost", "--name", "127.0.0.1"]
    subprocess.run(made, check=True, capture_output=True, timeout=30)
    superuser.write_text(f"{sectioned.USER}\n{sectioned.PASSWORD}")
    files = ["--tls-cert-path", certs / "server.pem", "--tls-key-path", certs / "server.key"]
    with Server(folder / "data", "--login", "--superuser-file", superuser, *files) as server:
        context = ssl.create_default_context(cafile=certs / "ca.pem")
        login = PlainTextAuthProvider(sectioned.USER, sectioned.PASSWORD)
        with Cluster([server.host], port=server.cql_port, ssl_context=context, auth_provider=login) as cluster:
            session = cluster.connect()
            for statement in [*tour(), *piece("sql").split(";")]:
                if statement.strip():
                    session.execute(statement)
        yield server, folder


def prints_the_nearest(guarded, command, **more):
    server, folder = guarded
    environment = os.environ | {"APP_PASSWORD": PASSWORD, "ANNULUS_CQL": f"{server.host}:{server.cql_port}"}
    options = {"cwd": folder, "env": environment} | more
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["tea", "cocoa"], done.stdout + done.stderr


def at(guarded, text):
    """A piece with the port of the server under test."""
    assert text.count("9042") == 1
    return text.replace("9042", str(guarded[0].cql_port))


def test_the_piece_in_python(guarded):
    prints_the_nearest(guarded, [sys.executable, "-c", at(guarded, piece("python"))])


@needs("go", shutil.which("go") and "gocql" in os.environ.get("CLIENTS", "gocql"), "no Go")
def test_the_piece_in_go(guarded):
    folder = guarded[1] / "go"
    folder.mkdir()
    (folder / "main.go").write_text(at(guarded, piece("go")))
    for name in ["go.mod", "go.sum"]:
        shutil.copy(GO / name, folder)
    # The module of the folder whose lists these are needs one package more, which is not missed here.
    built = folder / "nearest"
    command = ["go", "build", "-mod=mod", "-buildvcs=false", "-o", built, "."]
    subprocess.run(command, cwd=folder, check=True, timeout=240)
    prints_the_nearest(guarded, [built])


@needs("javascript", NODE.exists() and shutil.which("node"), "no packages of Node: make test-node")
def test_the_piece_in_javascript(guarded):
    script = guarded[1] / "nearest.js"
    script.write_text(at(guarded, piece("javascript")))
    prints_the_nearest(guarded, ["node", script], env=os.environ | {"APP_PASSWORD": PASSWORD, "NODE_PATH": str(NODE)})


@needs("java", JAVA.exists() and shutil.which("java"), "no driver of Java: make client-java")
def test_the_piece_in_java(guarded):
    source = guarded[1] / "Nearest.java"
    source.write_text(at(guarded, piece("java")))
    prints_the_nearest(guarded, ["java", "-cp", f"{JAVA}/*", source])


def test_the_piece_in_rust_is_an_example_that_runs(guarded):
    assert piece("rust") == RUST.read_text()
    # `cargo test` builds it next to the binary.
    prints_the_nearest(guarded, [BINARY.parent / "examples/nearest"])
