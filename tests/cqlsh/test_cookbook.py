"""Runs every answer of docs/cookbook.md as it is there: blocks of bash, SQL and Python, in their order."""

import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import pyarrow
import pyarrow.parquet
import pytest
from process import BINARY
from server import Server, eventually
from shell import shows

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/cookbook.md"
INTRODUCTION = "Cookbook"
SUPERUSER = ("boss", "sesame-open")
SECONDS = 120


def answers():
    """The blocks of each answer, (language, text), by its title."""
    parts = re.split(r"^##? (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    blocks = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return {title: blocks.findall(text) for title, text in zip(parts[1::2], parts[2::2])}


class Reader:
    """Somebody who pastes blocks in a folder, at a server whose ports are others than the page's."""

    def __init__(self, folder, server, other_ports=(), cqlsh=()):
        self.folder, self._server, self._cqlsh = folder, server, cqlsh
        ports = {"9042": server.cql_port, "6080": server.http_port} | dict(other_ports)
        self._ports = {f"{host}:{port}": f"{server.host}:{new}" for host in ["127.0.0.1", "localhost"] for port, new in ports.items()}

    def ported(self, text):
        for shown, here in self._ports.items():
            text = text.replace(shown, here)
        return text.replace('Cluster(["127.0.0.1"])', f'Cluster(["{self._server.host}"], port={self._server.cql_port})')

    def paste(self, language, text):
        if language == "sql":
            return shows(self._server, text.strip(), *self._cqlsh)
        text = self.ported(text).replace("curl ", "curl -sSf ")
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        environment = os.environ | {
            "PATH": f"{BINARY.parent}:{os.environ['PATH']}",
            "ANNULUS_CQL": f"{self._server.host}:{self._server.cql_port}",
        }
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout

    def paste_all(self, title, *languages):
        blocks = answers()[title]
        assert blocks, title
        return "".join(self.paste(*block) for block in blocks if not languages or block[0] in languages)


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    """A server with the keyspace that the introduction makes."""
    folder = tmp_path_factory.mktemp("cookbook")
    with Server(folder / "data") as server:
        Reader(folder, server).paste_all(INTRODUCTION)
        yield server


@pytest.fixture
def reader(docs, tmp_path):
    return Reader(tmp_path, docs)


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers each POST with the JSON that the server's function makes of the JSON that came."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps(self.server.answer(self.path, body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


@pytest.fixture
def serving():
    """Starts HTTP servers in this process: the port of one that answers by a function."""
    servers = []

    def start(answer):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        server.answer = answer
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield start
    for server in servers:
        server.shutdown()


def test_there_are_twelve_answers_each_with_a_test():
    titles = [title for title in answers() if title != INTRODUCTION]
    assert len(titles) == 12
    tested = pathlib.Path(__file__).read_text()
    assert [title for title in titles if f'"{title}"' not in tested] == []


def test_documents_in_parquet(reader):
    vectors = pyarrow.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], pyarrow.list_(pyarrow.float32()))
    table = {"id": [1, 2, 3], "body": ["hot tea", "green tea", "Tee"], "lang": ["en", "en", "de"], "embedding": vectors}
    pyarrow.parquet.write_table(pyarrow.table(table), reader.folder / "documents.parquet")
    # The second block is for the folder of a clone.
    (reader.folder / "samples").symlink_to(ROOT / "samples")
    seen = reader.paste_all("My documents are in Parquet")
    assert "green tea" in seen and "Tee" not in seen and seen.count("hot tea") == 2
    assert "The Great Train Robbery" in seen and "1905-01-01" in seen and "(3 rows)" in seen, seen


