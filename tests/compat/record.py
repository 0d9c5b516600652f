"""Writes the golden files anew from a server's answers: record.py HOST:PORT [AREA ...]"""

import sys

import replay
import script
from client import Client


def main():
    host, port = sys.argv[1].rsplit(":", 1)
    with Client(host, int(port)) as client:
        for area in sys.argv[2:] or script.areas():
            script.write_golden(area, replay.replay(client, area))
            print(area)


if __name__ == "__main__":
    main()
