"""Runs the integration tests of the Java driver, as its repository has them, against `annulus serve`.

usage: run.py [CLASS...]

JAVA_DRIVER_SOURCE names a clone of the repository to take the tests from, instead of the public one.
PROTOCOL_VERSION=V4 has the driver speak that version, where a test doesn't choose one."""

import collections
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(ROOT / "tests" / "drivers"))

from process import BINARY  # noqa: E402

REPOSITORY = "https://github.com/apache/cassandra-java-driver"
COMMIT = "f98e3433b91b49e0facfbce8e94e01e304714968"
TARGET = ROOT / "target" / "java_driver"
SOURCE = TARGET / COMMIT
TESTS, BUILD, RESULTS = TARGET / "tests", TARGET / "build", TARGET / "results"
# The tests, and the classes that start clusters for them: each a module's folder with Java and resources.
PARTS = [("integration-tests/src/test", "java", "resources"), ("test-infra/src/main", "java", "resources")]
# The address that the tests name.
ADDRESS = ("127.0.0.1", 9042)
# In that version the tests leave out what it doesn't have.
CASSANDRA_VERSION = "5.0.9"
THREADS = 4
SECONDS = 1800

# Files of the tests that are left out, by what their path or their text has.
LEFT_OUT = {
    "of DataStax Enterprise": re.compile(r"com/datastax/dse/|import .*\.ContinuousPagingITBase;"),
    "with a simulated cluster": re.compile(r"simulacron|extends MetricsITBase"),
    "of several nodes": re.compile(r"withNodes\((?!1\))"),
    "of a proxy in Docker": re.compile(r"SniProxy"),
    "of the inside of an older driver": re.compile(r"class PreparedStatementCachingIT"),
}
CATEGORY = re.compile(r"@Category\((\w+)\.class\)")
# The groups of the driver's own build: by category, how many classes run at a time, and whether each has a
# JVM of its own.
GROUPS = {"ParallelizableTests": (THREADS, False), None: (1, False), "IsolatedTests": (1, True)}

# The certificates of the repository have expired long ago.
STORE_PASSWORD = "fakePasswordForTests"
KEY_STORES = {
    "server.keystore": ("node1", "CN=Cassandra Node 1"),
    "server_localhost.keystore": ("localhost_node", "CN=localhost"),
    "client.keystore": ("client", "CN=Driver Client"),
}
TRUST_STORES = {
    "client.truststore": ["server.keystore", "server_localhost.keystore"],
    "server.truststore": ["client.keystore"],
}

# In the script of a schema that is described, the statements that Annulus refuses.
SCRIPTS = pathlib.Path("DescribeIT/oss")
REFUSED = ("CREATE MATERIALIZED VIEW", "CREATE FUNCTION", "CREATE AGGREGATE")


def git(*arguments, **options):
    return subprocess.run(["git", *arguments], check=True, **options)


def fetch():
    """The tests stay in their folder for the next run."""
    if SOURCE.exists():
        return
    clone = SOURCE.with_suffix(".git")
    if not clone.exists():
        git("init", "--quiet", "--bare", clone)
    git("-C", clone, "fetch", "--quiet", "--depth=1", os.environ.get("JAVA_DRIVER_SOURCE", REPOSITORY), COMMIT)
    folders = [folder for folder, *_ in PARTS]
    packed = git("-C", clone, "archive", COMMIT, *folders, stdout=subprocess.PIPE).stdout
    SOURCE.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", SOURCE], input=packed, check=True)


def lay_out():
    """Puts all that is compiled and run in one folder. Returns the numbers of classes left out."""
    shutil.rmtree(TESTS, ignore_errors=True)
    for folder, *kinds in PARTS:
        for kind in kinds:
            shutil.copytree(SOURCE / folder / kind, TESTS / kind, dirs_exist_ok=True)
    shutil.copy(HERE / "RunTests.java", TESTS / "java")
    left_out = collections.Counter()
    for path in sorted((SOURCE / PARTS[0][0] / "java").rglob("*.java")):
        name = path.relative_to(SOURCE / PARTS[0][0])
        searched = f"{name}\n{path.read_text()}"
        if reason := next((reason for reason, pattern in LEFT_OUT.items() if pattern.search(searched)), None):
            (TESTS / name).unlink()
            left_out[reason] += path.stem.endswith("IT")
    renew_certificates(TESTS / "resources")
    write_script(TESTS / "resources" / SCRIPTS)
    return left_out


