"""The tests of the official Python drivers and of cqlsh pass through a gateway, too.

They are those of tests/drivers and tests/cqlsh. Those marked `embedded` are left out, each for the reason that its mark
gives. The Rust driver and the CDC library are what the index service of all tests here is made of.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
# The venvs lie side by side: .venv/cassandra, .venv/scylla.
VENVS = pathlib.Path(sys.prefix).parent
SUITE_SECONDS = 1800


@pytest.mark.parametrize(
    "driver, suite, passed_min",
    [("cassandra", "drivers", 400), ("scylla", "drivers", 400), ("cassandra", "cqlsh", 1)],
)
def test_a_suite_passes(gateway, store, store_address, driver, suite, passed_min):
    address = "{}:{}".format(*gateway.address)
    environment = os.environ | {"CQL_SERVER": address, "HTTP_SERVER": store_address}
    command = [VENVS / driver / "bin/python", "-m", "pytest", "-q", "--tb=short", TESTS / suite]
    ran = subprocess.run(command, env=environment, timeout=SUITE_SECONDS, stdout=subprocess.PIPE, text=True)
    assert ran.returncode == 0, ran.stdout[-20_000:]
    [passed] = re.findall(r"(\d+) passed", ran.stdout)
    assert int(passed) >= passed_min, ran.stdout[-2000:]
