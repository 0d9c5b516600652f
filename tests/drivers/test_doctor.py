"""Tests the commands about the program itself: version, completions, man, settings and doctor."""

import json
import os
import re
import shutil
import socket
import subprocess
import tarfile
import tomllib

import pytest
from process import BINARY
from server import Server, eventually

pytestmark = pytest.mark.embedded("its own command line")

COMMANDS = ["serve", "store", "gateway", "status", "doctor", "completions", "man"]


def run(*arguments, **options):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=30, **options)


def printed(*arguments):
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def doctor(server, *arguments):
    ports = ["--cql-port", str(server.cql_port), "--http-port", str(server.http_port)]
    http = ["--http", f"http://127.0.0.1:{server.http_port}"]
    return run("doctor", "--data-dir", server.data_dir, *ports, *http, *arguments)


def findings(result):
    return {finding["subject"]: finding for finding in json.loads(result.stdout)["findings"]}


def test_version_names_commit_and_date():
    # Of a build without git both are unknown.
    pattern = r"^annulus \d+\.\d+\.\d+ \(commit (?:[0-9a-f]{12}|unknown), (?:\d{4}-\d\d-\d\d|date unknown)\)\n$"
    assert re.match(pattern, printed("--version")), printed("--version")
    assert printed("serve", "--version").split()[-4:] == printed("--version").split()[-4:]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_a_script_of_the_shell(shell, tmp_path):
    script = tmp_path / "annulus"
    script.write_text(printed("completions", shell))
    text = script.read_text()
    assert all(command in text for command in COMMANDS) and "data-dir" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", script], check=True)


def test_completions_of_bash_complete(tmp_path):
    (tmp_path / "annulus").write_text(printed("completions", "bash"))
    asked = f'. {tmp_path}/annulus; COMP_WORDS=(annulus doc); COMP_CWORD=1; _annulus annulus doc annulus; echo "${{COMPREPLY[@]}}"'
    completed = subprocess.run(["bash", "-c", asked], check=True, capture_output=True, text=True)
    assert completed.stdout.split() == ["doctor"]


def test_an_unknown_shell_is_refused():
    result = run("completions", "sh")
    assert result.returncode == 2 and "bash" in result.stderr


def test_man_prints_the_page_of_the_program_and_of_a_command(tmp_path):
    page = printed("man")
    assert ".TH annulus 1" in page and "doctor" in page
    assert ".TH annulus-serve 1" in printed("man", "serve")
    refused = run("man", "nothing")
    assert refused.returncode == 2 and "no command nothing" in refused.stderr
    printed("man", "--out", tmp_path)
    pages = {path.name for path in tmp_path.iterdir()}
    assert {"annulus.1", "annulus-serve.1", "annulus-tasks-list.1"} <= pages
    assert not [name for name in pages if "help" in name]


def test_a_file_of_settings_changes_nothing_and_is_read(tmp_path):
    text = printed("settings")
    assert tomllib.loads(text) == {}
    (tmp_path / "annulus.toml").write_text(text.replace('#datacenter = "datacenter1"', 'datacenter = "north"'))
    with Server(tmp_path / "data", "--config", tmp_path / "annulus.toml") as server:
        assert server.is_running
    for server in ("store", "gateway"):
        assert tomllib.loads(printed("settings", server)) == {}


def test_doctor_finds_a_server_that_serves(tmp_path):
    with Server(tmp_path / "data") as server:
        result = doctor(server, "--json")
        found = findings(result)
        assert found["service"]["grade"] == "good" and found["indexes"]["grade"] == "good"
        assert "a service answers" in found["CQL port"]["found"]
        assert {"settings", "open files", "memory", "processor", "clock", "data"} <= set(found)
        wrong = [subject for subject, finding in found.items() if finding["grade"] == "wrong"]
        assert (result.returncode == 1) == bool(wrong), found
        shown = doctor(server).stdout
        # A screen.
        assert len(shown.splitlines()) <= 30 and "open files" in shown
    assert not list(server.data_dir.glob(".annulus-doctor*"))


def test_doctor_finds_the_server_of_its_settings(tmp_path):
    (tmp_path / "superuser").write_text("ada\nlovelace\n")
    login = ["--login", "--superuser-file", tmp_path / "superuser"]
    with Server(tmp_path / "data", *login) as server:
        ports = ["--cql-port", str(server.cql_port), "--http-port", str(server.http_port)]
        found = findings(run("doctor", "--data-dir", server.data_dir, *ports, *login, "--json"))
    assert found["CQL port"]["grade"] == found["HTTP port"]["grade"] == "good", found
    assert found["service"]["grade"] == "advice" and "--user and --password-file" in found["service"]["found"]


def test_doctor_names_what_is_wrong(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        nowhere = ["--http", "http://127.0.0.1:1"]
        result = run("doctor", "--data-dir", tmp_path, "--cql-port", port, "--http-port", "0", *nowhere, "--json")
    found = findings(result)
    assert result.returncode == 1 and "wrong" in result.stderr
    assert found["CQL port"]["grade"] == "wrong" and "another port" in found["CQL port"]["remedy"]
    assert found["service"]["grade"] == "advice"
    refused = run("doctor", "--data-dir", tmp_path, "--listen", "0.0.0.0", "--json", cwd=tmp_path)
    assert refused.returncode == 1 and "--insecure" in findings(refused)["settings"]["found"]


def test_doctor_writes_a_bundle_without_secrets(tmp_path):
    (tmp_path / "who").write_text("admin\ns3cret\n")
    os.chmod(tmp_path / "who", 0o600)
    with Server(tmp_path / "data", "--superuser-file", tmp_path / "who") as server:
        bundle = tmp_path / "bundle.tar"
        log = tmp_path / "log"
        log.write_text("listening\nits password, shown this once: s3cret\n")
        secret = ["--superuser-file", tmp_path / "who"]
        doctor(server, "--bundle", bundle, "--log-file", log, *secret)
        assert bundle.stat().st_mode & 0o777 == 0o600
        again = doctor(server, "--bundle", bundle)
        assert again.returncode == 1 and str(bundle) in again.stderr
    with tarfile.open(bundle) as archive:
        files = {name: archive.extractfile(name).read().decode() for name in archive.getnames()}
    assert not [name for name, text in files.items() if "s3cret" in text]
    assert files["annulus-doctor/log.txt"].startswith("listening\n")
    assert f"superuser-file = {tmp_path}/who (command line" in files["annulus-doctor/settings.txt"]
    assert json.loads(files["annulus-doctor/service.json"])["status"] == "SERVING"
    assert "findings" in json.loads(files["annulus-doctor/findings.json"])


def test_a_service_manager_is_notified(tmp_path, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with Server(tmp_path / "data") as server:
            ready = manager.recv(1000).decode()
            assert ready.startswith("READY=1\n") and f"CQL on 127.0.0.1:{server.cql_port}" in ready
            assert server.stop() == 0
            assert manager.recv(1000).decode().startswith("STOPPING=1")
    eventually(lambda: not server.is_running)
