"""SHA256SUMS, and the bill of materials."""

import hashlib
import json

from conftest import PACKAGES, ROOT


def test_sums_are_those_of_the_packages(wheel, deb):
    lines = (ROOT / "target/SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    assert {f"wheels/{wheel.name}", f"packages/{deb.name}", "packages/annulus.cdx.json"} == set(sums)
    for name, digest in sums.items():
        assert hashlib.sha256((ROOT / "target" / name).read_bytes()).hexdigest() == digest, name


def test_bill_has_the_crates_that_the_licences_list():
    bill = json.loads((PACKAGES / "annulus.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert bill["metadata"]["component"]["name"] == "annulus"
    others = {f"{part['name']} {part['version']}" for part in bill["components"] if part.get("purl")}
    text = (ROOT / "LICENSES-THIRD-PARTY.txt").read_text()
    listed = {line.split(" | ")[0] for line in text.splitlines() if line.count(" | ") == 2}
    assert len(others) > 100 and others <= listed, others - listed
    references = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    for one in bill["dependencies"]:
        assert one["ref"] in references and set(one["dependsOn"]) <= references
