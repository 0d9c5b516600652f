use super::*;
use crate::keys::tests::text_schema;
use uuid::Uuid;

fn reader() -> RowReader {
    RowReader {
        table: TableIdentity {
            keyspace: "Ks".into(),
            table: "t".into(),
            id: Uuid::nil(),
        },
        keys: text_schema(2, 1),
        columns: vec![VectorColumn {
            name: "a\"b".into(),
            dimensions: 2,
        }],
    }
}

#[test]
fn statements_quote_every_name() {
    assert_eq!(
        reader().select(&format!("{0} >= ? AND {0} <= ?", reader().token())),
        r#"SELECT "p0", "p1", "c0", "a""b", WRITETIME("a""b"), TTL("a""b") FROM "Ks"."t" WHERE token("p0", "p1") >= ? AND token("p0", "p1") <= ?"#
    );
    assert_eq!(RowReader::equals(["x", "Y"]), r#""x" = ? AND "Y" = ?"#);
}

#[test]
fn vectors_are_checked() {
    let column = &reader().columns[0];
    let bytes =
        |elements: &[f32]| -> Vec<u8> { elements.iter().flat_map(|e| e.to_be_bytes()).collect() };
    assert_eq!(
        decode_vector(column, &bytes(&[1.0, -2.0])),
        Ok(vec![1.0, -2.0])
    );
    assert_eq!(
        decode_vector(column, &bytes(&[1.0])),
        Err(Unusable::Length {
            expected_bytes: 8,
            actual_bytes: 4
        })
    );
    assert_eq!(
        decode_vector(column, &bytes(&[1.0, f32::NAN])),
        Err(Unusable::NotFinite { position: 1 })
    );
}

#[test]
fn expiries_never_overflow() {
    assert_eq!(expiry_s(100, 20), 121);
    assert_eq!(expiry_s(100, -5), 101);
    assert_eq!(expiry_s(u32::MAX - 1, i32::MAX), u32::MAX);
}

#[test]
fn lists_are_framed_as_collections() {
    let mut out = Vec::new();
    SerialisedList(vec![b"ab", b""])
        .serialize(
            &ColumnType::Native(scylla::frame::response::result::NativeType::Int),
            CellWriter::new(&mut out),
        )
        .unwrap();
    let mut expected = vec![0, 0, 0, 14, 0, 0, 0, 2, 0, 0, 0, 2];
    expected.extend(b"ab");
    expected.extend([0, 0, 0, 0]);
    assert_eq!(out, expected);
}
