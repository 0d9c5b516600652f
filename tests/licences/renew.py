#!/usr/bin/env python3
"""Writes LICENSES-THIRD-PARTY.txt: the crates in the two programs, and the texts of their licences.

Usage: tests/licences/renew.py

The texts come from the packages in Cargo's registry folder, which a build has filled. Texts that
differ in white space alone are written once. `crates/annulus/tests/licences.rs` fails when the
list of crates is out of date.
"""

import json
import os
import pathlib
import re
import subprocess
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")
OFFLINE = ["--locked", "--offline"]
PROGRAMS = ["-p", "annulus", "-p", "annulus-bench"]
NAMES = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
CODE = {".c", ".h", ".py", ".rs"}
# These licences ask for no copy of their text.
WITHOUT_A_TEXT = {"0BSD"}

HEAD = """\
Annulus: licences of third parties

Annulus is licensed under the Apache License 2.0. The programs `annulus` and `annulus-bench` also
contain what others wrote:

The crates listed below, each under the licence named beside it. The texts of the licences follow
the list, each under the names of the crates that come with it.

The standard library of Rust (https://github.com/rust-lang/rust), under MIT OR Apache-2.0. The file
share/doc/rust/COPYRIGHT-library.html of the Rust toolchain names its parts.

The film sample (samples/movies, in `annulus`), under the licence CC BY-SA 4.0
(https://creativecommons.org/licenses/by-sa/4.0/). Its plots are texts of Wikipedia by Wikipedia's
contributors, collected in https://github.com/prust/wikipedia-movie-data. 10,000 films were drawn,
and embeddings added, rounded to a byte per element. samples/movies/README.md describes the sample.

The font Roboto (crates/bench/src/report/canvas/roboto.ttf, in `annulus-bench`), reduced to the
letters that charts use. Copyright 2011 Google Inc. It is licensed under Apache-2.0.

This file is written by tests/licences/renew.py.
"""


def cargo(*arguments):
    return subprocess.run(
        [CARGO, "--color", "never", *arguments],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def linked():
    """The crates linked into the programs: (name, version), licence and repository, sorted."""
    edges = ["--edges", "normal,no-proc-macro"]
    form = ["--prefix", "none", "--format", "{p}|{l}|{r}"]
    crates = {}
    for line in cargo("tree", *OFFLINE, *PROGRAMS, *edges, *form).splitlines():
        if not line:
            continue
        package, licence, repository = line.removesuffix(" (*)").split("|")
        name, version, *folder = package.split(" ", 2)
        if folder and pathlib.Path(folder[0].strip("()")).parent.name == "crates":
            continue
        crates[name, version.removeprefix("v")] = (licence, repository)
    return sorted(crates.items())


def folders():
    """The folder of each package, by name and version."""
    (host,) = re.findall(r"^host: (.*)$", cargo("-vV"), re.MULTILINE)
    metadata = cargo(
        "metadata", *OFFLINE, "--format-version", "1", "--filter-platform", host
    )
    return {
        (package["name"], package["version"]): pathlib.Path(package["manifest_path"]).parent
        for package in json.loads(metadata)["packages"]
    }


def texts_in(folder):
    """The texts of licences and notices in a package."""
    for path in sorted(folder.rglob("*")):
        if not NAMES.match(path.name) or path.suffix in CODE or not path.is_file():
            continue
        text = path.read_text(errors="replace").replace("\f", "\n")
        # A GPL is only ever an alternative here, and the other one is used.
        if text.split()[:4] != ["GNU", "GENERAL", "PUBLIC", "LICENSE"]:
            yield "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def normal(text):
    return " ".join(text.split())


def main():
    crates = linked()
    where = folders()
    apache = (ROOT / "LICENSE").read_text().strip("\n")
    # By their words alone: the text, and the crates that come with it.
    texts = {normal(apache): (apache, ["Annulus", "Roboto"])}
    bare = []
    # Some repositories put their text into their main package alone.
    of_repository = {}
    for crate, (licence, repository) in crates:
        of_repository.setdefault((repository, licence), []).extend(texts_in(where[crate]))
    for crate, (licence, repository) in crates:
        name = " ".join(crate)
        found = list(texts_in(where[crate])) or of_repository[repository, licence]
        own = {normal(text): text for text in found}
        if not own and licence not in WITHOUT_A_TEXT:
            if "Apache-2.0" not in re.split(r"[ /]+", licence):
                raise SystemExit(f"{name}: the package holds no text of {licence}")
            bare.append(name)
        for key, text in own.items():
            texts.setdefault(key, (text, []))[1].append(name)
    texts[normal(apache)][1].extend(bare)

    page = [HEAD, "\nCrates\n\n"]
    for crate, (licence, repository) in crates:
        page.append(f"{' '.join(crate)} | {licence} | {repository}\n")
    page.append("\nTexts\n")
    for text, names in texts.values():
        names = textwrap.wrap(", ".join(names), 100, break_on_hyphens=False)
        page += ["\n", "=" * 100, "\n", "\n".join(names), "\n", "-" * 100, "\n\n", text, "\n"]
    (ROOT / "LICENSES-THIRD-PARTY.txt").write_text("".join(page))


if __name__ == "__main__":
    main()
