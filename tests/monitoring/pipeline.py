"""Applies promtail.yml to syslog lines: relabelling and stages, as far as that file uses them.

Anything else in the file is refused, so that no stage is skipped in silence."""

import dataclasses
import re

SEVERITIES = ["emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug"]
RFC_5424 = re.compile(
    r"<(?P<pri>\d{1,3})>1 (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) (?P<procid>\S+) (?P<msgid>\S+)"
    r" (?P<data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (?P<msg>.*))?",
    re.DOTALL,
)
MATCHER = re.compile(r'\s*(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"\s*')


@dataclasses.dataclass(frozen=True)
class LogEntry:
    """A line with its labels, at a time of the clock that the receiver uses."""

    labels: dict
    line: str
    time: float


def parsed_syslog(line):
    """The fields of a line of RFC 5424."""
    match = RFC_5424.fullmatch(line)
    assert match, f"not RFC 5424: {line!r}"
    return match.groupdict()


def selects(selector, labels):
    """Whether a stream selector such as {app="annulus"} takes a set of labels."""
    assert selector.startswith("{") and selector.endswith("}"), selector
    rest = selector[1:-1]
    while rest:
        match = MATCHER.match(rest)
        assert match, f"not a matcher: {rest!r}"
        name, operator, value = match.groups()
        value = value.replace("\\\\", "\\").replace('\\"', '"')
        has = labels.get(name, "")
        is_equal = re.fullmatch(value, has) is not None if "~" in operator else has == value
        if is_equal == operator.startswith("!"):
            return False
        rest = rest[match.end() :].removeprefix(",")
    return True


class SyslogPipeline:
    """One syslog job of promtail: takes lines of RFC 5424, gives entries, and counts."""

    def __init__(self, configuration):
        jobs = [job for job in configuration["scrape_configs"] if "syslog" in job]
        assert len(jobs) == 1, "one job for syslog"
        self.job = jobs[0]
        self.counters = {}

    def entry(self, line, peer, now):
        """The entry of a line from an address."""
        fields = parsed_syslog(line)
        labels = {
            "__syslog_connection_ip_address": peer,
            "__syslog_message_app_name": fields["app"],
            "__syslog_message_severity": SEVERITIES[int(fields["pri"]) % 8],
            "__syslog_message_hostname": fields["host"],
            **self.job["syslog"].get("labels", {}),
        }
        labels = self._relabelled(labels)
        message = (fields["msg"] or "").removeprefix("\ufeff")
        self._run(self.job["pipeline_stages"], labels, {}, message)
        return LogEntry(labels, message, now)

    def _relabelled(self, labels):
        for rule in self.job["relabel_configs"]:
            assert set(rule) == {"source_labels", "target_label"}, f"not known to this test: {rule}"
            # The default action: replace by all of the value.
            labels[rule["target_label"]] = ";".join(labels.get(name, "") for name in rule["source_labels"])
        return {name: value for name, value in labels.items() if not name.startswith("__") and value}

    def _run(self, stages, labels, extracted, line):
        for stage in stages:
            ((kind, options),) = stage.items()
            getattr(self, f"_{kind}")(options, labels, extracted, line)

    def _match(self, options, labels, extracted, line):
        if selects(options["selector"], labels):
            self._run(options["stages"], labels, extracted, line)

    def _regex(self, options, _labels, extracted, line):
        if match := re.search(options["expression"], line):
            extracted.update(match.groupdict())

    def _labels(self, options, labels, extracted, _line):
        for name, source in options.items():
            if (value := extracted.get(source or name)) is not None:
                labels[name] = value

    def _metrics(self, options, labels, _extracted, _line):
        for name, metric in options.items():
            assert metric["type"] == "Counter" and metric["config"] == {"match_all": True, "action": "inc"}, metric
            series = metric["prefix"] + name, tuple(sorted(labels.items()))
            self.counters[series] = self.counters.get(series, 0) + 1
