"""What all packages share: the tree, its version and time, and the program linked for glibc 2.28."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
OUT = ROOT / "target" / "packages"
TARGET = "x86_64-unknown-linux-gnu"
GLIBC = (2, 28)
ARCHITECTURE = "amd64"


def cargo_metadata(*arguments):
    """What `cargo metadata` prints, as a dict."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked", *arguments]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def version():
    """The version of the workspace."""
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def epoch():
    """The time of everything in a package, in seconds: SOURCE_DATE_EPOCH, or that of the commit, or 1980."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    git = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    return int(git.stdout) if git.returncode == 0 and git.stdout.strip() else 315532800


def build(profile="dist", tools=None):
    """Builds the program for the oldest glibc that is supported, by the cargo-zigbuild and zig of a venv `tools`.

    Its table of symbols stays, so that a backtrace of a panic names functions. zig's linker takes the
    option for stripping debug information alone for one that strips all, so that another program strips.

    Returns its path."""
    environment = dict(os.environ)
    environment[f"CARGO_PROFILE_{profile.upper()}_STRIP"] = "none"
    if tools is not None:
        environment["PATH"] = f"{pathlib.Path(tools).resolve() / 'bin'}:{environment['PATH']}"
    wanted = f"{TARGET}.{'.'.join(map(str, GLIBC))}"
    command = ["cargo-zigbuild", "zigbuild", "--locked", "--profile", profile, "-p", "annulus", "--target", wanted]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    folder = "debug" if profile == "dev" else profile
    binary = pathlib.Path(cargo_metadata("--no-deps")["target_directory"]) / TARGET / folder / "annulus"
    subprocess.run(["strip", "--strip-debug", binary], check=True)
    check_glibc(binary)
    return binary


def needed_glibc(binary):
    """The newest version of glibc whose symbols a program needs, as numbers."""
    text = subprocess.run(["readelf", "--version-info", "--wide", binary], check=True, capture_output=True, text=True).stdout
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", text)]
    if not versions:
        raise SystemExit(f"{binary} names no version of glibc: is it a program for {TARGET}?")
    return max(versions)


def needed_libraries(binary):
    """The shared libraries that a program names."""
    text = subprocess.run(["readelf", "--dynamic", "--wide", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def check_glibc(binary):
    """Ends with an error if a program needs a newer glibc than packages promise."""
    needed = needed_glibc(binary)
    if needed > GLIBC:
        raise SystemExit(
            f"{binary} needs glibc {'.'.join(map(str, needed))}, and packages promise {'.'.join(map(str, GLIBC))}: "
            "build it by `make package-program`"
        )


def binary_of(arguments):
    """The program that a script got as an argument, or `make package-program` built."""
    binary = pathlib.Path(arguments[0]) if arguments else OUT / "annulus"
    if not os.access(binary, os.X_OK):
        raise SystemExit(f"{binary} is no program: `make package-program` builds it")
    check_glibc(binary)
    return binary


def run(binary, *arguments):
    """What a command of the program prints. Variables of the environment are no part of it."""
    return subprocess.run([binary, *arguments], check=True, stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]}).stdout


def main():
    """Builds the program: `program.py PROFILE VENV`. It is found as target/packages/annulus."""
    profile, tools = sys.argv[1:]
    binary = build(profile, tools)
    OUT.mkdir(parents=True, exist_ok=True)
    found = OUT / "annulus"
    found.unlink(missing_ok=True)
    found.write_bytes(binary.read_bytes())
    found.chmod(0o755)
    print(f"{found}: {run(found, '--version').decode().strip()}, glibc {'.'.join(map(str, needed_glibc(found)))}")


if __name__ == "__main__":
    main()
