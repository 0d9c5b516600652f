"""A plugin of pytest: the tests' own rules about machines do not hold here."""

import sys

import pytest


def pytest_collection():
    conftest = sys.modules["conftest"]
    # In a container they end other processes of the machine and turn swap off.
    conftest.running_in_docker = sys.modules["dtest"].running_in_docker = lambda: False
    # Cassandra has these tests in Java, too, and there runs them no more.
    conftest._skip_ported_msg = lambda *_: None
    from tools import jmxutils

    jmxutils.JolokiaAgent.__init__ = lambda *_: pytest.skip("JMX")
