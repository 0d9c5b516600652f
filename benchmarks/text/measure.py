"""Measures full-text searches of several engines in turns, and prints tables.

    measure.py SET CONTENDERS FOLDER RECORDS

Each contender is a process of its own on one core (CPU). After a count of all that each query finds,
which must be equal, and a round that warms up, all take turns in ROUNDS rounds: every kind of query,
every contender. Of a kind all get the same queries: as many of 200 as the slowest answers in
SECONDS, but at least 10; who is done sooner repeats them. Times are processor time of the process,
of all its threads.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

import documents

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target/bench-text-build"
CPU = os.environ.get("CPU", "0")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
BUILDS = int(os.environ.get("BUILDS", "3"))
SECONDS = float(os.environ.get("SECONDS_EACH", "1"))
# The least time that a measurement of a contender should take.
WARM_UP_SECONDS = float(os.environ.get("WARM_UP_SECONDS", "2"))
SECONDS_MIN, QUERIES_MIN, REPEAT_MAX = 0.25, 10, 2_000
HEAP = os.environ.get("HEAP", "2g")

KINDS = {
    "one": "one word",
    "and": "two words, AND",
    "phrase": "phrase of two",
    "or": "OR of five",
    "one_filtered": "one word, 1 %",
    "or_filtered": "OR of five, 1 %",
}


def command(name):
    match name:
        case "annulus":
            return [BUILT / "release/bench-text"]
        case "lucene" | "lucene-one":
            classes = f"{BUILT}/lucene/lucene-contender.jar:{BUILT}/lucene/lib/*"
            return ["java", "-XX:+UseSerialGC", f"-Xmx{HEAP}", "-cp", classes, "annulus.benchmark.LuceneContender", name]
    return [sys.executable, HERE / "peers.py", name]


class Contender:
    """A process that answers requests, one at a time."""

    def __init__(self, name, folder):
        self.name = name
        arguments = [folder / "documents.tsv", folder / "queries.json", folder / name]
        self._process = subprocess.Popen(
            ["taskset", "-c", CPU, *map(str, command(name) + arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, request, **more):
        print(json.dumps({"do": request, **more}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        reply = json.loads(line) if line else {"failed": "the process has ended"}
        if "failed" in reply:
            raise RuntimeError(f"{self.name}, {request} {more}: {reply['failed']}")
        return reply

    def search(self, kind, queries, repeat=1):
        return self.ask("search", kind=kind, queries=queries, repeat=repeat)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


class Records:
    """Results, which are added to a file as they come."""

    def __init__(self, path, set_name):
        self._file, self._set = open(path, "a"), set_name

    def add(self, **record):
        print(json.dumps({"set": self._set, **record}), file=self._file, flush=True)


def progress(text):
    print(f"# {text}", file=sys.stderr, flush=True)


def build(contenders, records, builds):
    """The builds of each contender, in turns."""
    built = {contender.name: [] for contender in contenders}
    for turn in range(builds):
        for contender in contenders:
            reply = contender.ask("build")
            progress(f"build {turn + 1} of {builds}: {contender.name}, {reply['elapsed']['cpu_seconds']:.1f} CPU s")
            built[contender.name].append(reply)
            records.add(type="build", contender=contender.name, turn=turn, **reply)
    return built


def compare_counts(contenders, records):
    """Compares what each query finds. Returns a line for each kind."""
    lines = []
    for kind, title in KINDS.items():
        counts = {}
        for contender in contenders:
            reply = contender.ask("count", kind=kind)
            counts[contender.name] = (reply["counts"], reply.get("counted_max"))
        records.add(type="counts", kind=kind, counts={name: of for name, (of, _) in counts.items()})
        first, _ = counts[contenders[0].name]
        for name, (of, counted_max) in counts.items():
            expected = [min(count, counted_max or count) for count in first]
            differ = [place for place, (a, b) in enumerate(zip(expected, of)) if a != b]
            if differ:
                lines.append(f"**{title}: {name} finds other numbers for {len(differ)} of {len(of)} queries**, "
                             f"such as {of[differ[0]]} in place of {expected[differ[0]]}")
        middle = statistics.median(first)
        lines.append(f"{title}: {middle:.0f} documents in the median, {max(first)} at most")
    return lines


def warm_up(contenders):
    """Runs all queries once. Returns how many of each kind are asked, and how often by whom."""
    number, repeat = {}, {}
    for kind in KINDS:
        times = {}
        for contender in contenders:
            # What is compiled while it runs, or read at its first use, is too slow the first times.
            spent, once = 0, 0
            while spent < WARM_UP_SECONDS:
                once = contender.search(kind, QUERIES_MIN)["elapsed"]["cpu_seconds"]
                more = int(min(max(0.1 / max(once, 1e-6), 1), REPEAT_MAX))
                spent += once + contender.search(kind, QUERIES_MIN, more)["elapsed"]["cpu_seconds"]
            times[contender.name] = max(once, 1e-6) / QUERIES_MIN
        number[kind] = int(min(max(SECONDS / max(times.values()), QUERIES_MIN), documents.QUERIES))
        for contender in contenders:
            of_all = contender.search(kind, number[kind])["elapsed"]["cpu_seconds"]
            times_needed = SECONDS_MIN / max(of_all, 1e-6)
            repeat[kind, contender.name] = int(min(max(times_needed, 1), REPEAT_MAX)) + 1
    return number, repeat


def measure(contenders, records):
    number, repeat = warm_up(contenders)
    rates = {(kind, contender.name): [] for kind in KINDS for contender in contenders}
    for turn in range(ROUNDS):
        progress(f"round {turn + 1} of {ROUNDS}")
        for kind in KINDS:
            hits = set()
            # Each is the first of some rounds.
            for contender in contenders[turn % len(contenders) :] + contenders[: turn % len(contenders)]:
                times = repeat[kind, contender.name]
                reply = contender.search(kind, number[kind], times)
                rates[kind, contender.name].append(number[kind] * times / reply["elapsed"]["cpu_seconds"])
                hits.add(reply["hits"] / times)
                records.add(type="search", kind=kind, contender=contender.name, turn=turn,
                            queries=number[kind], repeat=times, **reply)
            if len(hits) > 1:
                progress(f"{kind}: contenders answer with other numbers of rows, {sorted(hits)}")
    return rates


def spread(values, digits=0):
    middle = statistics.median(values)
    return f"{middle:,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def tables(contenders, built, rates, counts):
    names = [contender.name for contender in contenders]
    yield "| | build, documents a CPU s | bytes a document | about |"
    yield "| --- | --: | --: | --- |"
    for name in names:
        of = built[name]
        speed = spread([one["documents"] / one["elapsed"]["cpu_seconds"] for one in of])
        last = of[-1]
        yield f"| {name} | {speed} | {(last['bytes'] or 0) / last['documents']:.1f} | {last['about']} |"
    yield ""
    yield "Queries a CPU second, and below them how many times those of the first:"
    yield ""
    yield f"| | {' | '.join(names)} |"
    yield f"| --- |{' --: |' * len(names)}"
    for kind, title in KINDS.items():
        yield f"| {title} | {' | '.join(spread(rates[kind, name]) for name in names)} |"
        ours = rates[kind, names[0]]
        ratios = [spread([a / b for a, b in zip(ours, rates[kind, name])], 2) for name in names[1:]]
        yield f"| {names[0]}, times | {' | '.join(['1', *ratios])} |"
    yield ""
    yield from (f"- {line}" for line in counts)


def main(set_name, wanted, folder, records):
    folder = pathlib.Path(folder).resolve() / set_name
    progress(f"the documents of {set_name}")
    documents.make(set_name, folder)
    records = Records(records, set_name)
    contenders = [Contender(name, folder) for name in wanted.split(",")]
    try:
        built = build(contenders, records, BUILDS if set_name == "texts" else 1)
        progress("counts")
        counts = compare_counts(contenders, records)
        rates = measure(contenders, records)
    finally:
        for contender in contenders:
            contender.close()
    print(f"\n## {set_name}: {built[contenders[0].name][0]['documents']:,} documents\n")
    print("\n".join(tables(contenders, built, rates, counts)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
