"""Runs Cassandra's own tests of CQL, as its repository has them, against `annulus serve`.

usage: run.py [CLASS ...], the last part of each name

CASSANDRA_SOURCE names a clone or a mirror to take the tests from, instead of the public repository.
CQL_MODE says how values are sent: prepared (the default), query or literal. CQL_ADDRESS names a
server that runs already, as 127.0.0.1:9042."""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "drivers"))

from process import Process  # noqa: E402

REPOSITORY = "https://github.com/apache/cassandra"
COMMIT = "52a513f724e02d667b5a3c8b49845cdf5ead417b"  # of the branch cassandra-5.0
TARGET = ROOT / "target" / "cassandra_cql"
SOURCE, JARS, CLASSES, RESULTS = TARGET / COMMIT, TARGET / "jars", TARGET / "classes", TARGET / "results.jsonl"
PATHS = ["test/unit", "test/resources/glove.3K.50d.txt", "test/distributed/org/apache/cassandra/distributed/shared"]
UNIT = SOURCE / "test/unit"
PACKAGE = UNIT / "org/apache/cassandra"
# What the tests are compiled without: their bases, for which others stand in, and helpers of tests of
# functions that clients define.
WITHOUT = ["org/apache/cassandra/cql3/CQLTester.java", "udfverify/"]
# These have classes of the packages java.util and java.lang, which the compiler takes for the real ones.
HIDDEN = ["high-scale-lib", "sjk-cli", "ecj"]
# Lines that need the inside of a Cassandra and leave a test what it is without them: those that flush
# what was written, that count the files a read looks into, and that play an upgrade of a cluster. One
# sends 55,000 statements, and expects the answers within 30 seconds.
TABLE = "        ColumnFamilyStore cfs = getCurrentColumnFamilyStore(KEYSPACE_PER_TEST);\n"
PATCHES = {
    "cql3/validation/miscellaneous/SSTablesIteratedTest.java": [
        (TABLE, TABLE + "        if (cfs == null) { assertRows(execute(query), rows); return; }\n")
    ],
    "cql3/validation/entities/JsonTest.java": [("final int numRows = 5000;", "final int numRows = 200;")],
    "Util.java": [("        cfs.forceBlockingFlush(", "        if (cfs != null) cfs.forceBlockingFlush(")],
    "cql3/validation/operations/InsertUpdateIfConditionTest.java": [
        ("Gossiper.instance.start(0);", ""),
        ("Gossiper.instance.stop();", ""),
        ("Util.setUpgradeFromVersion(clusterMinVersion);", ""),
        ("assertion.run();", ""),
    ],
}
# Left out unless they are named: those that take an hour, and those that repeat others with smaller files.
LONG = re.compile("AllTypesSimpleEqTest|TinySegment")
OPENED = ["lang", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic", "io", "net", "nio"]
# Tests with random values take the same ones each time.
SEEDS = ["QT_SEED", "cassandra.test.random.seed", "cql.seed"]
READY = re.compile(r"ready: CQL on ([\d.]+):(\d+)")
SECONDS = 7200
FAILED = "failed"  # as RunTests writes it


def fetch():
    """The folder with the tests, which stays there for the next run."""
    if UNIT.exists():
        return
    source = os.environ.get("CASSANDRA_SOURCE", REPOSITORY)
    repository = pathlib.Path(source)
    if not repository.exists():
        repository = SOURCE.with_suffix(".git")
        if not repository.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", repository], check=True)
        subprocess.run(["git", "-C", repository, "fetch", "--quiet", "--depth=1", source, COMMIT], check=True)
    for path in PATHS:
        folder = path if "." not in path else os.path.dirname(path)
        names = [] if folder == path else [os.path.basename(path)]
        (SOURCE / folder).mkdir(parents=True, exist_ok=True)
        archive = ["git", "-C", repository, "archive", f"{COMMIT}:{folder}", *names]
        packed = subprocess.run(archive, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", SOURCE / folder], input=packed, check=True)
    for name, patches in PATCHES.items():
        for old, new in patches:
            (PACKAGE / name).write_text((PACKAGE / name).read_text().replace(old, new))


def jars():
    if not JARS.exists():
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        subprocess.run(["mvn", "-q", "-B", "-f", HERE / "pom.xml", *copy], check=True)
    return sorted(JARS.glob("*.jar"))


def sources():
    """What stands in here, and the files of the tests with all their helpers."""
    own = sorted((HERE / "java").rglob("*.java"))
    replaced = [str(path.relative_to(HERE / "java")) for path in own]
    shared = SOURCE / "test/distributed/org/apache/cassandra/distributed/shared/WithProperties.java"
    files = [path for path in sorted(UNIT.rglob("*.java")) if str(path.relative_to(UNIT)) not in replaced]
    return own + [path for path in [*files, shared] if not any(part in str(path) for part in WITHOUT)]


def compile_tests():
    """Methods that don't compile, as they look into Cassandra, fail when they are called."""
    files = sources()
    done = CLASSES / ".compiled"
    if done.exists() and done.stat().st_mtime > max(path.stat().st_mtime for path in files):
        return
    path = ":".join(str(jar) for jar in jars() if not any(name in jar.name for name in HIDDEN))
    compiler = next(jar for jar in jars() if jar.name.startswith("ecj"))
    command = ["java", "-Xmx3g", "-jar", compiler, "--release", "17", "-proceedOnError", "-nowarn", "-g"]
    command += ["-encoding", "UTF-8", "-cp", path, "-d", CLASSES, *files]
    with open(TARGET / "compiler.log", "w") as log:
        subprocess.run(command, stdout=log, stderr=log)
    if f"ERROR in {HERE}" in (TARGET / "compiler.log").read_text():
        sys.exit(f"What stands in doesn't compile: see {TARGET}/compiler.log")
    done.touch()


def classes():
    found = [*(PACKAGE / "cql3").rglob("*Test.java"), *(PACKAGE / "index/sai/cql").rglob("*Test.java")]
    names = [str(path.relative_to(UNIT))[: -len(".java")].replace("/", ".") for path in found]
    return sorted(name for name in names if "udfverify" not in name)


def java(names, host, port, first):
    command = ["java", "-Xmx2g", "-XX:+UseSerialGC", "-ea", "-Duser.timezone=UTC"]
    for package in OPENED:
        command += ["--add-opens", f"java.base/java.{package}=ALL-UNNAMED"]
    for package in ["java.base/sun.nio.ch", "java.base/jdk.internal.ref", "java.base/jdk.internal.misc"]:
        command += ["--add-opens", f"{package}=ALL-UNNAMED", "--add-exports", f"{package}=ALL-UNNAMED"]
    command += [f"-Dcql.host={host}", f"-Dcql.port={port}", f"-Dcql.first_name={first}"]
    command += [f"-D{name}=1" for name in SEEDS]
    command += [f"-Dcql.mode={os.environ.get('CQL_MODE', 'prepared')}", f"-Dcassandra.storagedir={TARGET}/storage"]
    path = [HERE / "java", CLASSES, SOURCE / "test/resources", *jars()]
    command += ["-cp", ":".join(map(str, path)), "RunTests", RESULTS, *names]
    with open(TARGET / "java.log", "a") as log:
        subprocess.run(command, stdout=log, stderr=log, cwd=SOURCE, timeout=SECONDS)


def results():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(names, host, port):
    """A class that ends its process is left behind, and the next ones run in another."""
    RESULTS.unlink(missing_ok=True)
    first = 0
    while todo := names[len([1 for result in results() if result[0] == "begun"]) :]:
        java(todo, host, port, first)
        first += 100_000


def short(name):
    """A test's name as expected.txt has it: method(package.Class) as Class::method."""
    method, _, rest = name.rpartition("(")
    return f"{rest.rstrip(')').rpartition('.')[2]}::{method}" if method else name.rpartition(".")[2]


def expected():
    """The names of tests that fail, each with its reason. A * stands for any end."""
    lines = (HERE / "expected.txt").read_text().splitlines()
    return dict(re.split(r"\s\s+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))


def listed(name, names):
    return next((one for one in names if name == one or one.endswith("*") and name.startswith(one[:-1])), None)


def report(whole):
    states = collections.Counter(result[0] for result in results())
    print(", ".join(f"{count} {state}" for state, count in sorted(states.items()) if state != "begun"))
    reasons, met, unexpected = expected(), set(), 0
    for state, name, *notes in results():
        if state != FAILED:
            continue
        if one := listed(short(name), reasons):
            met.add(one)
            continue
        unexpected += 1
        lines = [line for line in notes[0].splitlines() if "\tat " not in line or "Test.java" in line]
        print(f"\nFAILED {short(name)}\n" + "\n".join(line[:300] for line in lines[:12]))
    passed = [one for one in reasons if one not in met] if whole else []
    for one in passed:
        print(f"EXPECTED TO FAIL, but passed or left out: {one}")
    print(f"{len(met)} lines of expected.txt met, {unexpected} unexpected failures; all in {RESULTS}")
    return 1 if unexpected or passed else 0


def main(*names):
    TARGET.mkdir(parents=True, exist_ok=True)
    fetch()
    compile_tests()
    wanted = [name for name in classes() if name.rpartition(".")[2] in names or not names and not LONG.search(name)]
    if address := os.environ.get("CQL_ADDRESS"):
        run(wanted, *address.rsplit(":", 1))
        return report(not names)
    with tempfile.TemporaryDirectory() as directory:
        serve = ["serve", "--data-dir", f"{directory}/data", "--cql-port", "0", "--http-port", "0"]
        server = Server([*serve, "--datacenter", "datacenter1"], READY, f"{directory}/log")
        with server:
            run(wanted, server.host, server.port)
    return report(not names)


class Server(Process):
    def became_ready(self, host, port):
        self.host, self.port = host, port


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