def test_texts_without_vectors(docs, tmp_path, serving):
    def embed(_, body):
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        data = [{"index": at, "object": "embedding", "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)]
        return {"object": "list", "data": data, "model": body.get("model", "m")}

    lines = [json.dumps({"id": number, "body": "x" * (number + 1)}) for number in range(5)]
    (tmp_path / "notes.jsonl").write_text("\n".join(lines) + "\n")
    reader = Reader(tmp_path, docs, {"11434": serving(embed)})
    assert re.search(r"\b5\b", reader.paste_all("My texts have no vectors"))


def test_a_program_without_a_driver(reader):
    seen = reader.paste_all("I have no driver")
    assert '"tea"' in seen and '"spade"' not in seen and '"v"' not in seen


@pytest.mark.parametrize(
    "title,shown",
    [
        ("Tenants", ["sand"]),
        ("Long documents, in pieces", ["On tea", "2", "water"]),
        ("Rows like this one", ["drizzle"]),
        ("Rows that expire", ["today", r"86\d\d\d"]),
        ("Another embedding model", ["on maps"]),
    ],
)
def test_an_answer_of_statements(reader, title, shown):
    seen = reader.paste_all(title)
    assert re.search(".*".join(shown), seen, re.DOTALL) and "ice" not in seen, seen


def nginx():
    """nginx: that of the system, or the package of Debian, unpacked and not installed."""
    if found := shutil.which("nginx"):
        return found
    folder = ROOT / "target/nginx"
    program = folder / "root/usr/sbin/nginx"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = "apt-get download -qq nginx && dpkg -x nginx_*.deb root"
        done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode != 0:
            pytest.skip(f"no nginx on the PATH, and none by apt: {done.stderr[-300:]}")
    return program


def test_a_server_behind_nginx(docs, tmp_path):
    certificate = [BINARY, "certificate", "--out", tmp_path / "certs", "--name", "localhost", "--name", "127.0.0.1"]
    subprocess.run(certificate, check=True, capture_output=True, timeout=30)
    with Server(tmp_path / "for_its_port") as passing:
        port = passing.http_port
    reader = Reader(tmp_path, docs, {"8443": port})
    (configuration,) = (text for language, text in answers()["Behind nginx"] if language == "nginx")
    configuration = reader.ported(configuration).replace("listen 8443", f"listen 127.0.0.1:{port}")
    temporary = "".join(f"{name}_temp_path {name};" for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    head = "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}"
    (tmp_path / "nginx.conf").write_text(f"{head} http {{ access_log off; {temporary} {configuration} }}")
    # Paths of certificates are relative to the configuration, all others to the prefix.
    command = [nginx(), "-p", tmp_path, "-c", tmp_path / "nginx.conf"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:

        def is_up():
            assert process.poll() is None, process.stderr.read()
            probe = ["curl", "-s", "--cacert", tmp_path / "certs/ca.pem", f"https://localhost:{port}/health/live"]
            return subprocess.run(probe, capture_output=True, timeout=30).returncode == 0

        eventually(is_up, 30)
        assert "SERVING" in reader.paste_all("Behind nginx", "bash")
    finally:
        process.terminate()
        process.wait(30)


def test_the_points_of_qdrant(docs, tmp_path, serving):
    points = [
        {"id": 1, "payload": {"city": "Oslo"}, "vector": [1.0, 0.0]},
        {"id": 2, "payload": {"city": "Rome"}, "vector": [0.0, 1.0]},
    ]

    # The form of Qdrant's REST API; each page has one point here.
    def scroll(path, body):
        assert path == "/collections/articles/points/scroll" and body["with_vector"] and body["with_payload"]
        at = body.get("offset", 1)
        return {"result": {"points": points[at - 1 : at], "next_page_offset": 2 if at == 1 else None}, "status": "ok"}

    reader = Reader(tmp_path, docs, {"6333": serving(scroll)})
    seen = reader.paste_all("From Qdrant")
    assert "Rome" in seen and "Oslo" not in seen


def test_the_rows_of_a_cassandra(docs, tmp_path):
    with Server(tmp_path / "old") as old:
        statements = [
            "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
            "CREATE TABLE shop.products (id int PRIMARY KEY, name text, v vector<float, 3>)",
            *(f"INSERT INTO shop.products (id, name, v) VALUES ({id}, 'n{id}', [{id}, 0, 1])" for id in range(7)),
        ]
        shows(old, ";".join(statements) + ";")
        reader = Reader(tmp_path, docs)
        (block,) = answers()["From Cassandra"]
        seen = reader.paste("bash", block[1].replace("cassandra.example:9042", f"{old.host}:{old.cql_port}"))
    assert re.search(r"\b7\b", seen), seen


def test_an_application_that_reads(tmp_path):
    file = tmp_path / "superuser"
    file.write_text("\n".join(SUPERUSER) + "\n")
    file.chmod(0o600)
    with Server(tmp_path / "data", "--login", "--superuser-file", file) as guarded:
        credentials = tmp_path / "credentials"
        name, password = SUPERUSER
        credentials.write_text(f"[PlainTextAuthProvider]\nusername = {name}\npassword = {password}\n")
        credentials.chmod(0o600)
        reader = Reader(tmp_path, guarded, cqlsh=("--credentials", str(credentials)))
        seen = reader.paste_all("An application that may only read")
    assert "open" in seen
