//! Tests that clustering values that compare equal name one row, which shows them as first written.
//! Partition keys are the same only byte for byte.

use bytes::Bytes;
use storage::read::PartitionSelection;
use value::{CqlType, Value};

use crate::support::*;

fn decimal(text: &str) -> Bytes {
    Value::Decimal(text.parse().expect("a number")).serialize()
}

#[test]
fn decimals_of_different_scale() {
    let directory = tempfile::tempdir().unwrap();
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Decimal)
        .clustering("c", CqlType::Decimal, true)
        .regular("v", CqlType::Text)
        .build();
    {
        let storage = open(directory.path());
        create(&storage, &table, true);
        let rows = [
            ("1.00", "first"),
            ("1.0", "second"),
            ("-7", "other"),
            ("1e3", "large"),
        ];
        for (timestamp, (c, value)) in (1..).zip(rows) {
            let cells = vec![set(V, text(value))];
            write(
                &storage,
                &table,
                vec![decimal("5")],
                vec![insert(vec![decimal(c)], cells, timestamp)],
            );
        }
        write(
            &storage,
            &table,
            vec![decimal("5.0")],
            vec![insert(vec![decimal("1")], vec![], 1)],
        );
    }
    let storage = open(directory.path());
    let shown: Vec<_> = read_partition(&storage, &table, vec![decimal("5")])
        .iter()
        .map(|row| {
            (
                row.clustering.clone().unwrap()[0].clone(),
                simple_value(row, V).unwrap(),
            )
        })
        .collect();
    let expected = [("1e3", "large"), ("1.00", "second"), ("-7", "other")];
    assert_eq!(shown, expected.map(|(c, value)| (decimal(c), text(value))));

    let mut one = request(&table, PartitionSelection::One(vec![decimal("5")]));
    one.slices = vec![point(vec![decimal("1")])];
    assert_eq!(read(&storage, one).len(), 1);
    assert_eq!(
        read_partition(&storage, &table, vec![decimal("5.0")]).len(),
        1
    );
    assert_eq!(
        read_partition(&storage, &table, vec![decimal("5.00")]).len(),
        0
    );
}
