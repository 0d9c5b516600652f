"""Prints the default `distance_threshold` of SemanticCache in the installed redisvl, as `tune --compare` takes it.

The distance is that of Redis for COSINE: 1 - cosine, on a scale of 0 to 2. The default is read from
the source of the wheel, so that neither redisvl's dependencies nor Redis are needed.

    pip install --no-deps --require-hashes -r apps/semantic_cache/pairs/requirements-redisvl.txt
    annulus-semantic-cache tune --compare "$(python apps/semantic_cache/pairs/redisvl_default.py)"
"""

from __future__ import annotations

import ast
import importlib.metadata
import pathlib
import sys

SOURCE = "redisvl/extensions/cache/llm/semantic.py"


def default_of(source: str, argument: str) -> float | None:
    """The number that is the default of an argument of `__init__`, None if there is no such argument."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for one, default in zip(arguments, node.args.defaults, strict=True):
                if one.arg == argument:
                    return float(ast.literal_eval(default))
    return None


def main() -> None:
    try:
        package = importlib.metadata.distribution("redisvl")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("redisvl is missing. Install it: pip install --no-deps -r requirements-redisvl.txt")
    file = pathlib.Path(str(package.locate_file(SOURCE)))
    distance = default_of(file.read_text(encoding="utf-8"), "distance_threshold")
    if distance is None:
        sys.exit(f"{SOURCE} of redisvl {package.version} has no default of distance_threshold")
    print(f"redisvl {package.version}={distance}")


if __name__ == "__main__":
    main()
