"""The locks of all applications: one version of each package, and licences that oblige no user of them."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re

import pytest

APPS = pathlib.Path(__file__).resolve().parents[2]
TEST_LOCK = APPS / "requirements-test.txt"
LOCKS = sorted(APPS.glob("*/requirements.txt"))
# MPL-2.0 holds for changes of a package's own files, and none is changed.
PERMISSIVE = re.compile(r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL-2\.0|Mozilla Public License 2\.0")
COPYLEFT = re.compile(r"GPL|GNU|SSPL|BUSL|Business Source|Commons Clause|EUPL|CDDL", re.IGNORECASE)


def pins(lock: pathlib.Path) -> dict[str, str]:
    """The versions of a lock's packages."""
    lines = (line.strip() for line in lock.read_text().splitlines())
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def licence_of(package: str) -> str:
    """What a package's metadata say of its licence: its expression, else its classifiers, else its text."""
    metadata = importlib.metadata.metadata(package)
    classifiers = [line for line in metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    return metadata.get("License-Expression") or "; ".join(classifiers) or metadata.get("License") or ""


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.parent.name)
def test_a_lock_is_a_part_of_the_lock_of_the_tests(lock: pathlib.Path) -> None:
    assert pins(lock).items() <= pins(TEST_LOCK).items()


@pytest.mark.parametrize("package", sorted(pins(TEST_LOCK)))
def test_a_package_has_a_permissive_licence(package: str) -> None:
    licence = licence_of(package)
    assert PERMISSIVE.search(licence) and not COPYLEFT.search(licence), licence or "none"
