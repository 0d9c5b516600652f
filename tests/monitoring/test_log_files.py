"""The files of the log chain, without the programs that read them: labels, counters, and the rule of Loki."""

import re

from alloy import AlloyFile, as_promtail
from files import LOKI, LOKI_RULES, alerts, loaded
from logql import LogRule
from pipeline import SyslogPipeline

PROMTAIL = loaded(LOKI / "promtail.yml")
LINE = "<{pri}>1 2026-11-29T10:11:12.123456Z node1 {app} 4711 - - {text}"
LARGE_CELL = "[shard 1] large_data - Writing large cell ks/t: body"


def entry(pipeline, text, pri=28, app="annulus", time=100.0):
    return pipeline.entry(LINE.format(pri=pri, app=app, text=text), "10.0.0.5", time)


def test_a_line_gets_its_labels():
    found = entry(SyslogPipeline(PROMTAIL), LARGE_CELL)
    assert found.line == LARGE_CELL
    assert found.labels == {
        "job": "syslog",
        "instance": "10.0.0.5",
        "app": "annulus",
        "severity": "warning",
        "shard": "1",
        "module": "large_data",
    }


def test_a_line_of_another_program_has_no_module():
    labels = entry(SyslogPipeline(PROMTAIL), LARGE_CELL, app="other").labels
    assert "module" not in labels and "shard" not in labels


def test_only_warnings_are_counted():
    pipeline = SyslogPipeline(PROMTAIL)
    for pri in (27, 28, 28, 30):
        entry(pipeline, "[shard 0] serve - text", pri=pri)
    ((name, labels),) = pipeline.counters
    assert name == "annulus_logs_warning_total" and dict(labels)["severity"] == "warning"
    assert list(pipeline.counters.values()) == [2]


def test_alloy_does_what_promtail_does():
    (job,) = PROMTAIL["scrape_configs"]
    wanted = {name: part for name, part in job.items() if name != "job_name"}
    assert as_promtail(AlloyFile((LOKI / "annulus.alloy").read_text())) == {**wanted, "clients": PROMTAIL["clients"]}


def rule():
    (rule,) = alerts(LOKI_RULES)
    return LogRule(rule)


def test_the_rule_fires_after_twenty_seconds():
    pipeline, high_streams = SyslogPipeline(PROMTAIL), rule()
    entries = [entry(pipeline, LARGE_CELL)]
    assert high_streams.firing(entries, 105.0) == []
    assert high_streams.firing(entries, 120.0) == []
    (alert,) = high_streams.firing(entries, 125.0)
    assert alert["labels"]["alertname"] == "HighThroughputLogStreams" and alert["labels"]["severity"] == "2"
    assert alert["labels"]["instance"] == "10.0.0.5" and alert["labels"]["msg"] == LARGE_CELL
    assert alert["annotations"]["description"] == f"10.0.0.5 {LARGE_CELL}"


def test_the_rule_ends_after_an_hour():
    entries = [entry(SyslogPipeline(PROMTAIL), LARGE_CELL)]
    assert rule().values(entries, 3699.0) and not rule().values(entries, 3701.0)


def test_other_modules_do_not_fire():
    pipeline, high_streams = SyslogPipeline(PROMTAIL), rule()
    entries = [entry(pipeline, "[shard 1] storage - slow disk"), entry(pipeline, LARGE_CELL, app="other")]
    assert high_streams.values(entries, 130.0) == {}


def test_ports_of_the_chain_meet():
    (job,) = PROMTAIL["scrape_configs"]
    rsyslog = (LOKI / "rsyslog.conf").read_text()
    assert job["syslog"]["listen_address"].rsplit(":", 1)[1] == re.search(r"@@[\d.]+:(\d+);", rsyslog)[1]
    loki_port = loaded(LOKI / "loki.yml")["server"]["http_listen_port"]
    assert PROMTAIL["clients"][0]["url"] == f"http://127.0.0.1:{loki_port}/loki/api/v1/push"
