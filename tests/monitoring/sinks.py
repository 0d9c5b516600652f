"""Receivers of the chain: syslog lines over TCP, Slack's webhook, and mail."""

import http.server
import json
import socketserver
import threading
import time


class SyslogReceiver:
    """Takes lines where Promtail would, and applies a pipeline to each. `entries` has what Loki would have."""

    def __init__(self, pipeline):
        self.pipeline, self.entries, self.lines, self.refused = pipeline, [], [], []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    outer.take(line.decode().rstrip("\n"), self.client_address[0])

        self._server = _serving(socketserver.ThreadingTCPServer, Handler)
        self.port = self._server.server_address[1]

    def take(self, line, peer):
        self.lines.append(line)
        try:
            self.entries.append(self.pipeline.entry(line, peer, time.time()))
        except AssertionError as error:
            self.refused.append(str(error))

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Webhook:
    """Takes what Alertmanager posts to Slack."""

    def __init__(self):
        self.posted = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        self._server = _serving(http.server.ThreadingHTTPServer, Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class MailReceiver:
    """Takes mail by SMTP, without logins."""

    def __init__(self):
        self.mails = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                self._say("220 ready")
                while line := self.rfile.readline().decode().strip():
                    command = line[:4].upper()
                    if command == "DATA":
                        self._say("354 go on")
                        outer.mails.append(self._mail())
                    self._say("221 bye" if command == "QUIT" else "250 ok")
                    if command == "QUIT":
                        return

            def _say(self, line):
                self.wfile.write(f"{line}\r\n".encode())

            def _mail(self):
                lines = []
                while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(line)
                return "\n".join(lines)

        self._server = _serving(socketserver.ThreadingTCPServer, Handler)
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def _serving(kind, handler):
    """A server on a free port of loopback, with a thread of its own."""
    server = kind(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
