"""The programs' own checks of the monitoring files, and the unit tests of the alerts."""

import pytest
import yaml
from files import ALERT_TESTS, LOKI, MONITORING, RULES, panel_queries
from programs import checked, rsyslog_arguments


def test_prometheus_takes_its_settings_and_rules():
    checked("promtool", "check", "config", MONITORING / "prometheus.yml")
    checked("promtool", "check", "rules", RULES)


@pytest.mark.parametrize("path", ALERT_TESTS, ids=lambda path: path.stem)
def test_alerts_fire_when_they_should(path):
    assert "SUCCESS" in checked("promtool", "test", "rules", path)


def test_every_expression_of_a_panel_is_promql(tmp_path):
    # This promtool has no command for one expression: each becomes a recording rule.
    rules = [
        {"record": f"panel:{number}", "expr": expression, "labels": {"dashboard": dashboard, "panel": panel}}
        for number, (dashboard, panel, expression) in enumerate(panel_queries())
    ]
    assert len(rules) > 100
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in checked("promtool", "check", "rules", path)


def test_alertmanager_takes_its_settings():
    assert "SUCCESS" in checked("amtool", "check-config", MONITORING / "alertmanager.yml")


@pytest.mark.parametrize(
    ("labels", "repeats"), [("severity=critical", "1h"), ("severity=warning", "12h"), ("severity=2", "12h")], ids=str
)
def test_every_severity_reaches_the_team(labels, repeats):
    arguments = ["config", "routes", "test", f"--config.file={MONITORING / 'alertmanager.yml'}", "--verify.receivers=team"]
    assert "team" in checked("amtool", *arguments, labels)
    routes = yaml.safe_load((MONITORING / "alertmanager.yml").read_text())["route"]
    (critical,) = routes["routes"]
    assert (critical if "critical" in labels else routes)["repeat_interval"] == repeats


def test_rsyslog_takes_its_settings(tmp_path):
    path = tmp_path / "rsyslog.conf"
    path.write_text(f'global(workDirectory="{tmp_path}")\n' + (LOKI / "rsyslog.conf").read_text())
    printed = checked("rsyslogd", "-N1", "-f", path, *rsyslog_arguments())
    assert "error" not in printed.lower(), printed
