"""Random mistakes: statements that are refused, most of them, and by which error."""

import shapes
from changes import equal
from queries import _relation
from terms import Terms


def random_mistake(rng, table):
    """The step of a statement with a mistake in it."""
    step = rng.choice(MAKERS)(rng, table)
    if table.is_counter and "DELETE" in step:
        # A counter after its deletion begins at 0 in Annulus, and anywhere in Cassandra.
        return random_mistake(rng, table)
    return step


def _terms(rng):
    return Terms(rng, 0)


def _any_value(rng, table):
    """A value of any type."""
    return rng.choice([rng.choice(table.columns).pick(rng), shapes.random_type(rng, table.users).random(rng)])


def _wrong_type(rng, table):
    """A value of another type for a column, which may fit after all."""
    terms = _terms(rng)
    column = rng.choice(table.values)
    key = table.partition if column.part == "static" else table.key
    where = " AND ".join(equal(rng, key, terms))
    return f"UPDATE t USING TIMESTAMP 5 SET {column.name} = {_any_value(rng, table).literal} WHERE {where}"


def _wrong_key(rng, table):
    column = rng.choice(table.key)
    where = [f"{column.name} = {_any_value(rng, table).literal}"] + equal(
        rng, [other for other in table.key if other is not column], _terms(rng)
    )
    return f"SELECT * FROM t WHERE {' AND '.join(where)}"


def _wrong_relation(rng, table):
    column = rng.choice(table.columns)
    sign = rng.choice(["=", "<", ">=", "CONTAINS", "CONTAINS KEY", "!=", "IN"])
    value = _any_value(rng, table).literal
    value = f"({value})" if sign == "IN" else value
    return f"SELECT * FROM t WHERE {column.name} {sign} {value} ALLOW FILTERING"


def _missing_key(rng, table):
    columns = [column for column in table.key if rng.random() < 0.6] + table.regular[:1]
    names = ", ".join(column.name for column in columns)
    return f"INSERT INTO t ({names}) VALUES ({', '.join(column.pick(rng).literal for column in columns)})"


def _partial_where(rng, table):
    columns = [column for column in table.columns if rng.random() < 0.5]
    where = " AND ".join(equal(rng, columns, _terms(rng)) or ["p0 = p0"])
    if rng.random() < 0.5 or not table.values:
        return f"DELETE FROM t USING TIMESTAMP 3 WHERE {where}"
    column = rng.choice(table.values)
    return f"UPDATE t USING TIMESTAMP 3 SET {column.name} = {column.pick(rng).literal} WHERE {where}"


def _unknown_name(rng, table):
    key = " AND ".join(equal(rng, table.key, _terms(rng)))
    name = rng.choice(["nope", "V0", '"V0"', "select", '""', *table.dropped])
    return rng.choice(
        [
            f"SELECT {name} FROM t",
            f"SELECT * FROM t WHERE {name} = 1",
            f"SELECT * FROM {name}",
            f"SELECT * FROM nope.{name}",
            f"SELECT {name}(p0) FROM t",
            f"SELECT p0.{name} FROM t",
            f"UPDATE t SET {name} = 1 WHERE {key}",
            f"UPDATE t SET v0.{name} = 1 WHERE {key}",
            f"DELETE {name} FROM t WHERE {key}",
            f"INSERT INTO t (p0, {name}) VALUES (1, 2)",
            f"INSERT INTO t JSON '{{\"{name.strip(chr(34))}\": 1}}'",
            f"SELECT * FROM t ORDER BY {name}",
            f"SELECT p0 FROM t GROUP BY {name}",
            f"SELECT cast(p0 AS {name}) FROM t",
            f"ALTER TABLE t DROP {name}",
            f"DROP INDEX {name}",
            f"CREATE INDEX ON t ({name})",
        ]
    )


