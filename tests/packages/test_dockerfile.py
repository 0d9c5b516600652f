"""The steps of the Dockerfile, in a chroot: no daemon builds images here.

The first stage is a build as `make dist` makes it, and its program is taken as the packages have it. The steps of the
last stage are run one by one in Debian's bookworm, and so are its command and its health check."""

import json
import re
import shlex
import shutil

from chroot import free_port
from conftest import ROOT

STEPS = {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}


def stages():
    """The stages, each a list of (step, rest of the line)."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        step, rest = line.split(maxsplit=1)
        assert step in STEPS, line
        if step == "FROM":
            found.append([])
        found[-1].append((step, rest))
    return found


def copy(system, rest, program):
    """COPY: the program from the stage before, or files of the tree."""
    words = shlex.split(rest)
    built = [word for word in words if word.startswith("--from=")]
    *sources, to = [word for word in words if not word.startswith("--")]
    target = system.root / to.lstrip("/")
    (target if to.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
    for source in sources:
        if built:
            assert (built, source) == (["--from=build"], "/source/target/dist/annulus")
        shutil.copy(program if built else ROOT / source, target)


def test_first_stage_builds_what_is_taken():
    build, _ = stages()
    assert build[0] == ("FROM", "rust:1.95-bookworm AS build")
    assert [rest for step, rest in build if step == "RUN"] == ["cargo build --profile dist --locked -p annulus"]
    wanted = re.search(r'rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text())[1]
    assert build[0][1].startswith(f"rust:{wanted}-")


def test_steps_end_in_a_server_that_is_healthy(debian, program, tmp_path):
    _, image = stages()
    assert image[0] == ("FROM", "debian:bookworm-slim")
    system = debian("bookworm", tmp_path)
    environment, user, entry, command, health = {}, "root", [], [], []
    for step, rest in image[1:]:
        if step == "RUN":
            system.run("/bin/sh", "-c", rest, user=user)
        elif step == "COPY":
            copy(system, rest, program)
        elif step == "ENV":
            name, _, value = rest.partition("=")
            environment[name] = value
        elif step == "USER":
            user = rest
        elif step == "ENTRYPOINT":
            entry = json.loads(rest)
        elif step == "CMD":
            command = json.loads(rest)
        elif step == "HEALTHCHECK":
            health = json.loads(rest.split(" CMD ")[1])
    assert user == "annulus" and health
    http = free_port()
    # Ports of its own, as this is no network of its own; and loopback, as others reach this machine.
    given = {**environment, "ANNULUS_CQL_PORT": str(free_port()), "ANNULUS_HTTP_PORT": str(http)}
    assert command[:3] == ["serve", "--listen", "0.0.0.0"]
    arguments = ["127.0.0.1" if word == "0.0.0.0" else word for word in command]
    server = system.serve(*entry, *arguments, user="annulus:annulus", environment=given)
    assert server.user() == int(system.run("id", "-u", "annulus").stdout) != 0
    asking = {"ANNULUS_HTTP": f"http://127.0.0.1:{http}"}
    assert "serving" in system.run(*health, user="annulus:annulus", environment=asking).stdout
    assert server.stop() == 0
    assert (system.root / "var/lib/annulus/data/annulus-storage").exists()
    assert system.run(*health, user="annulus:annulus", environment=asking, check=False).returncode != 0
