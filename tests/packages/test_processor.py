"""The program on a processor without AVX2, which qemu plays."""

import json
import re
import subprocess
import threading

from conftest import tool

READY = re.compile(r"ready: CQL on")
START_SECONDS = 300


def emulated(*command):
    """The command on a processor of 2008: SSE 4.2, and nothing wider."""
    return [tool("qemu-x86_64", "qemu-user"), "-cpu", "Nehalem", *command]


def test_doctor_says_what_the_processor_lacks(program, tmp_path):
    ports = ["--cql-port", "0", "--http-port", "0", "--http", "http://127.0.0.1:1"]
    command = emulated(program, "doctor", "--data-dir", tmp_path, *ports, "--json")
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = {finding["subject"]: finding for finding in json.loads(result.stdout)["findings"]}
    assert found["processor"]["grade"] == "advice" and "AVX2" in found["processor"]["found"]


def test_server_loads_and_searches_without_avx2(program, tmp_path):
    # The sample is loaded and searched before the server is ready.
    arguments = ["serve", "--data-dir", tmp_path / "data", "--cql-port", "0", "--http-port", "0", "--sample", "movies"]
    server = subprocess.Popen(emulated(program, *arguments), stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(START_SECONDS, server.kill)
    timer.start()
    try:
        assert any(READY.search(line) for line in server.stdout), "not ready"
    finally:
        timer.cancel()
        server.terminate()
        code = server.wait(timeout=60)
    assert code == 0
