"""The film sample: its files, and a server with logins and TLS that loads it."""

import pathlib
import runpy

import lz4.block
import numpy
import pytest
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from conftest import connect
from server import Server
from test_tls import certificate, trusting

pytestmark = pytest.mark.embedded("its sample")

SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "samples/movies"
PACK = runpy.run_path(str(SAMPLE / "pack.py"))
FILMS = 10_000
SUPERUSER = ("ada", "lovelace")


def test_packed_files_have_the_films_of_the_parquet_file():
    table = PACK["read"]()
    assert len(table) == FILMS
    assert lz4.block.decompress((SAMPLE / "texts.lz4").read_bytes()) == PACK["texts"](table), "run pack.py"
    assert (SAMPLE / "vectors.i8").read_bytes() == PACK["vectors"](table), "run pack.py"


def session_of(server, certificates, role, password):
    cluster = connect(server, ssl_context=trusting(certificates), auth_provider=PlainTextAuthProvider(role, password))
    return cluster, cluster.connect()


def test_superusers_have_the_sample_and_grant_it(tmp_path):
    certificates, superuser = tmp_path / "certificates", tmp_path / "superuser"
    certificate(certificates, "--name", "127.0.0.1")
    superuser.write_text("\n".join(SUPERUSER))
    tls = ["--tls-cert-path", certificates / "server.pem", "--tls-key-path", certificates / "server.key"]
    login = ["--login", "--superuser-file", superuser]
    server = Server(tmp_path / "data", *tls, *login, "--sample", "movies")
    server.start_seconds = 300  # it writes and indexes the films before it says that it is ready
    with server:
        assert any("cqlsh --ssl -u ROLE" in line for line in server.printed), server.printed
        cluster, admin = session_of(server, certificates, *SUPERUSER)
        assert admin.execute("SELECT count(*) FROM samples.movies").one().count == FILMS
        film = admin.execute("SELECT id, plot_embedding FROM samples.movies WHERE id = 7").one()
        search = admin.prepare("SELECT id FROM samples.movies ORDER BY plot_embedding ANN OF ? LIMIT 1")
        assert admin.execute(search, (film.plot_embedding,)).one().id == film.id
        exact = PACK["read"]()["plot_embedding"][film.id - 1].as_py()
        assert numpy.dot(film.plot_embedding, exact) > 0.9999
        admin.execute("CREATE ROLE app WITH LOGIN = true AND PASSWORD = 'app secret'")
        other, app = session_of(server, certificates, "app", "app secret")
        with pytest.raises(Unauthorized):
            app.execute("SELECT title FROM samples.movies WHERE id = 7")
        admin.execute("GRANT SELECT ON KEYSPACE samples TO app")
        assert app.execute("SELECT title FROM samples.movies WHERE id = 7").one() is not None
        other.shutdown()
        cluster.shutdown()
