"""Tests that Annulus answers like the Cassandra from which the golden files were recorded, except
for the differences that differences.txt names.

Every area is run at version 5 of the protocol, and some of them at version 4. With ALL_VERSIONS=1
each is run at both."""

import os

import pytest

import compare
import replay
import script
from client import Client
from server import Server

FIRST_SUPERUSER = ("cassandra", "not cassandra")

BY_BOTH_VERSIONS = ["errors", "pages", "prepared", "types", "vectors"]
ASKED = [(5, area) for area in script.areas()]
ASKED += [(4, area) for area in script.areas() if "ALL_VERSIONS" in os.environ or area in BY_BOTH_VERSIONS]


@pytest.fixture(scope="module")
def version(request):
    """A version of the protocol, which the answers do not depend on."""
    return request.param


@pytest.fixture(scope="module")
def without_login(server, version):
    with Client(server.host, server.cql_port, version=version) as client:
        yield client


@pytest.fixture(scope="module")
def with_login(tmp_path_factory, version):
    directory = tmp_path_factory.mktemp("login")
    superuser = directory / "superuser"
    superuser.write_text("\n".join(FIRST_SUPERUSER))
    with Server(directory / "data", "--login", "--superuser-file", superuser) as server:
        with Client(server.host, server.cql_port, login=FIRST_SUPERUSER, version=version) as client:
            yield client


@pytest.mark.parametrize("version,area", ASKED, ids=[f"v{version}-{area}" for version, area in ASKED], indirect=["version"])
def test_answers_are_those_of_cassandra(request, version, area):
    client = request.getfixturevalue("with_login" if area in script.WITH_LOGIN else "without_login")
    golden = script.read_golden(area)
    assert [text for text, _ in golden] == [step.text for step in script.read_statements(area)], "make record-compat"
    deliberate = [difference for difference in script.read_differences() if difference.area == area]

    found = compare.differences(golden, replay.replay(client, area))

    unknown = [each for each in found if not any(each.is_as_told_in(told) for told in deliberate)]
    assert not unknown, "\n\n".join(f"\n{each}" for each in unknown)
    gone = [told.step for told in deliberate if not any(each.is_as_told_in(told) for each in found)]
    assert not gone, f"no longer different, or not in this way: {gone}"


@pytest.mark.parametrize("version", [5], ids=["v5"], indirect=True)
def test_the_words_for_mistakes_are_those_of_cassandra(without_login):
    """But for the grammar, which is another one, and for the statements in own_words.txt, where Annulus says more, or
    says it of another thing that is wrong."""
    golden = script.read_golden("mistakes")
    replayed = replay.replay(without_login, "mistakes")
    different = {
        step
        for (step, theirs), (_, ours) in zip(golden, replayed, strict=True)
        if theirs.rstrip() != ours.rstrip() and not theirs.startswith("error 2000")
    }
    told = {difference.step for difference in script.read_differences() if difference.area == "mistakes"}
    assert different - told == script.read_own_words()


def test_every_difference_is_of_an_area():
    assert {difference.area for difference in script.read_differences()} <= set(script.areas())
