import pathlib
import sys
TESTS = pathlib.Path(__file__).resolve().parents[1]
for folder in ("drivers", "cluster", "cassandra"):
    sys.path.append(str(TESTS / folder))
