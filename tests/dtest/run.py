"""Runs Cassandra's distributed tests that make sense on one node, against `annulus serve`.

usage: run.py [ARGUMENTS OF PYTEST]

DTEST_SOURCE names a clone of the repository to take the tests from, instead of the public one."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REPOSITORY = "https://github.com/apache/cassandra-dtest"
COMMIT = "3804b14d17bcd1a48ae54c6bc0ef29d878db9278"
SOURCE = ROOT / "target" / "dtest" / COMMIT
# Large files that no test here reads.
FILES_LEFT_OUT = [":!lib", ":!sstables", ":!byteman"]
SECONDS = 7200
TESTS = [
    "auth_test.py",
    "batch_test.py",
    "concurrent_schema_changes_test.py",
    "counter_test.py",
    "cql_prepared_test.py",
    "cql_test.py",
    "cql_tracing_test.py",
    "cqlsh_tests/test_cqlsh.py",
    "delete_insert_test.py",
    "deletion_test.py",
    "json_test.py",
    "largecolumn_test.py",
    "native_transport_ssl_test.py",
    "paging_test.py",
    "paxos_test.py",
    "prepared_statements_test.py",
    "pushed_notifications_test.py",
    "putget_test.py",
    "range_ghost_test.py",
    "schema_metadata_test.py",
    "schema_test.py",
    "secondary_indexes_test.py",
    "super_counter_test.py",
    "system_keyspaces_test.py",
    "ttl_test.py",
    "udtencoding_test.py",
    "user_functions_test.py",
    "user_types_test.py",
    "wide_rows_test.py",
]
# Left out: they take more than a minute, or need several data centres.
TESTS_LEFT_OUT = [
    "auth_test.py::TestAuth::test_login",
    "auth_test.py::TestNetworkAuth",
    "counter_test.py::TestCounters::test_counter_consistency",
    "paging_test.py::TestPagingQueryIsolation::test_query_isolation",
    "putget_test.py::TestPutGet::test_wide_row",
    "secondary_indexes_test.py::TestSecondaryIndexesOnCollections::test_list_indexes",
    "secondary_indexes_test.py::TestSecondaryIndexesOnCollections::test_map_indexes",
    "secondary_indexes_test.py::TestSecondaryIndexesOnCollections::test_set_indexes",
    "wide_rows_test.py::TestWideRows::test_column_index_stress",
    "wide_rows_test.py::TestWideRows::test_wide_rows",
]


def git(*arguments, **options):
    return subprocess.run(["git", *arguments], check=True, **options)


def repository():
    """A repository on this machine that has the commit."""
    source = os.environ.get("DTEST_SOURCE", REPOSITORY)
    if pathlib.Path(source).is_dir():
        return source
    clone = SOURCE.with_suffix(".git")
    if not clone.exists():
        git("init", "--quiet", "--bare", clone)
    git("-C", clone, "fetch", "--quiet", "--depth=1", source, COMMIT)
    return clone


def fetch():
    """Fills the folder with the tests, which stays there for the next run."""
    if (SOURCE / "conftest.py").exists():
        return
    archive = ["archive", COMMIT, "--", ".", *FILES_LEFT_OUT]
    packed = git("-C", repository(), *archive, stdout=subprocess.PIPE).stdout
    SOURCE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", SOURCE], input=packed, check=True)


def installed():
    """A folder as of an installed Cassandra, in which the tests look for cqlsh."""
    programs = ROOT / "target" / "dtest" / "installed" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    cqlsh = programs / "cqlsh"
    cqlsh.unlink(missing_ok=True)
    cqlsh.symlink_to(pathlib.Path(sys.executable).parent / "cqlsh")
    return programs.parent


def main(*arguments):
    fetch()
    directory = installed()
    environment = {
        "CASSANDRA_DIR": str(directory),
        "CASSANDRA_VERSION": "5.0.9",
        "EXPECTED_FAILURES": str(HERE / "expected.txt"),
        "PYTHONPATH": os.pathsep.join([str(HERE / "shim"), str(ROOT / "tests" / "python_driver" / "shim")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "one_node", "-p", "expected_failures"]
    command += ["-p", "no:cacheprovider", f"--cassandra-dir={directory}", "--delete-logs", "-p", "no:flaky"]
    command += ["--disable-active-log-watching", "--timeout=60", "--tb=short", "--show-capture=no"]
    command += ["--disable-warnings", *(f"--deselect={test}" for test in TESTS_LEFT_OUT), *(arguments or TESTS)]
    return subprocess.run(command, cwd=SOURCE, env=os.environ | environment, timeout=SECONDS).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
