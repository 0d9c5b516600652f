"""Runs the tests of the official drivers, of cqlsh and of the official CDC library through a
gateway.

The suites are tests/drivers, tests/cqlsh and crates/annulus/tests/end_to_end/rust_driver. The
Python tests marked `embedded` are left out, each for the reason that its mark gives. The Rust tests
marked `ignore` need a gateway, and run here.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
# The venvs lie side by side: .venv/cassandra, .venv/scylla.
VENVS = pathlib.Path(sys.prefix).parent
SUITE_SECONDS = 1800

# Tests run one after the other, as Cassandra changes its schema one step after the other.
RUST = "cargo test --workspace --locked --test end_to_end rust_driver:: -- --include-ignored --test-threads=1"
RUST_PASSED_MIN = 24


def passed(command, **environment):
    """Runs a suite that must pass. Returns the number of tests that passed."""
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        timeout=SUITE_SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-20_000:]
    [count] = re.findall(r"(\d+) passed", ran.stdout)
    return int(count)


@pytest.mark.parametrize(
    "driver, suite, passed_min",
    [("cassandra", "drivers", 400), ("scylla", "drivers", 400), ("cassandra", "cqlsh", 1)],
)
def test_a_python_suite_passes(gateway, store, store_address, driver, suite, passed_min):
    command = [VENVS / driver / "bin/python", "-m", "pytest", "-q", "--tb=short", TESTS / suite]
    assert passed(command, CQL_SERVER=address(gateway.address), HTTP_SERVER=store_address) >= passed_min


def test_the_rust_suite_passes(gateway, store, nodes):
    servers = {"CQL_SERVER": address(gateway.address), "CASSANDRA_SERVER": ",".join(map(address, nodes))}
    assert passed(RUST.split(), **servers) >= RUST_PASSED_MIN


def address(server):
    return "{}:{}".format(*server)
