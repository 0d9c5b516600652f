"""Runs the tests of cqlengine, as the driver's repository has them, against `annulus serve`.

Arguments are passed on to pytest. CQLENGINE_SOURCE names a clone of the repository to take the
tests from, instead of the public one."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "drivers"))

from process import Process  # noqa: E402

REPOSITORY = "https://github.com/apache/cassandra-python-driver"
COMMIT = "6f229a71f38e94f8e1ace9c25d6f753cc987d000"
SOURCE = ROOT / "target" / "cqlengine" / COMMIT
# Some of the tests name this address, port and data centre, as those that ccm gives.
HOST, PORT, DATACENTER = "127.0.0.1", "9042", "dc1"
READY = re.compile(r"ready: CQL on ([\d.]+):")
SECONDS = 1500


def git(*arguments, **options):
    return subprocess.run(["git", *arguments], check=True, **options)


def fetch():
    """The folder with the tests, which stays there for the next run."""
    if (SOURCE / "tests").exists():
        return
    clone = SOURCE.with_suffix(".git")
    if not clone.exists():
        git("init", "--quiet", "--bare", clone)
    git("-C", clone, "fetch", "--quiet", "--depth=1", os.environ.get("CQLENGINE_SOURCE", REPOSITORY), COMMIT)
    SOURCE.mkdir(parents=True, exist_ok=True)
    packed = git("-C", clone, "archive", COMMIT, "tests", stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", SOURCE], input=packed, check=True)


def run(arguments):
    environment = {
        "CASSANDRA_VERSION": "5.0.9",
        "USE_CASS_EXTERNAL": "1",
        "CLUSTER_IP": HOST,
        "PYTHONPATH": f"{HERE / 'shim'}",
        "EXPECTED_FAILURES": str(HERE / "expected.txt"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "expected_failures", "-p", "no:cacheprovider"]
    command += ["--tb=short", "--show-capture=no", "-W", "ignore"]
    command += arguments or ["tests/integration/cqlengine"]
    return subprocess.run(command, cwd=SOURCE, env=os.environ | environment, timeout=SECONDS).returncode


def main():
    fetch()
    with tempfile.TemporaryDirectory() as directory:
        serve = ["serve", "--data-dir", f"{directory}/data", "--listen", HOST, "--cql-port", PORT, "--http-port", "0"]
        serve += ["--datacenter", DATACENTER]
        with Process(serve, READY, f"{directory}/log"):
            return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
