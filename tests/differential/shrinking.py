"""Makes the steps before a difference few."""

REPLAYS_MAX = 60


def shrunk(run, definitions, steps, last):
    """(the fewest steps found after which `last` still differs, a note)."""
    # Reads change nothing, as a rule.
    writes = [step for step in steps if "SELECT " not in step]
    if run.differs(definitions + writes, last):
        steps = writes
    elif not run.differs(definitions + steps, last):
        return steps, ", running the same steps again does not show it: these are all of them"
    replays, part = 0, max(len(steps) // 2, 1)
    while replays < REPLAYS_MAX:
        at, is_shorter = 0, False
        while at < len(steps) and replays < REPLAYS_MAX:
            rest = steps[:at] + steps[at + part :]
            replays += 1
            if run.differs(definitions + rest, last):
                steps, is_shorter = rest, True
            else:
                at += part
        if part == 1 and not is_shorter:
            break
        part = max(part // 2, 1)
    return steps, ", made small"
