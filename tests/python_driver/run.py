"""Runs tests of the Python driver, as its repository has them, against `annulus serve`.

usage: run.py cqlengine|driver [ARGUMENTS OF PYTEST]

PYTHON_DRIVER_SOURCE names a clone of the repository to take the tests from, instead of the public
one."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "drivers"))

from process import Process  # noqa: E402

REPOSITORY = "https://github.com/apache/cassandra-python-driver"
COMMIT = "6f229a71f38e94f8e1ace9c25d6f753cc987d000"
SOURCE = ROOT / "target" / "python_driver" / COMMIT
# Some of the tests name this address, port and data centre, as those that ccm gives.
HOST, PORT, DATACENTER = "127.0.0.1", "9042", "dc1"
READY = re.compile(r"ready: CQL on ([\d.]+):")
SECONDS = 3000
STANDARD = "tests/integration/standard"
# Lets the driver fail on an answer, so that it gives up the connection. The next tests would find no
# other node.
BREAKS_THE_CONNECTION = f"{STANDARD}/test_query.py::QueryTests::test_row_error_message"
# By suite: whether a server asks for a login, and the tests that are run on it.
SUITES = {
    "cqlengine": [("open", ["tests/integration/cqlengine"])],
    "driver": [
        ("open", [STANDARD, f"--ignore={STANDARD}/test_authentication.py", f"--deselect={BREAKS_THE_CONNECTION}"]),
        ("login", [f"{STANDARD}/test_authentication.py"]),
    ],
}
SUPERUSER = ("admin", "the first of all")
# The tests of logins log in as the superuser that Cassandra has at first. A server of ours takes no
# such file of a superuser, but a superuser may make the role.
CASSANDRAS = "CREATE ROLE cassandra WITH SUPERUSER = true AND LOGIN = true AND PASSWORD = 'cassandra'"


def git(*arguments, **options):
    return subprocess.run(["git", *arguments], check=True, **options)


def fetch():
    """The folder with the tests, which stays there for the next run."""
    if (SOURCE / "tests").exists():
        return
    clone = SOURCE.with_suffix(".git")
    if not clone.exists():
        git("init", "--quiet", "--bare", clone)
    git("-C", clone, "fetch", "--quiet", "--depth=1", os.environ.get("PYTHON_DRIVER_SOURCE", REPOSITORY), COMMIT)
    SOURCE.mkdir(parents=True, exist_ok=True)
    packed = git("-C", clone, "archive", COMMIT, "tests", stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", SOURCE], input=packed, check=True)


def run(suite, tests):
    environment = {
        "CASSANDRA_VERSION": "5.0.9",
        "USE_CASS_EXTERNAL": "1",
        "CLUSTER_IP": HOST,
        "PYTHONPATH": f"{HERE / 'shim'}",
        "EXPECTED_FAILURES": str(HERE / f"expected_{suite}.txt"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "expected_failures", "-p", "no:cacheprovider"]
    command += ["--tb=short", "--show-capture=no", "--disable-warnings", *tests]
    return subprocess.run(command, cwd=SOURCE, env=os.environ | environment, timeout=SECONDS).returncode


def run_on_a_server(suite, mode, tests):
    with tempfile.TemporaryDirectory() as directory:
        serve = ["serve", "--data-dir", f"{directory}/data", "--listen", HOST, "--cql-port", PORT, "--http-port", "0"]
        serve += ["--datacenter", DATACENTER]
        if mode == "login":
            superuser = pathlib.Path(directory) / "superuser"
            superuser.write_text("\n".join(SUPERUSER))
            serve += ["--login", "--superuser-file", str(superuser)]
        with Process(serve, READY, f"{directory}/log"):
            if mode == "login":
                with Cluster([HOST], port=int(PORT), auth_provider=PlainTextAuthProvider(*SUPERUSER)) as cluster:
                    cluster.connect().execute(CASSANDRAS, timeout=60)
            return run(suite, tests)


def main(suite, *arguments):
    fetch()
    parts = [("open", list(arguments))] if arguments else SUITES[suite]
    return max(run_on_a_server(suite, mode, tests) for mode, tests in parts)


if __name__ == "__main__":
    if sys.argv[1:2] not in [[suite] for suite in SUITES]:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
