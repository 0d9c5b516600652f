"""Prints the table of `serving_cost`: processor time of a search by each way, and its ratio to that
of the search in process in the same round, of all rounds together.

serving_cost.py FILE      what `annulus bench serving-cost --json FILE` wrote, once or more often
"""

import json
import statistics
import sys

ALONE = "in process"
GOALS = {"HTTP binary": 1.25, "HTTP JSON": 1.5, "CQL": 2}


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    costs = {}
    with open(sys.argv[1]) as file:
        for record in map(json.loads, file):
            cost = record.get("figures", {}).get("processor time a search, µs")
            if cost is not None:
                costs.setdefault(record["series"], []).append(cost)
    print("| | goal | µs | by the search in process | |")
    print("| --- | --: | --: | --: | --- |")
    for way, of_way in costs.items():
        # Each round has a cost for each way.
        ratios = [served / alone for served, alone in zip(of_way, costs[ALONE], strict=True)]
        if way == ALONE:
            print(f"| {way} | | {spread(of_way, 0)} | | |")
            continue
        reached = "reached" if statistics.median(ratios) <= GOALS[way] else "missed"
        print(f"| {way} | {GOALS[way]} | {spread(of_way, 0)} | {spread(ratios, 2)} | {reached} |")


main()
