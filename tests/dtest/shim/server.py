"""One process of `annulus serve`, with settings made of those of cassandra.yaml."""

import json
import os
import pathlib
import re
import subprocess
import sys

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster as Driver

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests" / "drivers"))

from process import Process  # noqa: E402

READY = re.compile(r"ready: CQL on ([\d.]+):")
HOST, PORT = "127.0.0.1", 9042
FIRST = ("first", "the first of all")
# The tests log in as the superuser that Cassandra has at first. A server of ours takes no such file of
# a superuser, but a superuser may make the role, which then removes the first one.
CASSANDRAS = "CREATE ROLE cassandra WITH SUPERUSER = true AND LOGIN = true AND PASSWORD = 'cassandra'"
GUARDRAIL = re.compile(r"(\w+)_(warn_threshold|fail_threshold|failure_threshold)(_in_kb)?$")


class Server:
    def __init__(self, path, options):
        self.directory = os.path.join(path, "node1")
        self._options, self._process, self._superuser = options, None, False
        self.host = HOST

    @property
    def port(self):
        return PORT

    @property
    def _asks_for_logins(self):
        return "Password" in str(self._options.get("authenticator", ""))

    @property
    def pid(self):
        return self._process.pid if self.is_running else None

    @property
    def is_running(self):
        return self._process is not None and self._process.is_running

    def start(self):
        if self.is_running:
            return
        os.makedirs(os.path.join(self.directory, "logs"), exist_ok=True)
        self._process = Process(self._command(), READY, os.path.join(self.directory, "logs", "system.log"))
        self._process.start()
        if self._asks_for_logins and not self._superuser:
            self._make_superuser()

    def stop(self, gently=True):
        if self.is_running:
            if gently:
                self._process.stop()
            else:
                self._process.kill()

    def _file(self, name, text):
        path = os.path.join(self.directory, name)
        pathlib.Path(path).write_text(text)
        return path

    def _command(self):
        port = self._options.get("native_transport_port", PORT)
        command = ["serve", "--data-dir", os.path.join(self.directory, "data"), "--listen", HOST]
        command += ["--cql-port", str(port), "--http-port", "0", "--durability", "buffered"]
        if guardrails := self._guardrails():
            lines = [f"{name} = {json.dumps(value)}" for name, value in guardrails.items()]
            command += ["--config", self._file("settings.toml", "\n".join(["[guardrails]", *lines]))]
        if self._asks_for_logins:
            command += ["--login", "--superuser-file", self._file("superuser", "\n".join(FIRST))]
        return command + self._tls()

    def _guardrails(self):
        guardrails = {}
        for name, value in self._options.items():
            if match := GUARDRAIL.match(name):
                value = int(value) if str(value).lstrip("-").isdigit() else value
                name = "_".join(match.groups()[:2])
                guardrails[name] = f"{value}KiB" if match[3] else value
        return guardrails

    def _tls(self):
        tls = self._options.get("client_encryption_options", {})
        if str(tls.get("enabled", False)).lower() != "true":
            return []
        files = ["--tls-cert-path", self._pem(tls["keystore"], tls["keystore_password"], "-nokeys")]
        files += ["--tls-key-path", self._pem(tls["keystore"], tls["keystore_password"], "-nocerts")]
        if str(tls.get("require_client_auth", False)).lower() == "true":
            authorities = self._pem(tls["truststore"], tls["truststore_password"], "-nokeys")
            files += ["--tls-client-ca-cert-path", authorities]
        return files

    def _pem(self, store, password, part):
        path = os.path.join(self.directory, f"{os.path.basename(store)}{part}.pem")
        command = ["openssl", "pkcs12", "-in", store, "-passin", f"pass:{password}", "-nodes", part, "-out", path]
        subprocess.run(command, check=True, capture_output=True)
        return path

    def _make_superuser(self):
        self._execute(FIRST, CASSANDRAS)
        self._execute(("cassandra", "cassandra"), f"DROP ROLE {FIRST[0]}")
        self._superuser = True

    def _execute(self, login, statement):
        with Driver([HOST], port=PORT, auth_provider=PlainTextAuthProvider(*login)) as driver:
            driver.connect().execute(statement, timeout=60)
