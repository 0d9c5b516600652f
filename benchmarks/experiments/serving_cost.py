"""Prints the table of `serving_cost`: processor time of a search by each way, and its ratio to that
of the search in process in the same round, of all rounds together.

serving_cost.py FILE      what `annulus bench serving-cost --json FILE` wrote, once or more often
"""

import json
import statistics
import sys

ALONE = "in process"
ROWS_READ = "CQL, rows read"
GOALS = {"HTTP binary": 1.25, "HTTP JSON": 1.5, "CQL": 2}


def spread(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main():
    costs, k = {}, None
    with open(sys.argv[1]) as file:
        for record in map(json.loads, file):
            cost = record.get("figures", {}).get("processor time a search, µs")
            if cost is not None:
                costs.setdefault(record["series"], []).append(cost)
                k = record["k"]
    print("| | goal | µs | by the search in process | |")
    print("| --- | --: | --: | --: | --- |")
    for way, of_way in costs.items():
        # Each round has a cost for each way.
        ratios = [served / alone for served, alone in zip(of_way, costs[ALONE], strict=True)]
        if way not in GOALS:
            of_search = "" if way == ALONE else spread(ratios, 2)
            print(f"| {way} | | {spread(of_way, 0)} | {of_search} | |")
            continue
        reached = "reached" if statistics.median(ratios) <= GOALS[way] else "missed"
        print(f"| {way} | {GOALS[way]} | {spread(of_way, 0)} | {spread(ratios, 2)} | {reached} |")
    if ROWS_READ in costs:
        by_json = [cql / json for cql, json in zip(costs["CQL"], costs["HTTP JSON"], strict=True)]
        a_row = [(rows - cql) / k for rows, cql in zip(costs[ROWS_READ], costs["CQL"], strict=True)]
        print(f"\nk = {k}: CQL by HTTP JSON {spread(by_json, 2)}; a row read costs {spread(a_row, 2)} µs")


main()
