"""Forms of the monitoring files, without the programs that read them: this part is in `make test`."""

import collections
import json
import re

import pytest
import yaml
from files import (
    ALERT_TESTS,
    DASHBOARDS,
    LOKI,
    LOKI_RULES,
    METRICS_PAGE,
    MONITORING,
    RULES,
    RUNBOOKS,
    alerts,
    family,
    filled_in,
    heading_anchor,
    loaded,
    metrics_of,
    panel_queries,
    panels,
    panels_without_data,
)

# Made by Prometheus itself.
OF_OTHERS = {"ALERTS", "up"}
WANTED_ALERTS = {
    "InstanceDown", "DiskFull", "NoCql", "HighLatencies", "RecallBelowTarget", "ShortAnswers", "IndexLag", "BackupFailed",
    "BackupOld", "BackupsFailForLong", "BackupInTheFuture", "DrillFailed", "RepairFailed", "ShedRequests", "Restarted",
    "MemoryNearLimit", "ClockMoved", "CertificateEndsSoon", "HighThroughputLogStreams",
}


def all_alerts():
    return alerts() + alerts(LOKI_RULES)


def counters_of_stages():
    """The metrics that the stages of promtail.yml make."""
    found, waiting = set(), [loaded(LOKI / "promtail.yml")]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            found |= {metric["prefix"] + name for name, metric in part.get("metrics", {}).items()}
    return found


def test_yaml_and_json_can_be_read():
    yamls = sorted(MONITORING.rglob("*.yml"))
    assert len(yamls) >= 8
    for path in yamls:
        assert isinstance(yaml.safe_load(path.read_text()), dict), path
    titles = {json.loads(path.read_text())["title"] for path in DASHBOARDS}
    assert {path.stem for path in DASHBOARDS} >= {"overview", "searches", "storage", "gateways"}
    assert len(titles) == len(DASHBOARDS)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards_have_whole_panels(path):
    dashboard = json.loads(path.read_text())
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    shown = [panel for panel in panels(path) if panel["type"] != "row"]
    ids = [panel["id"] for panel in panels(path)]
    titles = [panel["title"] for panel in shown]
    assert len(set(ids)) == len(ids) and len(set(titles)) == len(titles)
    for panel in shown:
        assert panel["title"] and panel["description"], panel
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert panel["targets"] or panel["type"] == "alertlist", panel["title"]
        for source in [panel["datasource"], *(target["datasource"] for target in panel["targets"])]:
            assert source["uid"].strip("${}") in variables, panel["title"]


def test_every_metric_is_on_the_page_of_metrics():
    named = set(re.findall(r"\bannulus_\w+", METRICS_PAGE.read_text()))
    used = collections.defaultdict(set)
    for dashboard, panel, expression in panel_queries():
        for metric in metrics_of(expression):
            used[metric].add(f"{dashboard}: {panel}")
    for alert in alerts():
        for metric in metrics_of(alert["expr"]):
            used[metric].add(alert["alert"])
    assert len(used) > 60
    known = named | OF_OTHERS | counters_of_stages()
    unknown = {name: places for name, places in used.items() if not {name, family(name)} & known}
    assert not unknown, f"not in {METRICS_PAGE.name}: {unknown}"


def test_variables_of_grafana_are_known():
    for path in DASHBOARDS:
        for panel in panels(path):
            for target in panel.get("targets", []):
                assert "$" not in filled_in(target["expr"])


def test_alerts_say_what_to_do():
    assert {alert["alert"] for alert in all_alerts()} >= WANTED_ALERTS
    names = [alert["alert"] for alert in all_alerts()]
    assert len(set(names)) == len(names)
    for alert in all_alerts():
        annotations = alert["annotations"]
        assert annotations["summary"].endswith(".") and annotations["description"], alert["alert"]
        assert annotations["runbook"] == f"docs/runbooks.md#{alert['alert'].lower()}"
        assert alert["labels"]["severity"] in {"critical", "warning", "info", "2"}


def test_every_alert_has_a_section_of_the_runbooks():
    text = RUNBOOKS.read_text()
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2]))
    assert set(sections) == {alert["alert"] for alert in all_alerts()}
    for name, section in sections.items():
        assert heading_anchor(name) == name.lower()
        for word in ("**Meaning.**", "**Look.**", "**Remedy.**"):
            assert word in section, (name, word)


def test_every_alert_has_a_test_that_fires_and_one_that_does_not():
    fires, quiet = set(), set()
    for path in ALERT_TESTS:
        for test in loaded(path)["tests"]:
            for case in test["alert_rule_test"]:
                (fires if case["exp_alerts"] else quiet).add(case["alertname"])
    names = {alert["alert"] for alert in alerts()}
    assert fires == names and quiet == names
    assert RULES.name in ALERT_TESTS[0].read_text()


def test_panels_without_data_are_panels():
    queried = {(dashboard, panel) for dashboard, panel, _ in panel_queries()}
    reasons = panels_without_data()
    assert set(reasons) <= queried, set(reasons) - queried
    assert all(len(reason) > 10 for reason in reasons.values())


def test_settings_of_the_chain_are_those_published():
    rsyslog = (LOKI / "rsyslog.conf").read_text()
    assert re.search(r"programname == 'annulus' then @@\S+;RSYSLOG_SyslogProtocol23Format", rsyslog)
    promtail = loaded(LOKI / "promtail.yml")
    assert promtail["server"] == {"http_listen_port": 9080, "grpc_listen_port": 0}
    alertmanager = loaded(MONITORING / "alertmanager.yml")
    (receiver,) = alertmanager["receivers"]
    assert receiver["email_configs"] and receiver["slack_configs"]
