#!/usr/bin/env python3
"""Captures HTTP requests over loopback while a command runs. Writes a file for Wireshark, and one
exchange as a table.

    capture.py FILE.pcap TEXT COMMAND...

The file has the TCP segments of all connections that carried a POST with TEXT in its first line.
The table, on standard output, shows the exchange of median length among them. Output of COMMAND
goes to standard error.

Needs Linux and the right to open a raw packet socket: root, or CAP_NET_RAW. Without it nothing is
run and the exit code is 3.
"""

import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from typing import NamedTuple

ETHERNET_BYTES = 14
ETHERTYPE_IP = 0x0800
IP_PROTOCOL_TCP = 6
FRAME_BYTES_MAX = ETHERNET_BYTES + 65_535
# The bytes kept of each frame: all headers, and the head of a request.
SNAP_BYTES = 512
# Constants that Python's module lacks, from Linux' headers.
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOL_PACKET = 263
PACKET_STATISTICS = 6
RECEIVE_BUFFER_BYTES = 64 << 20
# The header of a pcap file with times in nanoseconds: magic, version 2.4, time zone, accuracy,
# longest frame, Ethernet.
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP_BYTES, 1)
FLAGS = [(0x02, "SYN"), (0x01, "FIN"), (0x04, "RST"), (0x08, "PSH"), (0x10, "ACK")]


class Segment(NamedTuple):
    """A TCP segment."""

    time_ns: int
    source: tuple[str, int]
    target: tuple[str, int]
    flags: str
    payload_bytes: int
    first_line: str
    frame: bytes
    frame_bytes: int

    @property
    def connection(self):
        return frozenset((self.source, self.target))

    def is_request(self, text):
        return self.first_line.startswith("POST ") and text in self.first_line


def segment(time_ns, frame):
    """The TCP segment in a frame; None if the frame has something else."""
    packet = frame[ETHERNET_BYTES:]
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != IP_PROTOCOL_TCP:
        return None
    ip_bytes = (packet[0] & 15) * 4
    total_bytes = struct.unpack("!H", packet[2:4])[0]
    tcp = packet[ip_bytes:total_bytes]
    source_port, target_port = struct.unpack("!HH", tcp[:4])
    payload = tcp[(tcp[12] >> 4) * 4 :]
    line = payload[:200].split(b"\r\n")[0].decode("ascii", "replace")
    return Segment(
        time_ns,
        (socket.inet_ntoa(packet[12:16]), source_port),
        (socket.inet_ntoa(packet[16:20]), target_port),
        " ".join(name for bit, name in FLAGS if tcp[13] & bit),
        len(payload),
        line if line.startswith(("POST ", "HTTP/")) else "",
        frame[:SNAP_BYTES],
        len(frame),
    )


def listen():
    """Opens a socket that gets every IP packet of the loopback device once, with the kernel's
    time."""
    # The socket asks for one protocol rather than for all, so that outgoing packets do not come a
    # second time.
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE_IP))
    raw.bind(("lo", ETHERTYPE_IP))
    raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    try:
        raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
    except PermissionError:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    raw.settimeout(0.2)
    return raw


def receive(raw, end_ns, segments):
    """Appends segments until those up to the time in the list `end_ns` have come. The list is empty
    as long as that time is not known."""
    while True:
        try:
            frame, ancillary, _, _ = raw.recvmsg(FRAME_BYTES_MAX, socket.CMSG_SPACE(16))
        except TimeoutError:
            if end_ns:
                return
            continue
        seconds, nanoseconds = struct.unpack("@qq", ancillary[0][2])
        time_ns = seconds * 10**9 + nanoseconds
        if end_ns and time_ns > end_ns[0]:
            return
        found = segment(time_ns, frame)
        if found:
            segments.append(found)


def exchanges(segments, text):
    """The exchanges of requests that were answered: the segments of a request up to the next one on
    the same connection."""
    under_way, found = {}, []
    for each in segments:
        if each.is_request(text):
            found.append([])
            under_way[each.connection] = found[-1]
        if each.connection in under_way:
            under_way[each.connection].append(each)
    return [exchange for exchange in found if answered_ns(exchange) is not None]


def answered_ns(exchange):
    """The nanoseconds from the begin of a request to that of its answer; None if there is no
    answer."""
    first = exchange[0]
    answers = (each.time_ns for each in exchange if each.source == first.target and each.payload_bytes)
    answer = next(answers, None)
    return None if answer is None else answer - first.time_ns


def table(exchange):
    """Yields the lines of an exchange, one for each segment."""
    first = exchange[0]
    yield f"{'ms':>9}  {'':2}  {'bytes':>6}  flags"
    for each in exchange:
        direction = "->" if each.source == first.source else "<-"
        ms = (each.time_ns - first.time_ns) / 1e6
        yield f"{ms:9.3f}  {direction}  {each.payload_bytes:6}  {each.flags:8} {each.first_line}".rstrip()


def write_pcap(path, segments):
    with open(path, "wb") as out:
        out.write(PCAP_HEADER)
        for each in segments:
            seconds, nanoseconds = divmod(each.time_ns, 10**9)
            out.write(struct.pack("<IIII", seconds, nanoseconds, len(each.frame), each.frame_bytes))
            out.write(each.frame)


def main(arguments):
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    path, text, *command = arguments
    try:
        raw = listen()
    except (AttributeError, PermissionError) as error:
        print(f"no packets can be captured: this needs Linux, and root or CAP_NET_RAW ({error})", file=sys.stderr)
        return 3
    segments, end_ns = [], []
    receiver = threading.Thread(target=receive, args=(raw, end_ns, segments))
    receiver.start()
    try:
        outcome = subprocess.run(command, stdout=sys.stderr).returncode
    finally:
        end_ns.append(time.time_ns())
        receiver.join()
    _, lost = struct.unpack("@II", raw.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    found = exchanges(segments, text)
    if not found:
        print(f"no POST with {text} was answered meanwhile (exit code of the command: {outcome})", file=sys.stderr)
        return 1
    connections = {exchange[0].connection for exchange in found}
    write_pcap(path, [each for each in segments if each.connection in connections])
    lengths = [answered_ns(exchange) for exchange in found]
    median = statistics.median_low(lengths)
    exchange = found[lengths.index(median)]
    ends = [f"{host}:{port}" for host, port in (exchange[0].source, exchange[0].target)]
    print(f"{len(found)} requests, answered after {median / 1e6:.1f} ms (median); that one, {ends[0]} -> {ends[1]}:\n")
    print("\n".join(table(exchange)))
    if lost:
        print(f"\n{lost} packets came too fast and are missing")
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
