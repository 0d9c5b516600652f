"""Adds charts to a file of results, as points, for experiments whose charts `annulus bench` does
not draw by itself.

points.py isolation|wire|nagle FILE
"""

import json
import sys


def isolation(record):
    """P99 of reads and of writes, alone and beside searches, against the number that are due a
    second."""
    if record["operation"] in ("read", "write"):
        yield f"P99 of {record['operation']}s", record["series"], record["rate_asked_per_s"], record["latency_ms"]["p99"]


def wire(record):
    """Processor time of a search by each way, against the number of rows asked for."""
    cost = record["figures"].get("processor time a search, µs")
    if record["operation"] == "search" and cost is not None:
        yield "Processor time of a search", record["series"], record["k"], cost


def nagle(record):
    """P50 for each way of writing requests, against the number of rows asked for."""
    if record["operation"] == "search":
        way, writes, nagle = record["series"].split(" k=")[0].split(", ")
        series = f"{way}, {writes} write{'s' * (writes == 'two')}, Nagle {nagle}"
        yield "P50 of one search at a time", series, record["k"], record["latency_ms"]["p50"]


CHARTS = {
    "isolation": (isolation, "requests a second", "P99, ms"),
    "wire": (wire, "rows asked for (k)", "µs a search"),
    "nagle": (nagle, "rows asked for (k)", "P50, ms"),
}


def main():
    points, x_label, y_label = CHARTS[sys.argv[1]]
    with open(sys.argv[2]) as file:
        records = [json.loads(line) for line in file]
    with open(sys.argv[2], "a") as file:
        for record in records:
            if record["type"] != "measurement":
                continue
            for chart, series, x, y in points(record):
                labels = {"chart": chart, "x_label": x_label, "y_label": y_label}
                point = {"type": "point", **labels, "series": series, "x": x, "y": y}
                file.write(json.dumps(point) + "\n")


main()
