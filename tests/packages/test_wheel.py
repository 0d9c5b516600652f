"""The wheel: in a fresh venv here, and on the oldest system that it promises to run on."""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile

GLIBC = (2, 28)

# Starts a server by the module, without a driver: its HTTP API answers.
STARTS = """
import urllib.request
import annulus_db
with annulus_db.Server() as server:
    print(urllib.request.urlopen(server.http_url + "/health/ready").status, server.cql_port > 0)
"""


def test_wheel_has_what_its_record_says(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (record,) = [name for name in names if name.endswith(".dist-info/RECORD")]
        lines = archive.read(record).decode().splitlines()
        assert sorted(line.split(",")[0] for line in lines) == sorted(names)
        for line in lines:
            name, digest, length = line.rsplit(",", 2)
            if name != record:
                contents = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).decode().rstrip("=")
                assert (digest, int(length)) == (f"sha256={expected}", len(contents)), name
        assert archive.getinfo("annulus_db/bin/annulus").external_attr >> 16 & 0o111


def test_program_needs_no_newer_glibc(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        program = archive.extract("annulus_db/bin/annulus", tmp_path)
    text = subprocess.run(["readelf", "--version-info", "--wide", program], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_(\d+(?:\.\d+)+)", text)}
    assert versions and max(versions) <= GLIBC, max(versions)


def test_program_has_symbols_for_backtraces_and_no_debug_information(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        program = archive.extract("annulus_db/bin/annulus", tmp_path)
    sections = subprocess.run(["readelf", "--sections", "--wide", program], check=True, capture_output=True, text=True).stdout
    assert ".symtab" in sections and ".debug_info" not in sections, sections


def test_wheel_works_in_a_fresh_venv(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    environment = {"PATH": f"{tmp_path}/venv/bin:/usr/bin:/bin", "HOME": str(tmp_path)}

    def run(*command):
        options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 120}
        result = subprocess.run(command, **options)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run(tmp_path / "venv/bin/pip", "install", "--no-index", "--no-deps", "--quiet", wheel)
    assert run(tmp_path / "venv/bin/annulus", "--version").startswith("annulus ")
    assert run(tmp_path / "venv/bin/python", "-c", STARTS) == "200 True\n"
    run(tmp_path / "venv/bin/pip", "uninstall", "--yes", "annulus-db")
    assert not os.path.exists(tmp_path / "venv/bin/annulus")


def test_wheel_works_on_debian_11(wheel, debian, tmp_path):
    system = debian("bullseye", tmp_path)
    (system.root / wheel.name).write_bytes(wheel.read_bytes())
    system.run("python3", "-m", "venv", "/venv")
    system.run("/venv/bin/pip", "install", "--no-index", "--no-deps", f"/{wheel.name}")
    assert system.run("/venv/bin/annulus", "--version").stdout.startswith("annulus ")
    assert system.run("/venv/bin/python", "-c", STARTS).stdout == "200 True\n"
