"""Embeddings that a server of OpenAI's form makes of texts during an import."""

import http.server
import json
import threading

import pytest


class Embeddings(http.server.BaseHTTPRequestHandler):
    """Embeds a text as its length and the number of its blanks. The first request of all is one too many."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.headers["Authorization"], request))
        if self.server.refuses:
            return self.answer(400, {"error": {"message": "no such model"}})
        if len(self.server.requests) == 1:
            return self.answer(429, {"error": {"message": "slow down"}})
        vectors = [[float(len(text)), float(text.count(" "))] for text in request["input"]]
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        self.answer(200, {"data": data[::-1]})

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def embeddings():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Embeddings) as server:
        server.requests, server.refuses = [], False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_texts_get_embeddings(loader, embeddings):
    texts = ["green tea", "cup", "", "a b c"]
    lines = [json.dumps({"id": row, "text": text}) for row, text in enumerate(texts)]
    (loader.directory / "t.jsonl").write_text("\n".join(lines))
    (loader.directory / "key").write_text("secret\n")
    url = f"http://127.0.0.1:{embeddings.server_port}/v1/embeddings"
    flags = ["--embed", "text:embedding", "--embeddings-url", url, "--embeddings-key-file", "key"]
    loader.imports("t.jsonl", "--create", *flags, "--embeddings-model", "small")
    assert loader.types()["embedding"] == "vector<float, 2>"
    found = {row["text"]: row["embedding"] for row in loader.rows()}
    assert found == {"green tea": [9.0, 1.0], "cup": [3.0, 0.0], "": None, "a b c": [5.0, 2.0]}
    assert {key for key, _ in embeddings.requests} == {"Bearer secret"}
    assert {request["model"] for _, request in embeddings.requests} == {"small"}


def test_a_server_that_refuses_texts_stops_the_import(loader, embeddings):
    (loader.directory / "t.jsonl").write_text('{"id": 1, "text": "a"}\n')
    url = f"http://127.0.0.1:{embeddings.server_port}/v1/embeddings"
    embeddings.refuses = True
    flags = ["--embed", "text:embedding", "--embeddings-url", url]
    code, _, errors = loader.run("import", "t.jsonl", "--table", loader.table(), "--create", *flags)
    assert code == 1 and "no such model" in errors and url in errors, errors
