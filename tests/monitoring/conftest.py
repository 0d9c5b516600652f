"""Helpers of the monitoring tests are in folders of other suites, too."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("cassandra", "cluster", "drivers"):
    sys.path.append(str(TESTS / folder))
