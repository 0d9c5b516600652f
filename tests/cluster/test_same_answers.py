"""What a gateway answers is byte for byte what the node behind it answers.

The statements are those of tests/compat. They are recorded answers there; here both answers are of one run.
"""

import os

import pytest

import replay
import script
from client import Client, Handler

# A few areas for a short run; SAME_ANSWERS=all for every one.
SHORT = ["prepared", "limits", "types"]
AREAS = script.areas() if os.environ.get("SAME_ANSWERS") == "all" else SHORT


class Recorder:
    """A handler of the driver's that keeps each response as it came: flags, opcode and body."""

    def __init__(self):
        self.frames = []

    def decode_message(self, version, types, stream, flags, opcode, body, *rest):
        message = Handler.decode_message(version, types, stream, flags, opcode, body, *rest)
        # A paging state holds a position in files, which differ from one run to the next.
        state = getattr(message, "paging_state", None) or b""
        self.frames.append((flags, opcode, body.replace(state, b"") if state else body))
        return message


def answers(address, area):
    recorder = Recorder()
    with Client(*address, handler=recorder) as client:
        # What the run before left behind is no part of this one.
        for [name] in client.query("SELECT keyspace_name FROM system_schema.keyspaces").parsed_rows:
            if name.startswith(b"compat_"):
                client.query(f"DROP KEYSPACE {name.decode()}")
        recorder.frames.clear()
        steps = replay.replay(client, area)
    return steps, recorder.frames


@pytest.mark.parametrize("area", AREAS)
def test_answers_are_byte_for_byte_those_of_the_node(gateway, area):
    steps, direct = answers(gateway.node, area)
    steps_through, through = answers(gateway.address, area)

    assert steps_through == steps
    assert len(direct) > len(steps) / 2
    different = [pair for pair in zip(direct, through, strict=True) if pair[0] != pair[1]]
    assert not different, different[:3]
