"""What the tests of packages share: the packages as they were built, and a small Debian to install them in.

They run as root, on Debian: a chroot needs both. None of them looks at the tree: a package has all that it needs."""

import os
import pathlib
import shutil
import subprocess

import pytest
from chroot import Chroot

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "target" / "packages"
WHEELS = ROOT / "target" / "wheels"
SYSTEMS = ROOT / "target" / "test-packages"


def only(folder, pattern):
    """The one file that matches."""
    found = sorted(folder.glob(pattern))
    assert len(found) == 1, f"{folder}/{pattern}: {found}; `make packages` builds it"
    return found[0]


@pytest.fixture(scope="session")
def wheel():
    return only(WHEELS, "annulus_db-*.whl")


@pytest.fixture(scope="session")
def deb():
    return only(PACKAGES, "annulus_*-1_amd64.deb")


@pytest.fixture(scope="session")
def program(deb, tmp_path_factory):
    """The program of the Debian package, unpacked."""
    folder = tmp_path_factory.mktemp("deb")
    subprocess.run(["dpkg-deb", "-x", deb, folder], check=True)
    return folder / "usr/bin/annulus"


def tool(name, package):
    """A program, installed by apt where it is missing."""
    if shutil.which(name) is None:
        subprocess.run(["apt-get", "update", "-q"], check=True)
        subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", package], check=True)
    return shutil.which(name)


@pytest.fixture(scope="session")
def debian():
    """A function that makes a fresh chroot of a release, such as `bullseye`, from one that stays in target."""
    if os.geteuid() != 0:
        pytest.skip("a chroot needs root")
    made = []

    def fresh(release, folder):
        base = SYSTEMS / release
        if not (base / "done").exists():
            shutil.rmtree(base, ignore_errors=True)
            base.parent.mkdir(parents=True, exist_ok=True)
            debootstrap = tool("debootstrap", "debootstrap")
            include = "--include=adduser,procps,python3,python3-venv"
            subprocess.run([debootstrap, "--variant=minbase", include, release, base], check=True)
            (base / "done").touch()
        system = Chroot(folder / release)
        subprocess.run(["cp", "-a", base, system.root], check=True)
        made.append(system)
        system.mount()
        return system

    yield fresh
    for system in made:
        system.close()
