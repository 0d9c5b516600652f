"""A real Prometheus scrapes a loaded server for two minutes; then each query of each panel returns a series.

With a real Cassandra in target/cassandra-lib a gateway and its index service are scraped, too (WITHOUT_CASSANDRA=1 leaves
them out)."""

import contextlib
import json
import math
import os
import urllib.parse
import urllib.request

import pytest
import yaml
from files import DASHBOARDS, MONITORING, RULES, alerts, loaded, metrics_of, panel_queries, panels_without_data
from gateways import NETWORK
from server_load import care_for, loaded_gateway, loaded_server
from programs import checked, prometheus
from ring import ROOT, cassandra_ring, free_port
from server import Server, eventually
from stores import GatewayWithStore

SCRAPED_SECONDS = int(os.environ.get("SCRAPED_SECONDS", "120"))
INTERVAL_SECONDS = 5
# The last of the panels may wait for one more scrape, or for the load that comes next.
PATIENCE_SECONDS = 45


def with_cassandra():
    return not os.environ.get("WITHOUT_CASSANDRA") and any((ROOT / "target/cassandra-lib").glob("*.jar"))


@contextlib.contextmanager
def running_gateway(folder):
    """A gateway with its index service before a Cassandra, under load. Yields the address of its metrics."""
    with cassandra_ring(1) as ring:
        host = f"{NETWORK}.1"
        metrics = f"{host}:{free_port(host)}"
        node = ring.hosts[0], ring.port
        address = host, free_port(host)
        gateway = GatewayWithStore(address, free_port(host), node, folder, ["--metrics-listen", metrics])
        with gateway, loaded_gateway(gateway, gateway):
            yield metrics


def settings(server, gateway, folder):
    """The file of deploy/monitoring with the addresses of this test."""
    settings = loaded(MONITORING / "prometheus.yml")
    settings["global"] = dict.fromkeys(["scrape_interval", "evaluation_interval"], f"{INTERVAL_SECONDS}s")
    settings["rule_files"] = [str(RULES)]
    settings["alerting"]["alertmanagers"] = []
    (job,) = settings["scrape_configs"]
    job["static_configs"] = [{"targets": [f"{server.host}:{server.http_port}"]}]
    if gateway:
        job = {"job_name": "annulus-gateway", "static_configs": [{"targets": [gateway]}]}
        settings["scrape_configs"].append(job)
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(settings))
    checked("promtool", "check", "config", path)
    return path


class ScrapedServers:
    """A Prometheus that has scraped for a while."""

    def __init__(self, address, has_gateway):
        self.address, self.has_gateway = address, has_gateway

    def get(self, path, **parameters):
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=30) as response:
            return json.load(response)["data"]

    def values(self, expression):
        """The values of the series that a query returns now, without those that are not a number."""
        series = self.get("query", query=expression)["result"]
        values = [float(one["value"][1]) for one in series]
        return [value for value in values if not math.isnan(value)]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scraped")
    has_gateway = with_cassandra()
    checked("promtool", "--version")
    server = Server(folder / "data").start()
    with contextlib.ExitStack() as stack:
        stack.enter_context(loaded_server(server))
        gateway = stack.enter_context(running_gateway(folder)) if has_gateway else None
        path = settings(server, gateway, folder)
        address = stack.enter_context(prometheus(path, folder, free_port("127.0.0.1")))
        care_for(server, folder)
        servers = ScrapedServers(address, has_gateway)
        scrapes = 'min(count_over_time(up{job=~"annulus.*"}[1h])) >= ' + str(SCRAPED_SECONDS // INTERVAL_SECONDS)
        eventually(lambda: servers.values(scrapes), 2 * SCRAPED_SECONDS, every=1)
        yield servers
    assert server.stop() == 0, server.log()


@pytest.mark.parametrize("dashboard", [path.stem for path in DASHBOARDS])
def test_every_panel_shows_something(scraped, dashboard):
    if dashboard == "gateways" and not scraped.has_gateway:
        pytest.skip("a gateway needs a real Cassandra: make cassandra, then make test-monitoring")
    without = panels_without_data()
    queries = {}
    for of, panel, expression in panel_queries():
        if of == dashboard and (of, panel) not in without:
            queries.setdefault(panel, []).append(expression)

    left = list(queries)

    def all_show_something():
        left[:] = [panel for panel in left if not all(scraped.values(query) for query in queries[panel])]
        return not left

    with contextlib.suppress(AssertionError):
        eventually(all_show_something, PATIENCE_SECONDS, every=1)
    assert left == [], "panels without data: mend them, or list them in panels_without_data.txt with the reason"


def test_every_target_is_up(scraped):
    targets = scraped.get("targets")["activeTargets"]
    assert len(targets) == 1 + scraped.has_gateway
    assert {target["health"] for target in targets} == {"up"}, targets


def test_rules_are_evaluated_and_none_is_critical(scraped):
    rules = [rule for group in scraped.get("rules")["groups"] for rule in group["rules"]]
    assert rules and {rule["health"] for rule in rules} == {"ok"}, [rule for rule in rules if rule["health"] != "ok"]
    firing = [alert["labels"] for alert in scraped.get("alerts")["alerts"] if alert["state"] == "firing"]
    assert [labels for labels in firing if labels["severity"] == "critical"] == []


def test_alerts_read_metrics_that_servers_have(scraped):
    # An alert on a metric that is not there would never fire. This server has no certificate.
    has = set(scraped.get("label/__name__/values")) | {"annulus_certificate_expiry_timestamp_seconds"}
    read = set().union(*(metrics_of(alert["expr"]) for alert in alerts()))
    if not scraped.has_gateway:
        read = {metric for metric in read if not metric.startswith("annulus_gateway_")}
    assert read <= has, read - has
