"""Proofs that a difference has the cause that its rule tells, by other questions to both servers.

A rule in meant.py sees one statement. Where much could hide behind its reason, the long run takes
away the cause, and then both servers have to answer alike."""

import re

import cells
import compare
from meant import rows
from sides import is_refused, statement_of, without_pages

LIMITS = re.compile(r" PER PARTITION LIMIT (\d+)| LIMIT (\d+)")


def proves(witness, run, step, steps_before, ours):
    """Whether the witness of a rule agrees with our answer to the step."""
    return {"limits": _without_limits, "indexes": _without_indexes}[witness](run, step, steps_before, ours)


def _are_alike(step, theirs, ours):
    if compare.what_counts(theirs) == compare.what_counts(ours):
        return True
    return bool(cells.reasons(statement_of(step), theirs, ours))


def _without_limits(run, step, before, ours):
    """Both agree on all that is found, and ours is what the limits leave of it."""
    plain = without_pages(step) or step
    whole = LIMITS.sub("", plain)
    theirs, all_ours = run.ask(whole)
    if is_refused(theirs):
        theirs, all_ours = _ask_without_indexes(run, whole, before)
    if not _are_alike(plain, theirs, all_ours) or is_refused(all_ours):
        return False
    if rows(ours) == rows(all_ours):
        return True
    per_partition, limit = (_limit(plain, group) for group in (1, 2))
    columns = ours.split("columns of ")[-1].split("\n")[0].partition(": ")[2].split(" | ")
    partition = [at for at, name in enumerate(columns) if re.match(r"p\d ", name)]
    kept, counts = [], {}
    for row in rows(all_ours):
        key = tuple(row.split(" | ")[at] for at in partition)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= per_partition:
            kept.append(row)
    return rows(ours) == kept[:limit]


def _limit(statement, group):
    found = [int(match[group]) for match in LIMITS.finditer(statement) if match[group]]
    return found[0] if found else 1_000_000


def _without_indexes(run, step, before, ours):
    """Both agree after all indexes are dropped, on what Annulus answers with them."""
    plain = without_pages(step) or step
    theirs, our_plain = _ask_without_indexes(run, plain, before)
    return _are_alike(plain, theirs, our_plain) and rows(our_plain) == rows(ours)


def _ask_without_indexes(run, step, before):
    # With the indexes up to here: a column that has one can't be dropped.
    elsewhere = run.elsewhere()
    for each in before:
        if "SELECT " not in each:
            elsewhere.ask(each)
    for name in sorted(elsewhere.cassandra.indexes()):
        elsewhere.ask(f"DROP INDEX IF EXISTS {name}")
    return elsewhere.ask(step if "ALLOW FILTERING" in step else f"{step} ALLOW FILTERING")
