"""Runs the tests that a change adds or touches many times while all cores are busy, and names those
that fail even once.

The change is what the working tree, new files included, has since it left BASE. Its tests are the
functions of Rust with `#[test]` or `#[tokio::test]`, but for ignored ones, and the functions
`test_...` of Python that have a changed line. So a helper that changes brings no test.

What a run that failed printed is in target/again."""

import argparse
import ast
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / "target/again"
SECONDS = 900
"""The most seconds of one run of the tests of a program or of a folder."""

VENVS = {"python": "frameworks", "tests/frameworks": "frameworks", "tests/backup": "backup", "tests": "cassandra"}
"""The venv of a folder's tests. The first that fits counts."""
LEFT_OUT = {
    "tests/cluster": "make cluster-test",
    "tests/deployment": "make test-deployment",
    "tests/clients": "make test-clients",
    "tests/examples": "make test-examples",
}
"""Folders whose tests need more than a server, and the target that has it."""

TEST_ATTRIBUTE = re.compile(r"\s*#\[(?:tokio::)?test\b")
FUNCTION = re.compile(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)")
HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def left_at(base):
    """The commit at which the change left a branch: BASE, or the first of these that there is."""
    for name in [base] if base else ["origin/main", "main"]:
        with contextlib.suppress(subprocess.CalledProcessError):
            return git("merge-base", name, "HEAD").strip()
    sys.exit(f"no such branch: {base or 'origin/main, main'}; name one: BASE=...")


def changed_lines(commit):
    """By file, (first, last) of each run of new lines. Of lines that only went, the two around them,
    and `True`."""
    changed, path = collections.defaultdict(list), None
    for line in git("diff", "--unified=0", "--no-color", "--no-ext-diff", commit, "--", "*.rs", "*.py").splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif hunk := HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            changed[path].append((first, first + count - 1, False) if count else (first, first + 1, True))
    for path in git("ls-files", "--others", "--exclude-standard", "--", "*.rs", "*.py").splitlines():
        changed[path].append((1, sys.maxsize, False))
    return {path: lines for path, lines in changed.items() if (ROOT / path).is_file()}


def is_touched(lines, first, last):
    return any(
        first <= begin and end <= last if are_gone else begin <= last and end >= first for begin, end, are_gone in lines
    )


def rust_tests(text):
    """(name, first line, last line) of each test that isn't ignored, with what is written above it."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if not TEST_ATTRIBUTE.match(line):
            continue
        first = at
        while first > 0 and lines[first - 1].strip().startswith(("//", "#[")):
            first -= 1
        begin = next((n for n in range(at + 1, len(lines)) if FUNCTION.match(lines[n])), None)
        if begin is None or any("#[ignore" in above for above in lines[first:begin]):
            continue
        indent, name = FUNCTION.match(lines[begin]).groups()
        end = next((n for n in range(begin, len(lines)) if lines[n].rstrip() == indent + "}"), begin)
        yield name, first + 1, end + 1


def python_tests(text):
    """(name as pytest has it, first line, last line) of each test."""

    def below(nodes, before):
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                yield from below(node.body, [*before, node.name])
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_"):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                yield "::".join([*before, node.name]), first, node.end_lineno

    return below(ast.parse(text).body, [])


def touched_tests(commit):
    """By file, the names of its tests that the change adds or touches."""
    found = {}
    for path, lines in changed_lines(commit).items():
        text, is_rust = (ROOT / path).read_text(), path.endswith(".rs")
        if not is_rust and not pathlib.Path(path).name.startswith("test_"):
            continue
        tests = rust_tests(text) if is_rust else python_tests(text)
        if names := [name for name, first, last in tests if is_touched(lines, first, last)]:
            found[path] = names
    return found


@dataclasses.dataclass
class Job:
    """Tests that one command runs."""

    command: list
    folder: pathlib.Path
    tests: list
    failures: str  # how a line of the output names a test that failed

    def run(self):
        """(the tests that failed, what was printed)."""
        environment = {**os.environ, "CARGO": shutil.which("cargo") or "cargo", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                [*self.command, *self.tests],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            return self.tests, f"it did not end within {SECONDS} s\n{(error.stdout or b'').decode(errors='replace')}"
        if done.returncode == 0:
            return [], done.stdout
        failed = [test for test in self.tests if re.search(self.failures.format(re.escape(test)), done.stdout, re.MULTILINE)]
        # A program that dies names none.
        return failed or self.tests, done.stdout


def programs():
    """The test programs of the workspace, as cargo tells of them. Builds them first."""
    command = ["cargo", "test", "--workspace", "--locked", "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        sys.exit("the tests are not built")
    for message in map(json.loads, built.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            yield message


def module_of(parts):
    """The path of a module, by the parts of its file's path below `src` or the folder of its program."""
    *parents, name = parts
    name = name.removesuffix(".rs")
    return [*parents, *([] if name in ("lib", "main", "mod") else [name])]


