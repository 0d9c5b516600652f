"""Runs `annulus backup`, `annulus restore` and `annulus snapshot`."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.request

from process import BINARY

SECONDS = 240
# Names by which providers, and the program, find settings in the environment of whoever runs the tests.
FOREIGN = re.compile(r"^(AWS_|AZURE_|GOOGLE_|STORAGE_EMULATOR|ANNULUS_(?!BINARY))")


def clean_environment():
    """Takes the settings of other stores out of this process's environment, and so of all servers'."""
    for name in list(os.environ):
        if FOREIGN.match(name):
            del os.environ[name]


def run(*words, code=0, seconds=SECONDS, environment=None, preexec_fn=None):
    """The ended process of a command, which must end with an exit code (None: any)."""
    done = subprocess.run(
        [str(word) for word in (BINARY, *words)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | (environment or {}),
        preexec_fn=preexec_fn,
    )
    assert code is None or done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def call(server, method, path, body=None):
    """(status, JSON) of a request to a server's HTTP API."""
    request = urllib.request.Request(f"http://{server.host}:{server.http_port}{path}", method=method)
    request.add_header("X-Requested-With", "annulus")
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        return error.code, json.loads(text) if text.startswith("{") else text


def metrics(server, name):
    """The values of a metric's series, by the text of their labels."""
    status, text = server.http("/metrics")
    assert status == 200, text
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def metric(server, name):
    """The sum of all series of a metric, which must be there."""
    values = metrics(server, name)
    assert values, f"{name} is not among the metrics"
    return sum(values.values())


class Backups:
    """The commands of one location. `options` go with each of them that opens the location."""

    def __init__(self, location, *options, server=None, credentials=None):
        self.location, self.server = location, server
        self.options = [str(option) for option in options]
        if credentials is not None:
            self.options += ["--credentials", str(credentials)]

    def of(self, server):
        """The same location, used by another server."""
        return Backups(self.location, *self.options, server=server)

    def words(self, *words):
        """A command with the location and its options."""
        return [*words, "--location", self.location, *self.options]

    def http(self):
        """The flags that name the server."""
        return ["--http", f"http://{self.server.host}:{self.server.http_port}"]

    def backup(self, *options):
        """Makes a backup, which must end well, and returns its task."""
        done = run(*self.words("backup"), *self.http(), "--json", *options)
        task = json.loads(done.stdout)
        assert (task["kind"], task["state"]) == ("backup", "done"), task
        return task

    def backup_fails(self, *options, code=1, seconds=SECONDS):
        """What a backup says that must fail."""
        done = run(*self.words("backup"), *self.http(), *options, code=code, seconds=seconds)
        return done.stdout + done.stderr

    def detached(self, *options):
        """Starts a backup without waiting."""
        return run(*self.words("backup"), *self.http(), "--detach", *options).stdout

    def plan(self, *options):
        return json.loads(run(*self.words("backup"), *self.http(), "--dry-run", "--json", *options).stdout)

    def points(self):
        """The summaries of all points, the newest first."""
        points = json.loads(run(*self.words("backup", "list"), "--json").stdout)
        ids = [point["id"] for point in points]
        assert ids == sorted(set(ids), reverse=True), ids
        return points

    def ids(self):
        return [point["id"] for point in self.points()]

    def verify(self, *options, code=0):
        """The report of `verify`, and what it names as damaged or missing."""
        done = run(*self.words("backup", "verify"), "--json", *options, code=code)
        report = json.loads(done.stdout)
        return report, {(problem["object"], problem["kind"]) for problem in report["problems"]}

    def restore(self, *options, server=None):
        """Restores into a server, and returns the task."""
        target = server or self.server
        http = ["--http", f"http://{target.host}:{target.http_port}"]
        done = run(*self.words("restore"), *http, "--json", *options)
        task = json.loads(done.stdout)
        assert (task["kind"], task["state"]) == ("restore", "done"), task
        return task

    def restore_fails(self, *options, server=None, code=1):
        target = server or self.server
        done = run(*self.words("restore"), "--http", f"http://{target.host}:{target.http_port}", *options, code=code)
        return done.stdout + done.stderr

    def restore_to(self, directory, *options, code=0, **how):
        """Restores into a directory, without a server."""
        done = run(*self.words("restore"), "--data", directory, *options, code=code, **how)
        return done.stdout + done.stderr

    def restore_by_cql(self, address, *options, code=0):
        done = run(*self.words("restore"), "--cql", address, *options, code=code)
        return done.stdout + done.stderr

    def status(self):
        return json.loads(run("backup", "status", "--json", *self.http()).stdout)

    def result(self):
        """What `status` says of this location."""
        [result] = [result for result in self.status()["locations"] if result["location"] == self.location]
        return result
