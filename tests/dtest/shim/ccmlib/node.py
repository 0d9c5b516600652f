"""A node of a cluster. All nodes of a cluster are the one process that `server` keeps."""

import os
import re
import subprocess
import sys
import time
from collections import namedtuple

import pytest

from ccmlib import common

NODE_WAIT_TIMEOUT_IN_SECS = 90
# Lines that Cassandra logs about steps that are over here when a node has started.
OF_COURSE = re.compile("Created default superuser|Starting listening for CQL clients|Startup complete")
# Commands that change nothing of what clients see here.
WITHOUT_EFFECT = {"flush", "compact", "cleanup", "repair", "disableautocompaction", "enableautocompaction", "drain"}
WITHOUT_EFFECT |= {"upgradesstables", "rebuild_index", "garbagecollect", "invalidaterowcache", "invalidatekeycache"}

Returned = namedtuple("Returned", "stdout stderr rc")


class NodeError(Exception):
    def __init__(self, message, process=None):
        Exception.__init__(self, message)
        self.process = process


class TimeoutError(Exception):
    pass


class ToolError(Exception):
    def __init__(self, command, exit_status, stdout=None, stderr=None):
        Exception.__init__(self, f"{command} ended with {exit_status}; stdout: {stdout}; stderr: {stderr}")
        self.command, self.exit_status, self.stdout, self.stderr = command, exit_status, stdout, stderr


def handle_external_tool_process(process, command):
    stdout, stderr = process.communicate()
    if process.returncode != 0:
        raise ToolError(command, process.returncode, stdout, stderr)
    return Returned(stdout, stderr, process.returncode)


class Node:
    def __init__(self, name, cluster, *_, **__):
        if cluster is None or not hasattr(cluster, "server"):
            pytest.skip("a node that joins later")
        self.name, self.cluster = name, cluster
        self.data_center = "datacenter1"

    @classmethod
    def of(cls, name, cluster):
        return cls(name, cluster)

    # Where it is.

    @property
    def network_interfaces(self):
        address = (self.cluster.server.host, self.cluster.server.port)
        return {"binary": address, "thrift": address, "storage": (address[0], 7000)}

    @property
    def pid(self):
        return self.cluster.server.pid

    def address(self):
        return self.cluster.server.host

    @property
    def ip_addr(self):
        return self.address()

    def address_and_port(self):
        return f"{self.address()}:7000"

    def get_cassandra_version(self):
        return self.cluster.version()

    def get_install_dir(self):
        return self.cluster.get_install_dir()

    def get_path(self):
        return self.cluster.server.directory

    def get_conf_dir(self):
        return self.cluster.server.directory

    def data_directories(self):
        return [os.path.join(self.get_path(), "data")]

    def log_directory(self):
        return os.path.join(self.get_path(), "logs")

    def logfilename(self):
        return os.path.join(self.log_directory(), "system.log")

    def debuglogfilename(self):
        return os.path.join(self.log_directory(), "debug.log")

    def gclogfilename(self):
        return os.path.join(self.log_directory(), "gc.log")

    def compactionlogfilename(self):
        return os.path.join(self.log_directory(), "compaction.log")

    def envfilename(self):
        pytest.skip("settings of the JVM")

    # Its life.

    def is_running(self):
        return self.cluster.server.is_running

    is_live = is_running

    def start(self, *_, **__):
        self.cluster.server.start()
        return []

    def stop(self, *_, gently=True, **__):
        if len(self.cluster.nodes) > 1:
            pytest.skip("stops one of several nodes")
        self.cluster.server.stop(gently)
        return True

    def set_configuration_options(self, values=None, **_):
        self.cluster.set_configuration_options(values)

    def get_conf_option(self, name):
        # Times of expiry are no narrower than those of a Cassandra that writes no files of older versions.
        return self.cluster._config_options.get(name, {"storage_compatibility_mode": "NONE"}.get(name))

    def set_install_dir(self, *_, **__):
        pytest.skip("another version")

    def show(self, *_, **__):
        pass

    def set_log_level(self, *_, **__):
        return self

    def import_config_files(self):
        pass

    # What changes nothing.

    def flush(self, *_, **__):
        pass

    compact = cleanup = repair = drain = wait_for_compactions = flush

    def nodetool(self, command, *_, **__):
        if command.split()[0] not in WITHOUT_EFFECT:
            pytest.skip(f"nodetool {command}")
        return Returned("", "", 0)

    def stress(self, *_, **__):
        pytest.skip("cassandra-stress")

    def _several(self, *_, **__):
        pytest.skip("a ring of several nodes")

    decommission = move = pause = resume = bulkload = scrub = _several

    def byteman_submit(self, *_, **__):
        pytest.skip("faults in the code of Cassandra")

    def run_sstabledump(self, *_, **__):
        pytest.skip("files of Cassandra")

    run_sstable2json = get_sstables = get_sstablespath = run_sstablemetadata = run_sstabledump

    # Its log.

    def mark_log(self, *_, **__):
        path = self.logfilename()
        return os.path.getsize(path) if os.path.exists(path) else 0

    def _log_after(self, mark):
        if not os.path.exists(self.logfilename()):
            return ""
        with open(self.logfilename(), errors="replace") as log:
            log.seek(mark or 0)
            return log.read()

    def grep_log(self, expression, filename="system.log", from_mark=None):
        lines = self._log_after(from_mark).splitlines()
        return [(line, match) for line in lines if (match := re.search(expression, line))]

    def grep_log_for_errors(self, *_, **__):
        return [[line] for line in self._log_after(0).splitlines() if re.search(r"\bERROR\b|panicked", line)]

    def watch_log_for(self, expressions, from_mark=None, timeout=600, filename="system.log", **_):
        expressions = [expressions] if isinstance(expressions, str) else list(expressions)
        expressions = [each for each in expressions if not OF_COURSE.search(each)]
        deadline = time.monotonic() + min(timeout, 5)
        while missing := [each for each in expressions if not self.grep_log(each, filename, from_mark)]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"not in the log: {missing}")
            time.sleep(0.1)

    def watch_log_for_no_errors(self, *_, **__):
        pass

    # cqlsh.

    def run_cqlsh(self, cmds=None, cqlsh_options=None, terminator=";"):
        command = [os.path.join(self.get_install_dir(), "bin", "cqlsh"), *(cqlsh_options or [])]
        command += [self.address(), str(self.network_interfaces["binary"][1])]
        environment = common.make_cassandra_env(self.get_install_dir(), self.get_path()) | {"LANG": "en_US.UTF-8"}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if cmds is not None:
            text = cmds.rstrip()
            text += "\n" if text.endswith(terminator) else f"{terminator}\n"
            try:
                process.stdin.write(text + "quit;\n")
                process.stdin.flush()
            except BrokenPipeError:
                print("cqlsh ended before it had read all", file=sys.stderr)
        return handle_external_tool_process(process, command)
