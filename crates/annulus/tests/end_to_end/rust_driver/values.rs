//! Values of every type that go in and come back, bound and as a literal.

use std::net::IpAddr;

use scylla::client::session::Session;
use scylla::value::{
    CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, CqlVarint, Row,
};
use uuid::Uuid;

use super::target::{Target, execute, select};

/// A type, a value of it, and the value as a literal.
pub type Case = (&'static str, CqlValue, &'static str);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_every_type_come_back() {
    let scenario = async |session: Session| {
        let cases: Vec<Case> = natives().into_iter().chain(collections()).collect();
        come_back(&session, &cases).await;
    };
    Target::start().in_keyspace("rust_values", scenario).await;
}

/// Checks that values come back from a table with a column for each.
pub async fn come_back(session: &Session, cases: &[Case]) {
    let names: Vec<String> = (0..cases.len()).map(|at| format!("c{at}")).collect();
    let columns: String = names
        .iter()
        .zip(cases)
        .map(|(name, (cql_type, ..))| format!(", {name} {cql_type}"))
        .collect();
    let create = format!("CREATE TABLE everything (k int PRIMARY KEY{columns})");
    execute(session, &create).await;
    let names = names.join(", ");
    let insert = |k: i32, values: &[&str]| {
        let values = values.join(", ");
        format!("INSERT INTO everything (k, {names}) VALUES ({k}, {values})")
    };

    let bound = insert(1, &vec!["?"; cases.len()]);
    let bound = session.prepare(bound).await.expect("it is prepared");
    let values: Vec<&CqlValue> = cases.iter().map(|(_, value, _)| value).collect();
    let written = session.execute_unpaged(&bound, values).await;
    written.expect("bound values are written");
    let literals: Vec<&str> = cases.iter().map(|(.., literal)| *literal).collect();
    execute(session, &insert(2, &literals)).await;

    for k in [1, 2] {
        let text = format!("SELECT {names} FROM everything WHERE k = {k}");
        let rows: Vec<Row> = select(session, &text).await;
        let [row] = &rows[..] else {
            panic!("{} rows", rows.len());
        };
        for ((cql_type, value, literal), read) in cases.iter().zip(&row.columns) {
            assert_eq!(read.as_ref(), Some(value), "row {k}: {cql_type} {literal}");
        }
    }
}

fn natives() -> Vec<Case> {
    use CqlValue::{
        Ascii, BigInt, Blob, Boolean, Date, Decimal, Double, Duration, Float, Inet, Int, SmallInt,
        Text, Time, Timestamp, Timeuuid, TinyInt, Varint,
    };
    let uuid = Uuid::from_u128(5);
    let timeuuid = Uuid::from_u128(0x8e14_e760_7fa8_11eb_bc66_0000_0000_0001);
    let inet: IpAddr = "2001:db8::1".parse().expect("an address");
    let duration = CqlDuration {
        months: 14,
        days: 3,
        nanoseconds: 5_000_000_000,
    };
    // The decimal is -1.50, as -150 with two digits after the point. The varint is 2^64.
    let decimal = CqlDecimal::from_signed_be_bytes_and_exponent(vec![0xff, 0x6a], 2);
    let varint = CqlVarint::from_signed_bytes_be(vec![1, 0, 0, 0, 0, 0, 0, 0, 0]);
    vec![
        ("ascii", Ascii("plain".to_owned()), "'plain'"),
        ("bigint", BigInt(i64::MIN), "-9223372036854775808"),
        ("blob", Blob(vec![0, 0xff]), "0x00ff"),
        ("boolean", Boolean(true), "true"),
        // A date counts days from 2^31 days before 1970.
        ("date", Date(CqlDate((1 << 31) - 1)), "'1969-12-31'"),
        ("decimal", Decimal(decimal), "-1.50"),
        ("double", Double(1e300), "1e300"),
        ("duration", Duration(duration), "1y2mo3d5s"),
        ("float", Float(0.5), "0.5"),
        ("inet", Inet(inet), "'2001:db8::1'"),
        ("int", Int(i32::MIN), "-2147483648"),
        ("smallint", SmallInt(-7), "-7"),
        ("text", Text("naïve 鳥".to_owned()), "'naïve 鳥'"),
        (
            "time",
            Time(CqlTime(47_655_123_456_789)),
            "'13:14:15.123456789'",
        ),
        (
            "timestamp",
            Timestamp(CqlTimestamp(1_767_323_045_678)),
            "'2026-01-02T03:04:05.678Z'",
        ),
        (
            "timeuuid",
            Timeuuid(CqlTimeuuid::from_bytes(timeuuid.into_bytes())),
            "8e14e760-7fa8-11eb-bc66-000000000001",
        ),
        ("tinyint", TinyInt(-128), "-128"),
        (
            "uuid",
            CqlValue::Uuid(uuid),
            "00000000-0000-0000-0000-000000000005",
        ),
        ("varint", Varint(varint), "18446744073709551616"),
    ]
}

fn collections() -> Vec<Case> {
    use CqlValue::{Float, Int, List, Map, Set, Vector};
    let ints = |numbers: &[i32]| numbers.iter().copied().map(Int).collect();
    let texts = |texts: &[&str]| texts.iter().map(|text| text_value(text)).collect();
    let floats = [0.5, -1.0, 0.0, 2.0].map(Float);
    vec![
        ("list<int>", List(ints(&[3, 1, 3])), "[3, 1, 3]"),
        ("set<text>", Set(texts(&["a", "b"])), "{'b', 'a', 'b'}"),
        (
            "map<int, text>",
            Map(vec![(Int(1), text_value("x")), (Int(2), text_value("y"))]),
            "{2: 'y', 1: 'x'}",
        ),
        ("frozen<list<int>>", List(ints(&[3, 1])), "[3, 1]"),
        (
            "frozen<map<text, frozen<list<int>>>>",
            Map(vec![(text_value("k"), List(ints(&[1])))]),
            "{'k': [1]}",
        ),
        (
            "vector<float, 4>",
            Vector(floats.to_vec()),
            "[0.5, -1, 0, 2]",
        ),
        ("vector<int, 2>", Vector(ints(&[7, -7])), "[7, -7]"),
    ]
}

pub fn text_value(text: &str) -> CqlValue {
    CqlValue::Text(text.to_owned())
}
