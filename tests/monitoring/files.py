"""The files of deploy/monitoring, read."""

import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy/monitoring"
LOKI = MONITORING / "loki"
RULES = MONITORING / "annulus.rules.yml"
LOKI_RULES = LOKI / "rules/fake/annulus.yml"
DASHBOARDS = sorted((MONITORING / "grafana/dashboards").glob("*.json"))
ALERT_TESTS = sorted((pathlib.Path(__file__).parent / "alerts").glob("*.yml"))
PANELS_WITHOUT_DATA = pathlib.Path(__file__).parent / "panels_without_data.txt"
METRICS_PAGE = ROOT / "docs/metrics.md"
RUNBOOKS = ROOT / "docs/runbooks.md"

# What Grafana puts in for its variables. A regular expression that takes all is what "All" gives.
VARIABLES = {
    "$__rate_interval": "1m",
    "$__interval": "15s",
    "$__range": "1h",
    "$instance": ".*",
    "$keyspace": ".*",
    "$index": ".*",
}


def loaded(path):
    return yaml.safe_load(path.read_text())


def alerts(path=RULES):
    """All alerts of a file of rules."""
    return [rule for group in loaded(path)["groups"] for rule in group["rules"] if "alert" in rule]


def filled_in(expression):
    """An expression of a panel as Prometheus gets it."""
    for variable in sorted(VARIABLES, key=len, reverse=True):
        expression = expression.replace(variable, VARIABLES[variable])
    assert "$" not in expression, f"a variable without a value in {expression}"
    return expression


def panels(path):
    """All panels of a dashboard, those in rows too."""
    for panel in json.loads(path.read_text())["panels"]:
        yield panel
        yield from panel.get("panels", [])


def panel_queries():
    """(dashboard, panel, expression) of each query to Prometheus."""
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel.get("targets", []):
                if target["datasource"]["type"] == "prometheus":
                    yield path.stem, panel["title"], filled_in(target["expr"])


def panels_without_data():
    """The reason by (dashboard, panel) of panels that show nothing on one loaded server."""
    reasons = {}
    for line in PANELS_WITHOUT_DATA.read_text().splitlines():
        if line and not line.startswith("#"):
            dashboard, panel, reason = (part.strip() for part in line.split("|"))
            reasons[dashboard, panel] = reason
    return reasons


def heading_anchor(heading):
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def metrics_of(expression):
    """The metrics that an expression of PromQL reads."""
    text = re.sub(r'"[^"]*"', "", expression)
    text = re.sub(r"\b(?:by|on|without|ignoring|group_left|group_right) *\([^)]*\)", "", text)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]", " ", text)
    words = re.findall(r"\b([a-zA-Z_]\w*)\b(?!\s*\()", text)
    return {word for word in words if word not in {"and", "or", "unless", "offset", "bool", "by"}}


def family(metric):
    """The name of a histogram of which a metric is a part."""
    return re.sub(r"_(bucket|sum|count)$", "", metric)
