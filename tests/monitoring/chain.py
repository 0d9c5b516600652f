"""The chain from a server's log to mail and Slack: real rsyslog, the stages and the rule by a small evaluator, real
Alertmanager. Only addresses and the files of secrets differ from those of deploy/monitoring."""

import contextlib
import json
import re
import time
import urllib.request

import yaml
from files import LOKI, LOKI_RULES, MONITORING, alerts, loaded
from logql import LogRule
from pipeline import SyslogPipeline
from programs import alertmanager, answers_tcp, rsyslog
from ring import free_port
from server import eventually
from sinks import MailReceiver, SyslogReceiver, Webhook


class AlertChain:
    """The running chain. Servers log to `log_address`, or to `log_socket` as they would to /dev/log."""

    def __init__(self, folder):
        self.folder = folder
        self.receiver = SyslogReceiver(SyslogPipeline(loaded(LOKI / "promtail.yml")))
        self.slack, self.mail = Webhook(), MailReceiver()
        self.rules = [LogRule(rule) for rule in alerts(LOKI_RULES)]
        self.log_port = free_port("127.0.0.1")
        self.log_address = f"127.0.0.1:{self.log_port}"
        self.log_socket = folder / "log"
        self.alertmanager = None

    def rsyslog(self):
        """Runs rsyslog within a block, as on the machine of a server."""
        text = (LOKI / "rsyslog.conf").read_text()
        text, inputs = re.subn(r'port="\d+"', f'port="{self.log_port}"', text)
        text, outputs = re.subn(r"@@[\d.]+:\d+;", f"@@127.0.0.1:{self.receiver.port};", text)
        assert (inputs, outputs) == (1, 1)
        path = self.folder / "rsyslog.conf"
        # What Debian's own settings have for /dev/log.
        local = f'module(load="imuxsock" SysSock.Name="{self.log_socket}")'
        path.write_text(f'global(workDirectory="{self.folder}")\n{local}\n{text}')
        return rsyslog(path, self.folder, lambda: answers_tcp(self.log_port))

    def start_alertmanager(self):
        """Runs Alertmanager within a block."""
        settings = loaded(MONITORING / "alertmanager.yml")
        secrets = {"smtp_auth_password_file": "unused", "slack_api_url_file": self.slack.url}
        for name, secret in secrets.items():
            (self.folder / name).write_text(secret)
            settings["global"][name] = str(self.folder / name)
        settings["global"] |= {"smtp_smarthost": self.mail.address, "smtp_require_tls": False}
        path = self.folder / "alertmanager.yml"
        path.write_text(yaml.safe_dump(settings))
        return alertmanager(path, self.folder, free_port("127.0.0.1"))

    def evaluate(self):
        """Evaluates the rules once, as Loki's ruler does, and posts the alerts that fire."""
        now = time.time()
        firing = [alert for rule in self.rules for alert in rule.firing(list(self.receiver.entries), now)]
        if firing:
            body = json.dumps(firing).encode()
            headers = {"Content-Type": "application/json"}
            request = urllib.request.Request(f"{self.alertmanager}/api/v2/alerts", data=body, headers=headers)
            with urllib.request.urlopen(request, timeout=30) as response:
                assert response.status == 200
        return firing

    def evaluate_until(self, is_reached, seconds=120):
        """Evaluates again and again until something has happened."""

        def reached():
            self.evaluate()
            return is_reached()

        return eventually(reached, seconds, every=1)

    def active_alerts(self):
        with urllib.request.urlopen(f"{self.alertmanager}/api/v2/alerts", timeout=30) as response:
            return json.load(response)

    def close(self):
        for sink in (self.receiver, self.slack, self.mail):
            sink.close()


@contextlib.contextmanager
def alert_chain(folder):
    """A chain with its Alertmanager. rsyslog is started by the caller."""
    chain = AlertChain(folder)
    try:
        with chain.start_alertmanager() as address:
            chain.alertmanager = address
            yield chain
    finally:
        chain.close()
