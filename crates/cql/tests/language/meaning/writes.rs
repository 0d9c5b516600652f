//! Trees of writes.

use super::*;

#[test]
fn assignments_tell_adding_from_prepending() {
    let c = || "c".to_owned();
    let cases = [
        (
            "c = 1",
            Assignment::Set {
                column: c(),
                value: integer("1"),
            },
        ),
        (
            "c = c + 1",
            Assignment::Add {
                column: c(),
                value: integer("1"),
            },
        ),
        (
            "c += 1",
            Assignment::Add {
                column: c(),
                value: integer("1"),
            },
        ),
        (
            "c = c -1",
            Assignment::Subtract {
                column: c(),
                value: integer("1"),
            },
        ),
        (
            "c -= -1",
            Assignment::Subtract {
                column: c(),
                value: integer("-1"),
            },
        ),
        (
            "c = [1] + c",
            Assignment::Prepend {
                column: c(),
                value: Term::List(vec![integer("1")]),
            },
        ),
        (
            "c[1] = null",
            Assignment::SetElement {
                column: c(),
                key: integer("1"),
                value: Term::Null,
            },
        ),
    ];
    for (text, assignment) in cases {
        assert_eq!(assignments(text), [assignment], "{text}");
    }
}

#[test]
fn writes_carry_their_attributes_and_conditions() {
    let Statement::Insert(insert) =
        parse("INSERT INTO t JSON ? DEFAULT UNSET IF NOT EXISTS USING TTL 5 AND TIMESTAMP ?")
    else {
        panic!("no insert");
    };
    assert_eq!(
        insert.values,
        InsertValues::Json {
            json: marker(0),
            default_unset: true
        }
    );
    assert_eq!(insert.condition, Some(IfClause::NotExists));
    assert_eq!(insert.using.ttl, Some(integer("5")));
    assert_eq!(insert.using.timestamp, Some(marker(1)));

    let Statement::Delete(delete) =
        parse("DELETE a, m['k'] FROM t USING TIMESTAMP 7 WHERE k = 1 IF a = 2")
    else {
        panic!("no delete");
    };
    assert_eq!(
        delete.targets,
        [
            DeleteTarget::Column("a".to_owned()),
            DeleteTarget::Element {
                column: "m".to_owned(),
                key: string("k")
            }
        ]
    );
    assert_eq!(delete.using.timestamp, Some(integer("7")));
    assert!(matches!(delete.condition, Some(IfClause::Relations(r)) if r.len() == 1));
}

#[test]
fn batches_need_no_semicolons() {
    let Statement::Batch(batch) = parse(
        "BEGIN COUNTER BATCH USING TIMESTAMP 3 UPDATE t SET c += 1 WHERE k = 1 \
         DELETE FROM t WHERE k = 2; APPLY BATCH;",
    ) else {
        panic!("no batch");
    };
    assert_eq!(batch.kind, TextBatchKind::Counter);
    assert_eq!(batch.using.timestamp, Some(integer("3")));
    assert!(matches!(
        batch.statements[..],
        [BatchEntry::Update(_), BatchEntry::Delete(_)]
    ));
}
