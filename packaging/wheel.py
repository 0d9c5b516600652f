#!/usr/bin/env python3
"""Writes target/wheels/annulus_db-*.whl: python/annulus-db with the program in it.

Usage: packaging/wheel.py [PROGRAM]

By Python's library alone, without a network, and to the byte the same for the same sources. Names, texts and
requirements are those of python/annulus-db/pyproject.toml.
"""

import base64
import hashlib
import re
import sys
import time
import tomllib
import zipfile

from program import ROOT, binary_of, epoch

SOURCE = ROOT / "python" / "annulus-db"
PACKAGE = "annulus_db"
WHEELS = ROOT / "target" / "wheels"
TAG = "py3-none-manylinux_2_28_x86_64"
LICENCES = {
    "LICENSE": ROOT / "LICENSE",
    "LICENSES-THIRD-PARTY.txt": ROOT / "LICENSES-THIRD-PARTY.txt",
    "SAMPLE-CC-BY-SA-4.0.md": ROOT / "samples" / "movies" / "README.md",
}


def metadata(project):
    """The file METADATA (version 2.4), whose body is the package's README."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}"]
    lines.append(f"Summary: {project['description']}")
    # The film sample within the program has a licence of its own.
    lines.append(f"License-Expression: {project['license']} AND CC-BY-SA-4.0")
    lines += [f"License-File: {name}" for name in LICENCES]
    if keywords := project.get("keywords"):
        lines.append(f"Keywords: {','.join(keywords)}")
    lines += [f"Classifier: {classifier}" for classifier in project.get("classifiers", [])]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {requirement}" for requirement in project.get("dependencies", [])]
    for extra, requirements in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        for requirement in requirements:
            name, _, marker = requirement.partition(";")
            condition = f"({marker.strip()}) and extra == '{extra}'" if marker else f"extra == '{extra}'"
            lines.append(f"Requires-Dist: {name.strip()}; {condition}")
    readme = SOURCE / project["readme"]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + readme.read_text()


def entry_points(project):
    """The file entry_points.txt."""
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    text = ""
    for group, points in groups.items():
        if points:
            text += f"[{group}]\n" + "".join(f"{name} = {point}\n" for name, point in points.items()) + "\n"
    return text


def files(project, binary):
    """Names in the wheel, each with its contents and mode, RECORD aside."""
    folder = f"{PACKAGE}-{project['version']}.dist-info"
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*")):
        name = path.relative_to(SOURCE).as_posix()
        # A program there is left from an older way to build.
        if path.is_file() and "__pycache__" not in path.parts and not name.startswith(f"{PACKAGE}/bin/"):
            found[name] = (path.read_bytes(), 0o644)
    found[f"{PACKAGE}/bin/annulus"] = (binary.read_bytes(), 0o755)
    wheel = f"Wheel-Version: 1.0\nGenerator: annulus packaging\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    texts = {"METADATA": metadata(project), "WHEEL": wheel, "entry_points.txt": entry_points(project)}
    for name, text in texts.items():
        found[f"{folder}/{name}"] = (text.encode(), 0o644)
    for name, path in LICENCES.items():
        found[f"{folder}/licenses/{name}"] = (path.read_bytes(), 0o644)
    return folder, found


def record(folder, found):
    """The file RECORD: name, hash and length of every other file."""
    lines = []
    for name, (contents, _) in found.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(contents)}\n")
    return "".join(lines) + f"{folder}/RECORD,,\n"


def main():
    binary = binary_of(sys.argv[1:])
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    if "annulus" not in project.get("scripts", {}):
        raise SystemExit("python/annulus-db/pyproject.toml has no script annulus")
    folder, found = files(project, binary)
    found[f"{folder}/RECORD"] = (record(folder, found).encode(), 0o644)
    # No entry of a zip is older than 1980.
    moment = time.gmtime(max(epoch(), 315532800))[:6]
    WHEELS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[-_.]+", "_", project["name"])
    assert name == PACKAGE, name
    for older in WHEELS.glob(f"{name}-*.whl"):
        older.unlink()
    path = WHEELS / f"{name}-{project['version']}-{TAG}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for entry, (contents, mode) in found.items():
            information = zipfile.ZipInfo(entry, moment)
            information.external_attr = (0o100000 | mode) << 16
            information.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(information, contents)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
