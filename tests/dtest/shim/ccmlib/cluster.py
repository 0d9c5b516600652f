"""A cluster, whose nodes are all the same process."""

import os
import shutil
import threading

import pytest

from ccmlib import common
from ccmlib.node import OF_COURSE, Node, TimeoutError
from server import Server

DEFAULT_CLUSTER_WAIT_TIMEOUT_IN_SECS = 90
INSTALLED = os.environ["CASSANDRA_DIR"]
MURMUR3 = "org.apache.cassandra.dht.Murmur3Partitioner"


class Cluster:
    def __init__(self, path, name, **_):
        self.name, self.path = name, os.path.join(path, name)
        self.nodes, self._config_options = {}, {}
        self.partitioner = MURMUR3
        self.server = Server(self.path, self._config_options)

    def version(self):
        return common.get_version_from_build()

    cassandra_version = version

    def get_install_dir(self):
        return INSTALLED

    def get_path(self):
        return self.path

    def populate(self, nodes, *_, use_vnodes=None, **__):
        if isinstance(nodes, (list, tuple)):
            if len(nodes) > 1:
                pytest.skip("several data centres")
            nodes = nodes[0]
        os.makedirs(self.path, exist_ok=True)
        for number in range(1, nodes + 1):
            self.nodes[f"node{number}"] = Node.of(f"node{number}", self)
        return self

    def add(self, *_, **__):
        pytest.skip("a node that joins later")

    def nodelist(self):
        return [self.nodes[name] for name in sorted(self.nodes)]

    def start(self, *_, **__):
        self.server.start()
        return []

    def stop(self, *_, gently=True, **__):
        self.server.stop(gently)
        return []

    def clear(self, *_, **__):
        self.stop()
        shutil.rmtree(self.server.directory, ignore_errors=True)

    def remove(self, node=None, **_):
        if node is not None:
            pytest.skip("removes one of several nodes")
        self.server.stop(gently=False)
        shutil.rmtree(self.path, ignore_errors=True)

    def set_configuration_options(self, values=None, **_):
        for name, value in (values or {}).items():
            if isinstance(value, dict):
                value = {**self._config_options.get(name, {}), **value}
            self._config_options[name] = value
        return self

    def set_partitioner(self, partitioner):
        if partitioner != MURMUR3:
            pytest.skip("another partitioner")

    def set_install_dir(self, *_, **__):
        pytest.skip("another version")

    def _passed_over(self, *_, **__):
        return self

    set_batch_commitlog = set_environment_variable = set_datadir_count = set_log_level = _passed_over
    set_configuration_yaml = flush = compact = cleanup = repair = drain = wait_for_compactions = _passed_over
    watch_log_for_no_errors = _passed_over

    def actively_watch_logs_for_error(self, *_, **__):
        """A thread that has ended: the log is read after each test."""
        watcher = threading.Thread(target=lambda: None)
        watcher.start()
        return watcher

    def wait_for_any_log(self, pattern, timeout, **_):
        for node in self.nodelist():
            if OF_COURSE.search(pattern) or node.grep_log(pattern):
                return node
        raise TimeoutError(f"not in a log: {pattern}")

    def nodetool(self, command):
        for node in self.nodelist():
            node.nodetool(command)

    def stress(self, *_, **__):
        pytest.skip("cassandra-stress")

    def balanced_tokens(self, count):
        return [number * 2**64 // count - 2**63 for number in range(count)]
