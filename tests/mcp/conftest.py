import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "drivers"))

from conftest_server import server  # noqa: E402, F401
from secured import secured, way  # noqa: E402, F401
