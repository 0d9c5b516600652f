"""Prints the table of `half_load`: P99 by P50 of each load, with and without the requests that met
a stop of the machine.

    half_load.py RATIOS

A line of RATIOS has: way, load that saturates, file of requests (`--requests-log`), file of stops
(or -), number of requests not sent.

A request that failed or was not sent in time counts with an endless latency in the figures of whole
loads.

A request met a stop if it was under way during the stop, or within as long a time after it, in
which the server works off the requests that came meanwhile. To leave such requests out proves
something only if leaving out as many others does not have the same effect. So the same is done with
the stops moved to other times. A load is disturbed if the machine stood still for half a hundredth
of the time or more: with the equally long times after them, stops alone then decide P99. Two
columns are of the loads that are not disturbed. The last two are of half seconds, of all loads of a
way together, in which there was no stop, nor one so shortly before that it could still be felt.
"""

import csv
import math
import statistics
import sys

GOAL = 3
# The share of a load in stops from which it is disturbed.
DISTURBED = 0.005
WINDOW_NS = 500_000_000
# A stop is felt for this many times its length. A server that is busy for five sixths of its time
# needs five times the length of the stop to work off the requests that came meanwhile.
FELT_AFTER = 5
# The time by which stops are moved to arbitrary other times. A stop moved beyond the end of the
# load goes on from its begin.
MOVED_NS = 137_000_000


def read_requests(path):
    """Reads the requests that were answered, and the number of those that were not."""
    with open(path) as file:
        rows = list(csv.DictReader(file))
    answered = [(int(row["due_ns"]), int(row["ended_ns"])) for row in rows if row["answered"] == "1"]
    return answered, len(rows) - len(answered)


def read_stops(path):
    with open(path) as file:
        return sorted((int(due), int(woke)) for _, due, woke in csv.reader(file))


def quantile(latencies, share):
    """The smallest latency, in ms, that a share of the latencies does not exceed."""
    ordered = sorted(latencies)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e6


def outside(requests, stops):
    """The requests that met no stop."""
    kept, first = [], 0
    spans = [(due, woke + (woke - due)) for due, woke in stops]
    longest = max((end - begin for begin, end in spans), default=0)
    for due, ended in requests:
        while first < len(spans) and spans[first][0] + longest < due:
            first += 1
        met = False
        for begin, end in spans[first:]:
            if begin > ended:
                break
            met = met or end >= due
        if not met:
            kept.append((due, ended))
    return kept


def moved(stops, requests):
    begin, length = requests[0][0], max(requests[-1][0] - requests[0][0], 1)
    shift = [(begin + (due + MOVED_NS - begin) % length, woke - due) for due, woke in stops]
    return sorted((due, due + late) for due, late in shift)


def windows(requests, stops):
    """The requests of each whole window, by when they were due, each with whether no stop was felt
    in it."""
    begin, end = requests[0][0], requests[-1][1]
    disturbed = set()
    for due, woke in stops:
        felt_until = woke + FELT_AFTER * (woke - due)
        disturbed.update(range((due - begin) // WINDOW_NS, (felt_until - begin) // WINDOW_NS + 1))
    whole = [[] for _ in range((end - begin) // WINDOW_NS)]
    for due, ended in requests:
        window = (due - begin) // WINDOW_NS
        if window < len(whole):
            whole[window].append((due, ended))
    return [(of_window, at not in disturbed) for at, of_window in enumerate(whole)]


def ratio(requests):
    latencies = [ended - due for due, ended in requests]
    return quantile(latencies, 0.99) / quantile(latencies, 0.5)


def spread(values, digits):
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    return f"{statistics.median(values):,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


def main():
    ways = {}
    for line in open(sys.argv[1]):
        way, most, requests_path, stops_path, not_sent = line.split()
        requests, failed = read_requests(requests_path)
        if not requests:
            print(f"{way}: a load in which nothing was answered is left out", file=sys.stderr)
            continue
        latencies = [ended - due for due, ended in requests] + [math.inf] * (failed + int(float(not_sent)))
        p50, p99 = quantile(latencies, 0.5), quantile(latencies, 0.99)
        round = {"most": float(most), "p50": p50, "p99": p99, "ratio": p99 / p50 if p50 < math.inf else math.inf}
        if stops_path != "-":
            begin, end = requests[0][0], requests[-1][1]
            stops = [stop for stop in read_stops(stops_path) if begin <= stop[1] and stop[0] <= end]
            kept = outside(requests, stops)
            round |= {
                "stops": len(stops) / (end - begin) * 1e10,
                "undisturbed": sum(woke - due for due, woke in stops) < DISTURBED * (end - begin),
                "longest": max((woke - due for due, woke in stops), default=0) / 1e6,
                "left_out": 100 * (1 - len(kept) / len(requests)),
                "outside": ratio(kept) if kept else None,
                "moved": ratio(outside(requests, moved(stops, requests)) or requests),
                "windows": windows(requests, stops),
            }
        ways.setdefault(way, []).append(round)
    print(
        "| | a second, saturated | at half: P50 ms | P99 ms | P99 / P50 | goal: at most 3 | stops of the machine in 10 s | longest, ms"
        " | met one, % | P99 / P50 of the others | of all but those at other times"
        " | P99 / P50 of loads not disturbed | how many, with at most 3"
        " | P99 / P50 of half seconds without a stop | how many of how many |\n"
        "| --- | --: | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: | --- | --: | --- |"
    )
    for way, rounds in ways.items():
        def of(name):
            return [round.get(name) for round in rounds]

        ratios = of("ratio")
        reached = statistics.median(ratios) <= GOAL
        cells = [spread(of("most"), 0), spread(of("p50"), 2), spread(of("p99"), 2), spread(ratios, 2)]
        cells += ["reached" if reached else "missed", spread(of("stops"), 0), spread(of("longest"), 1)]
        cells += [spread(of("left_out"), 1), spread(of("outside"), 2), spread(of("moved"), 2)]
        undisturbed = [round["ratio"] for round in rounds if round.get("undisturbed")]
        cells += [spread(undisturbed, 2), f"{len(undisturbed)}, {sum(ratio <= GOAL for ratio in undisturbed)}"]
        all_windows = [window for round in rounds for window in round.get("windows", [])]
        calm = [of_window for of_window, was_there in all_windows if was_there]
        calm_requests = [request for of_window in calm for request in of_window]
        cells += [f"{ratio(calm_requests):.2f}" if calm_requests else "–", f"{len(calm)} of {len(all_windows)}"]
        print(f"| {way.replace(',', ', ')} | {' | '.join(cells)} |")


main()
