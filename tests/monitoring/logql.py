"""Evaluates rules of Loki that have the form of the published one:

    sum by (LABELS) (count_over_time({SELECTOR} |regexp`EXPRESSION` [RANGE])>NUMBER)
"""

import re

from pipeline import selects

RULE = re.compile(
    r"sum by \((?P<by>[\w, ]+)\) \(count_over_time\((?P<selector>\{[^}]*\}) *\| *regexp *`(?P<regexp>[^`]*)` *"
    r"\[(?P<range>\w+)\]\) *> *(?P<bound>\d+)\)"
)
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(duration):
    """A duration such as 20s or 1h30m."""
    parts = re.findall(r"(\d+)(ms|s|m|h|d)", duration)
    assert parts and "".join(map("".join, parts)) == duration, f"not a duration: {duration!r}"
    return sum(int(number) * UNITS[unit] for number, unit in parts)


class LogRule:
    """One alert of Loki's ruler, with the alerts that are pending or fire."""

    def __init__(self, rule):
        self.rule = rule
        self.query = RULE.fullmatch(rule["expr"].strip())
        assert self.query, f"a form of LogQL that this test does not know: {rule['expr']}"
        self.true_since = {}

    def values(self, entries, now):
        """The value by labels (name and value pairs, sorted) of the expression."""
        counts = {}
        start = now - seconds(self.query["range"])
        for entry in entries:
            if start < entry.time <= now and selects(self.query["selector"], entry.labels):
                found = re.search(self.query["regexp"], entry.line)
                labels = {**entry.labels, **(found.groupdict() if found else {})}
                key = tuple(sorted(labels.items()))
                counts[key] = counts.get(key, 0) + 1
        sums = {}
        by = [name.strip() for name in self.query["by"].split(",")]
        for key, count in counts.items():
            if count > int(self.query["bound"]):
                group = tuple(sorted((name, value) for name, value in key if name in by))
                sums[group] = sums.get(group, 0) + count
        return sums

    def firing(self, entries, now):
        """The alerts that fire, in the form that Alertmanager takes."""
        values = self.values(entries, now)
        self.true_since = {key: self.true_since.get(key, now) for key in values}
        waits = seconds(self.rule.get("for", "0s"))
        return [self._alert(dict(key)) for key, since in self.true_since.items() if now - since >= waits]

    def _alert(self, labels):
        annotations = {name: _expanded(text, labels) for name, text in self.rule["annotations"].items()}
        return {
            "labels": {**labels, **self.rule.get("labels", {}), "alertname": self.rule["alert"]},
            "annotations": annotations,
        }


def _expanded(text, labels):
    """A text with `{{ $labels.NAME }}` replaced."""
    text = re.sub(r"\{\{ *\$labels\.(\w+) *\}\}", lambda match: labels.get(match[1], ""), text)
    assert "{{" not in text, f"a template that this test does not know: {text}"
    return text
