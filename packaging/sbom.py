#!/usr/bin/env python3
"""Prints the software bill of materials of the program: CycloneDX 1.5, as JSON, by `cargo metadata`.

Usage: packaging/sbom.py > annulus.cdx.json

It has the crates that are linked into `annulus` on Linux, with the samples, and who needs whom. The same sources
give the same bytes.
"""

import json
import os
import subprocess
import time
import uuid

from program import ROOT, TARGET, cargo_metadata, epoch

ROOT_CRATE = "annulus"
NAMESPACE = uuid.UUID("5d2c7f5e-0c0f-4b7e-9a5b-1b7d0f6d3a51")


def built():
    """Names and versions of the crates that a build of the program links. `cargo metadata` names more: those that a feature
    of another program of the workspace, or of a test, would bring."""
    command = [os.environ.get("CARGO", "cargo"), "tree", "--locked", "-p", ROOT_CRATE, "--target", TARGET]
    command += ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    crates = (line.split() for line in text.splitlines() if line)
    return {(name, version.removeprefix("v")) for name, version, *_ in crates}


def linked(metadata):
    """The ids of the crates that are linked into the program, each with those that it uses."""
    of_build = built()
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(package for package in packages if packages[package]["name"] == ROOT_CRATE)
    found, next_ones = {}, [root]
    while next_ones:
        package = next_ones.pop()
        if package in found:
            continue
        # A kind of null is neither of tests nor of building; macros run in the compiler alone.
        uses = [
            other["pkg"]
            for other in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in other["dep_kinds"])
            and (packages[other["pkg"]]["name"], packages[other["pkg"]]["version"]) in of_build
            and not is_macro(packages[other["pkg"]])
        ]
        found[package] = sorted(uses)
        next_ones += uses
    return root, packages, found


def is_macro(package):
    """Whether a crate is a procedural macro."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def reference(package):
    """The name of a crate in the list: a package URL, where it comes from a registry."""
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, kind="library"):
    """A crate as CycloneDX describes one."""
    described = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
    }
    if package.get("license"):
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if package["source"]:
        described["purl"] = reference(package)
    if package.get("repository"):
        described["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return described


def sample():
    """The film sample within the program."""
    return {
        "type": "data",
        "bom-ref": "annulus-sample-movies",
        "name": "annulus-sample-movies",
        "licenses": [{"license": {"id": "CC-BY-SA-4.0"}}],
    }


def main():
    root, packages, found = linked(cargo_metadata("--filter-platform", TARGET))
    program = packages[root]
    others = sorted((packages[package] for package in found if package != root), key=reference)
    dependencies = [
        {"ref": reference(packages[package]), "dependsOn": sorted(reference(packages[use]) for use in uses)}
        for package, uses in found.items()
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch())),
            "component": component(program, "application"),
        },
        "components": [component(package) for package in others] + [sample()],
        "dependencies": sorted(dependencies, key=lambda one: one["ref"]),
    }
    text = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(NAMESPACE, text)}"
    print(json.dumps(document, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
