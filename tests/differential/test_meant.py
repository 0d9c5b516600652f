"""Tests that the rules of what is meant to differ let pass what they tell, and nothing near it."""

import pytest
from meant import reason_for

HEAD = "columns of differential.t: "
REFUSED = "error 2200 InvalidRequestException: "
LEGACY = "custom 'org.apache.cassandra.db.marshal.LegacyTimeUUIDType'"
MASK = "b'\\x13\\x81@\\x00\\x1d\\xd2\\x11\\xb2\\x80\\x80\\x80\\x80\\x80\\x80\\x80\\x80'"
TWO_CELLS = "SELECT mask_default(v0), toJson(v1) FROM t"


def two_cells(name, mask, text):
    return f"{HEAD}system.mask_default(v0) {name} | system.tojson(v1) varchar\n{mask} | '\"{text}\"'"


OURS = two_cells("timeuuid", "13814000-1dd2-11b2-8080-808080808080", "0s")


@pytest.mark.parametrize(
    ("step", "theirs", "ours"),
    [
        (TWO_CELLS, two_cells(LEGACY, MASK, ""), OURS),
        (
            "SELECT cast(v0 AS varint) FROM t",
            f"{HEAD}cast(v0 as varint) varint\n-8446744073709551616",
            f"{HEAD}cast(v0 as varint) varint\n10000000000000000000",
        ),
        (
            "UPDATE t SET v0 = 1 WHERE p0 = 1 AND c0 = 1 IF v0 = 2",
            f"{HEAD}[applied] boolean | s0 int\nfalse | null",
            f"{HEAD}[applied] boolean | s0 int\nfalse | 1",
        ),
        ('SELECT "" FROM t', f"{REFUSED}Undefined column name", "error 2000 SyntaxException: line 1:7 a name can't be empty"),
    ],
)
def test_what_a_rule_tells_is_meant(step, theirs, ours):
    reason, witness = reason_for(step, theirs, ours, [])
    assert reason and witness is None


@pytest.mark.parametrize(
    ("step", "theirs", "ours"),
    [
        # Another value of the mask, and another text besides.
        (TWO_CELLS, two_cells(LEGACY, MASK, ""), OURS.replace("13814000", "13814001")),
        (TWO_CELLS, two_cells(LEGACY, MASK, "1h"), OURS),
        # Not the last 64 bits.
        (
            "SELECT cast(v0 AS varint) FROM t",
            f"{HEAD}cast(v0 as varint) varint\n1",
            f"{HEAD}cast(v0 as varint) varint\n10000000000000000000",
        ),
        # A regular column.
        (
            "UPDATE t SET v0 = 1 WHERE p0 = 1 AND c0 = 1 IF v0 = 2",
            f"{HEAD}[applied] boolean | v0 int\nfalse | null",
            f"{HEAD}[applied] boolean | v0 int\nfalse | 1",
        ),
        # A statement that Annulus can't read, and one that it refuses where Cassandra fails.
        ("SELECT v0 FROM t", f"{REFUSED}no", "error 2000 SyntaxException: line 1:7 expected FROM"),
        ("SELECT v0 FROM t", "error 0000 ServerError: java.lang.NullPointerException", f"{REFUSED}table t does not exist"),
        # A row that is there in one database only.
        (
            "UPDATE t SET v0 = 1 WHERE p0 = 1 AND c0 = 1 IF v0 = 2",
            f"{HEAD}[applied] boolean | v0 int\nfalse | null",
            f"{HEAD}[applied] boolean\nfalse",
        ),
    ],
)
def test_what_is_near_a_rule_is_not_meant(step, theirs, ours):
    assert reason_for(step, theirs, ours, []) == (None, None)


def test_what_an_index_may_hide_needs_a_witness():
    reason, witness = reason_for(
        "SELECT p0 FROM t WHERE v0 = 1", f"{HEAD}p0 int", f"{HEAD}p0 int\n1", ["CREATE INDEX i0 ON t (v0)"]
    )
    assert reason and witness == "indexes"