def _bad_clause(rng, table):
    key = " AND ".join(equal(rng, table.key, _terms(rng)))
    partition = " AND ".join(equal(rng, table.partition, _terms(rng)))
    column = rng.choice(table.columns)
    literal = column.pick(rng).literal
    last = table.key[-1]
    return rng.choice(
        [
            "SELECT * FROM t LIMIT 0",
            "SELECT * FROM t LIMIT -1",
            "SELECT * FROM t PER PARTITION LIMIT 0",
            "SELECT * FROM t LIMIT 2 PER PARTITION LIMIT 2",
            f"SELECT * FROM t WHERE {key} AND {key}",
            f"SELECT * FROM t WHERE {partition} AND {last.name} > {last.pick(rng).literal} AND {last.name} > {last.pick(rng).literal}",
            f"SELECT * FROM t WHERE {last.name} = null",
            f"SELECT * FROM t WHERE {partition} ORDER BY {column.name}",
            f"SELECT * FROM t WHERE {partition} ORDER BY {column.name} DESC",
            f"SELECT * FROM t ORDER BY {last.name} DESC",
            f"SELECT DISTINCT {column.name} FROM t",
            f"SELECT DISTINCT {', '.join(c.name for c in table.key)} FROM t",
            f"SELECT {column.name} FROM t GROUP BY {column.name}",
            f"SELECT count({column.name}), * FROM t",
            f"SELECT sum({column.name}) FROM t WHERE {partition}",
            f"SELECT avg({column.name}) FROM t WHERE {partition}",
            f"SELECT min({column.name}), max({column.name}) FROM t WHERE {partition}",
            f"SELECT min(max({column.name})) FROM t WHERE {partition}",
            f"SELECT writetime({column.name}) FROM t WHERE {partition}",
            f"SELECT {column.name} + {rng.choice(table.columns).name} FROM t",
            f"SELECT {column.name} / 0 FROM t WHERE {partition}",
            f"SELECT {column.name}[{literal}] FROM t",
            f"SELECT {column.name}.f0 FROM t",
            f"SELECT * FROM t WHERE token({column.name}) > 0",
            f"SELECT * FROM t WHERE {column.name} LIKE 'a%'",
            f"SELECT * FROM t WHERE {column.name} IS NOT NULL",
            f"SELECT * FROM t WHERE {column.name} != {literal} ALLOW FILTERING",
            f"SELECT * FROM t WHERE {column.name} IN () ALLOW FILTERING",
            f"SELECT * FROM t WHERE {_relation(rng, column, _terms(rng))}",
            f"SELECT * FROM t WHERE ({column.name}) = ({literal})",
            f"SELECT * FROM t WHERE ({column.name}, {last.name}) > ({literal}, {last.pick(rng).literal})",
            f"UPDATE t SET {column.name} = {literal} WHERE {key}",
            f"UPDATE t SET {column.name} = {column.name} + {literal} WHERE {key}",
            f"UPDATE t SET {column.name} = {literal} + {column.name} WHERE {key}",
            f"UPDATE t SET {column.name}[{literal}] = {literal} WHERE {key}",
            f"UPDATE t SET {column.name} = {literal}, {column.name} = {literal} WHERE {key}",
            f"UPDATE t USING TIMESTAMP 1 SET {column.name} = {literal} WHERE {key} IF EXISTS",
            f"UPDATE t SET {column.name} = {literal} WHERE {partition} IF EXISTS",
            f"UPDATE t SET {column.name} = {literal} WHERE {key} IF {rng.choice(table.columns).name} = {literal}",
            f"UPDATE t USING TTL -1 SET {column.name} = {literal} WHERE {key}",
            f"UPDATE t USING TTL 700000000 SET {column.name} = {literal} WHERE {key}",
            f"DELETE {column.name} FROM t WHERE {partition}",
            f"DELETE {column.name}[{literal}] FROM t WHERE {key}",
            f"DELETE FROM t WHERE {partition} AND {last.name} IN ({last.pick(rng).literal}) IF EXISTS",
            f"DELETE FROM t USING TTL 1 WHERE {partition}",
            f"BEGIN COUNTER BATCH DELETE FROM t WHERE {key}; APPLY BATCH",
            f"BEGIN BATCH USING TIMESTAMP 1 DELETE FROM t WHERE {key} IF EXISTS; APPLY BATCH",
            f"ALTER TABLE t DROP {column.name if column.part != 'regular' and column.part != 'static' else 'p0'}",
            f"ALTER TABLE t ADD {column.name} int",
            f"ALTER TABLE t ALTER {column.name} TYPE text",
            f"CREATE INDEX ON t (KEYS({column.name}), v0)",
            "CREATE TABLE t (k int PRIMARY KEY)",
            "CREATE TYPE u0 (f0 int, f0 int)",
            "DROP TYPE u0" if any("u0" in c.type.name for c in table.columns) else "DROP TYPE nope",
            "SELECT FROM t",
            "SELEC * FROM t",
            "INSERT INTO t VALUES (1)",
            "SELECT * FROM t WHERE p0 = 'unclosed",
            "UPDATE t SET WHERE p0 = 1",
            f"INSERT INTO t ({column.name}, {column.name}) VALUES ({literal}, {literal})",
            f"INSERT INTO t ({', '.join(c.name for c in table.key)}) VALUES ({literal})",
        ]
    )


def _bad_variable(rng, table):
    """A variable of bytes that its type may not have, or too many or few."""
    raw = rng.choice(["", "00", "0000", "00000001", "ff" * 8, "00" * 16, "0000000100000001ff", "80000000"])
    value = f"raw('{raw}')"
    if rng.random() < 0.25:
        values = rng.choice([[], [value, value, value]])
        return f"@bind [{', '.join(values)}]\nSELECT * FROM t WHERE p0 = ? AND {table.key[-1].name} = ?"
    if rng.random() < 0.3:
        value = rng.choice(["UNSET", "None"])
    column = rng.choice(table.columns)
    if column.part in ("partition", "clustering") or rng.random() < 0.3:
        others = [other for other in table.key if other is not column]
        where = [f"{column.name} = ?"] + equal(rng, others, _terms(rng))
        return f"@bind [{value}]\nSELECT * FROM t WHERE {' AND '.join(where)} ALLOW FILTERING"
    key = table.partition if column.part == "static" else table.key
    where = " AND ".join(equal(rng, key, _terms(rng)))
    return f"@bind [{value}]\nUPDATE t USING TIMESTAMP 7 SET {column.name} = ? WHERE {where}"


MAKERS = [_wrong_type] * 2 + [_wrong_key] + [_wrong_relation] * 2 + [_missing_key, _partial_where, _unknown_name]
MAKERS += [_bad_clause] * 3 + [_bad_variable] * 2
