import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / name) for name in ("histories", "compat", "drivers", "cassandra")]
