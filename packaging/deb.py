#!/usr/bin/env python3
"""Writes target/packages/annulus_*_amd64.deb.

Usage: packaging/deb.py [PROGRAM]

By dpkg-deb, and to the byte the same for the same sources. The configuration, the completions and the manual pages
are what the program itself prints.
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from program import ARCHITECTURE, OUT, ROOT, binary_of, epoch, needed_glibc, needed_libraries, run, version

SOURCE = ROOT / "packaging" / "deb"
MAINTAINER = "The Annulus authors <annulus@localhost>"
DATA_DIR = "/var/lib/annulus/annulus-data"

# Libraries of the system, each with its package.
PACKAGES = {"libgcc_s.so.1": "libgcc-s1", "libz.so.1": "zlib1g"}
OF_GLIBC = re.compile(r"^(libc|libm|libdl|librt|libpthread|libutil|ld-linux-x86-64)\.so")

COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/annulus",
    "zsh": "usr/share/zsh/vendor-completions/_annulus",
    "fish": "usr/share/fish/vendor_completions.d/annulus.fish",
}


def dependencies(binary):
    """The field Depends, by the libraries that the program names."""
    # The unit reloads by /bin/kill.
    packages = {f"libc6 (>= {'.'.join(map(str, needed_glibc(binary)))})", "adduser", "procps"}
    for library in needed_libraries(binary):
        if not OF_GLIBC.match(library):
            if library not in PACKAGES:
                raise SystemExit(f"the program needs {library}, and packaging/deb.py knows no package of it")
            packages.add(PACKAGES[library])
    return ", ".join(sorted(packages))


def configuration(binary):
    """/etc/annulus/annulus.toml: every setting commented, and the data directory set."""
    text = run(binary, "settings", "serve").decode()
    default = '#data-dir = "annulus-data"\n'
    if text.count(default) != 1:
        raise SystemExit("`annulus settings` has no line for data-dir")
    return text.replace(default, f'data-dir = "{DATA_DIR}"\n')


def compressed(contents):
    """A file as Debian compresses documents: without a name and a time."""
    return gzip.compress(contents, 9, mtime=0)


def changelog(revision):
    """The Debian changelog, which names what is built."""
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch()))
    return f"annulus ({revision}) unstable; urgency=medium\n\n  * CHANGELOG.md of the sources has the changes.\n\n -- {MAINTAINER}  {date}\n"


def write(root, name, contents, mode=0o644):
    """Writes a file of the package."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    path.chmod(mode)


def lay_out(root, binary, revision):
    """Writes all files of the package but its control files."""
    write(root, "usr/bin/annulus", binary.read_bytes(), 0o755)
    write(root, "etc/annulus/annulus.toml", configuration(binary))
    write(root, "usr/lib/systemd/system/annulus.service", (SOURCE / "annulus.service").read_bytes())
    for shell, name in COMPLETIONS.items():
        write(root, name, run(binary, "completions", shell))
    with tempfile.TemporaryDirectory() as pages:
        run(binary, "man", "--out", pages)
        for page in sorted(pathlib.Path(pages).iterdir()):
            write(root, f"usr/share/man/man1/{page.name}.gz", compressed(page.read_bytes()))
    documents = "usr/share/doc/annulus"
    write(root, f"{documents}/copyright", (SOURCE / "copyright").read_bytes())
    write(root, f"{documents}/LICENSES-THIRD-PARTY.txt.gz", compressed((ROOT / "LICENSES-THIRD-PARTY.txt").read_bytes()))
    write(root, f"{documents}/changelog.Debian.gz", compressed(changelog(revision).encode()))
    write(root, f"{documents}/changelog.gz", compressed((ROOT / "CHANGELOG.md").read_bytes()))
    write(root, "usr/share/lintian/overrides/annulus", (SOURCE / "lintian-overrides").read_bytes())


def control(root, binary, revision):
    """Writes the control files."""
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    fields = {
        "Package": "annulus",
        "Version": revision,
        "Architecture": ARCHITECTURE,
        "Maintainer": MAINTAINER,
        "Installed-Size": str(-(-size // 1024)),
        "Depends": dependencies(binary),
        "Section": "database",
        "Priority": "optional",
        "Description": "CQL database with vector and text search\n"
        " One program with a database that speaks Cassandra's CQL and an index service\n"
        " for vectors and words. Any Cassandra or ScyllaDB driver connects to it.",
    }
    sums = ""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            name = path.relative_to(root).as_posix()
            digest = subprocess.run(["md5sum", path], check=True, capture_output=True, text=True).stdout.split()[0]
            sums += f"{digest}  {name}\n"
    write(root, "DEBIAN/control", "".join(f"{name}: {value}\n" for name, value in fields.items()))
    write(root, "DEBIAN/md5sums", sums)
    write(root, "DEBIAN/conffiles", "/etc/annulus/annulus.toml\n")
    for script in ("postinst", "prerm", "postrm"):
        write(root, f"DEBIAN/{script}", (SOURCE / script).read_bytes(), 0o755)


def main():
    binary = binary_of(sys.argv[1:])
    # Another revision of one version, such as that of a test, is given by a variable.
    revision = f"{version()}-{os.environ.get('DEB_REVISION', '1')}"
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"annulus_{revision}_{ARCHITECTURE}.deb"
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        root = pathlib.Path(folder) / "root"
        root.mkdir()
        lay_out(root, binary, revision)
        control(root, binary, revision)
        # Folders as anyone may read them, whatever the umask.
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
        command = [shutil.which("dpkg-deb") or "dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, path]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    print(f"{path} ({path.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