def renew_certificates(directory):
    def keytool(store, *arguments, **options):
        command = ["keytool", *arguments, "-storetype", "JKS", "-storepass", STORE_PASSWORD, "-keystore", store]
        return subprocess.run(command, cwd=directory, check=True, capture_output=True, **options).stdout

    for store in KEY_STORES | TRUST_STORES:
        (directory / store).unlink()
    for store, (alias, subject) in KEY_STORES.items():
        key = ["-keyalg", "RSA", "-keysize", "2048", "-validity", "365", "-keypass", STORE_PASSWORD]
        keytool(store, "-genkeypair", "-alias", alias, "-dname", subject, *key)
    for store, trusted in TRUST_STORES.items():
        for name in trusted:
            alias, _ = KEY_STORES[name]
            certificate = keytool(name, "-exportcert", "-alias", alias)
            keytool(store, "-importcert", "-noprompt", "-alias", alias, input=certificate)


def write_script(directory):
    """Of the scripts there, a test takes the one for the newest version that is not after Cassandra's."""
    statements = (directory / "4.0.cql").read_text().split(";\n")
    kept = [statement for statement in statements if not statement.strip().startswith(REFUSED)]
    (directory / "5.0.cql").write_text(";\n".join(kept).rstrip().rstrip(";") + ";\n")


def build():
    # Libraries of another version would stay.
    shutil.rmtree(BUILD / "lib", ignore_errors=True)
    goals = ["compile", "dependency:copy-dependencies"]
    command = ["mvn", "-q", "-B", "-Dstyle.color=never", *goals, f"-Dtests={TESTS}", f"-Dbuild={BUILD}"]
    subprocess.run(command, cwd=HERE, check=True)


def classes_by_category():
    found = collections.defaultdict(list)
    java = TESTS / "java"
    for path in sorted(java.rglob("*IT.java")):
        text = path.read_text()
        if "abstract class" not in text:
            category = CATEGORY.search(text)
            found[category and category[1]].append(".".join(path.relative_to(java).with_suffix("").parts))
    return found


def run_in_one_jvm(threads, classes):
    """The outcome of each test."""
    name = classes[0] if len(classes) == 1 else f"{len(classes)}-classes"
    results, temporary = RESULTS / f"{name}.txt", RESULTS / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    options = [f"-Djava.io.tmpdir={temporary}", f"-Dccm.version={CASSANDRA_VERSION}"]
    if version := os.environ.get("PROTOCOL_VERSION"):
        options.append(f"-Ddatastax-java-driver.advanced.protocol.version={version}")
    class_path = f"{BUILD / 'classes'}:{BUILD / 'lib'}/*"
    command = ["java", *options, "-cp", class_path, "RunTests", results, str(threads), *classes]
    path = os.pathsep.join([str(HERE / "bin"), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "ANNULUS_BINARY": str(BINARY)}
    with open(results.with_suffix(".log"), "wb") as log:
        jvm = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            code = jvm.wait(SECONDS)
        finally:
            # A JVM that is told to end ends its server first.
            jvm.terminate()
            jvm.wait()
    if code != 0:
        sys.exit(f"a JVM ended with {code}: see {log.name}")
    lines = [line for line in results.read_text().splitlines() if not line.startswith("\t")]
    return {test: outcome for outcome, test in (line.split(" ", 1) for line in lines)}


def run(chosen):
    shutil.rmtree(RESULTS, ignore_errors=True)
    outcomes = {}
    for category, classes in classes_by_category().items():
        threads, apart = GROUPS[category]
        classes = [name for name in classes if not chosen or name.rsplit(".", 1)[-1] in chosen]
        for together in [[name] for name in classes] if apart else [classes] if classes else []:
            outcomes |= run_in_one_jvm(threads, together)
    return outcomes


def expected_failures(chosen):
    lines = (HERE / "expected.txt").read_text().splitlines()
    listed = [line.split(" ", 1)[0] for line in lines if line and not line.startswith("#")]
    return {test for test in listed if not chosen or test.split(".")[0] in chosen}


def main(*chosen):
    fetch()
    left_out = lay_out()
    build()
    with socket.create_server(ADDRESS):
        pass
    outcomes = run(chosen)
    if not outcomes:
        sys.exit("no test was run")
    failed = {test for test, outcome in outcomes.items() if outcome == "failed"}
    expected = expected_failures(chosen)
    print("test classes left out:", ", ".join(f"{count} {reason}" for reason, count in left_out.items()))
    counts = sorted(collections.Counter(outcomes.values()).items())
    print("tests:", ", ".join(f"{count} {outcome}" for outcome, count in counts))
    for test in sorted(failed - expected):
        print(f"failed, and expected.txt does not list it: {test}")
    for test in sorted(expected - failed):
        print(f"listed in expected.txt, and has not failed: {test}")
    print(f"stack traces: {RESULTS}")
    return int(failed != expected)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