def rust_jobs(touched):
    """A job for each program that has touched tests."""
    by_program = collections.defaultdict(list)
    built = list(programs()) if touched else []
    for path, names in touched.items():
        missing = set(names)
        for message in built:
            folder = pathlib.Path(message["manifest_path"]).parent
            if not (ROOT / path).is_relative_to(folder):
                continue
            kind, *parts = (ROOT / path).relative_to(folder).parts
            is_unit = not {"lib", "bin", "proc-macro"}.isdisjoint(message["target"]["kind"])
            if kind == "tests":
                program, *parts = [*parts] if len(parts) > 1 else [parts[0].removesuffix(".rs"), "main.rs"]
                if is_unit or message["target"]["name"] != program:
                    continue
            elif kind != "src" or not is_unit:
                continue
            executable = message["executable"]
            listed = subprocess.run([executable, "--list", "--format", "terse"], cwd=folder, capture_output=True, text=True)
            all_tests = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
            module = module_of(parts)
            for name in names:
                of_name = [test for test in all_tests if test.split("::")[-1] == name]
                # A module may lie elsewhere than its path says.
                here = [test for test in of_name if test.split("::")[: len(module)] == module] or of_name
                by_program[executable, folder] += here
                missing -= {name} if here else set()
        for name in sorted(missing):
            print(f"not run, as no program has it: {path}: {name}")
    for (executable, folder), tests in by_program.items():
        if tests:
            yield Job([executable, "--exact"], folder, sorted(set(tests)), r"^    {}$")


def python_jobs(touched):
    """A job for each folder that has touched tests."""
    by_folder = collections.defaultdict(list)
    for path, names in touched.items():
        folder = str(pathlib.Path(path).parent)
        target = next((target for start, target in LEFT_OUT.items() if path.startswith(f"{start}/")), None)
        venv = next((venv for start, venv in VENVS.items() if path.startswith(f"{start}/")), None)
        if target or venv is None:
            print(f"not run{f' ({target})' if target else ''}: {path}")
            continue
        by_folder[folder, venv] += [f"{path}::{name}" for name in names]
    for (_, venv), tests in by_folder.items():
        subprocess.run(["make", "--no-print-directory", f".venv/{venv}/.installed"], cwd=ROOT, check=True)
        command = [ROOT / f".venv/{venv}/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE"]
        yield Job(command, ROOT, tests, r"^(?:FAILED|ERROR) {}(?:\[| |$)")


@contextlib.contextmanager
def busy_cores():
    """Keeps every core busy with a process that ends with this one."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    loops = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(os.cpu_count() or 2)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            process.wait()


def run_again(jobs, times):
    """How often each test failed."""
    failed = collections.Counter()
    for time in range(1, times + 1):
        for number, job in enumerate(jobs):
            names, printed = job.run()
            if names:
                failed.update(names)
                (LOGS / f"{time}-{number}.txt").write_text(printed)
                print(f"time {time}: {', '.join(names)}: target/again/{time}-{number}.txt", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="the branch that the change is for (default: origin/main, or main)")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--list", action="store_true", help="only show the tests")
    options = parser.parse_args()

    touched = touched_tests(left_at(options.base))
    for path, names in touched.items():
        print(f"{path}: {', '.join(names)}")
    if options.list or not touched:
        print(f"{sum(map(len, touched.values()))} tests")
        return
    rust = {path: names for path, names in touched.items() if path.endswith(".rs")}
    jobs = [*rust_jobs(rust), *python_jobs({path: touched[path] for path in touched.keys() - rust.keys()})]
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    with busy_cores():
        failed = run_again(jobs, options.times)
    count = sum(len(job.tests) for job in jobs)
    print(f"{count} tests, {options.times} times: {len(failed)} failed at least once")
    for name, how_often in failed.most_common():
        print(f"  {how_often} of {options.times}: {name}")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
