//! Values of every type there and back, at their edges.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use scylla::client::session::Session;
use scylla::value::{
    CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, CqlVarint,
};
use scylla::{DeserializeValue, SerializeValue};
use sections::equal;
use uuid::Uuid;

use crate::session::{rows, run, select, with};

/// A type with values of it.
type Typed = (&'static str, Vec<CqlValue>);

pub async fn types(session: &Session, keyspace: &str) {
    run(session, "CREATE TYPE inner_t (a int, b list<text>)").await;
    run(session, "CREATE TYPE flat_t (a int, c text)").await;
    run(
        session,
        "CREATE TYPE outer_t (i frozen<inner_t>, m map<int, frozen<inner_t>>)",
    )
    .await;
    let parts = [
        numbers(),
        moments(),
        other_natives(),
        collections(),
        composed(keyspace),
    ];
    let cases: Vec<Typed> = parts.into_iter().flatten().collect();
    let columns: String = cases
        .iter()
        .enumerate()
        .map(|(at, (cql, _))| format!(", c{at} {cql}"))
        .collect();
    run(
        session,
        &format!("CREATE TABLE types (k int PRIMARY KEY{columns})"),
    )
    .await;
    for (at, (cql, values)) in cases.iter().enumerate() {
        let insert = format!("INSERT INTO types (k, c{at}) VALUES (1, ?)");
        let insert = session.prepare(insert).await.expect(cql);
        let select = format!("SELECT c{at} FROM types WHERE k = 1");
        let select = session.prepare(select).await.expect(cql);
        for value in values.iter().map(Some).chain([None]) {
            let written = session.execute_unpaged(&insert, (value,)).await;
            written.unwrap_or_else(|error| panic!("{cql} {value:?}: {error}"));
            let read = session.execute_unpaged(&select, ()).await.expect(cql);
            let read: Vec<(Option<CqlValue>,)> = rows(read);
            equal(read[0].0.as_ref(), value, cql);
        }
    }
    in_types_of_rust(session).await;
}

/// The two's complement of a number with thousands of bits.
fn huge(first: u8) -> Vec<u8> {
    [vec![first], vec![0xa5; 400]].concat()
}

fn numbers() -> Vec<Typed> {
    use CqlValue::{BigInt, Decimal, Double, Float, Int, SmallInt, TinyInt, Varint};
    let decimal =
        |bytes, scale| Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(bytes, scale));
    let decimals = vec![
        decimal(vec![0xff, 0x6a], 2),
        decimal(huge(0x7f), i32::MAX),
        decimal(huge(0x80), i32::MIN),
        decimal(vec![0], 0),
    ];
    let doubles = [
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        -0.0,
        f64::MAX,
        f64::from_bits(1),
    ];
    let floats = [f32::NAN, f32::INFINITY, -0.0, f32::MAX, f32::from_bits(1)];
    let varints = [vec![0], huge(0x7f), huge(0x80), vec![0x80], vec![0, 0x80]];
    let varint = |bytes| Varint(CqlVarint::from_signed_bytes_be(bytes));
    vec![
        ("bigint", [i64::MIN, 0, i64::MAX].map(BigInt).to_vec()),
        ("decimal", decimals),
        ("double", doubles.map(Double).to_vec()),
        ("float", floats.map(Float).to_vec()),
        ("int", [i32::MIN, 0, i32::MAX].map(Int).to_vec()),
        ("smallint", [i16::MIN, i16::MAX].map(SmallInt).to_vec()),
        ("tinyint", [i8::MIN, i8::MAX].map(TinyInt).to_vec()),
        ("varint", varints.map(varint).to_vec()),
    ]
}

fn moments() -> Vec<Typed> {
    let duration = |months, days, nanoseconds| {
        CqlValue::Duration(CqlDuration {
            months,
            days,
            nanoseconds,
        })
    };
    let durations = vec![
        duration(0, 0, 0),
        duration(14, 3, 5),
        duration(i32::MAX, i32::MAX, i64::MAX),
        duration(i32::MIN, i32::MIN, i64::MIN),
    ];
    let dates = [0, 1 << 31, u32::MAX].map(|day| CqlValue::Date(CqlDate(day)));
    let times = [0, 86_399_999_999_999].map(|time| CqlValue::Time(CqlTime(time)));
    let timestamps = [i64::MIN, 0, i64::MAX];
    let timestamps = timestamps.map(|time| CqlValue::Timestamp(CqlTimestamp(time)));
    let timeuuids = [0x8e14_e760_7fa8_11eb_bc66_0000_0000_0001, 0x1000 << 64];
    let timeuuids = timeuuids.map(|number| CqlValue::Timeuuid(CqlTimeuuid::from_u128(number)));
    vec![
        ("date", dates.to_vec()),
        ("duration", durations),
        ("time", times.to_vec()),
        ("timestamp", timestamps.to_vec()),
        ("timeuuid", timeuuids.to_vec()),
    ]
}

fn other_natives() -> Vec<Typed> {
    use CqlValue::{Ascii, Blob, Boolean, Inet, Text};
    let asciis = ["", "plain", "\0\x7f"].map(|text| Ascii(text.to_owned()));
    let blobs = [vec![], vec![0, 255], vec![7; 100_000]].map(Blob);
    let long = "x".repeat(70_000);
    let texts = ["", "\0 é 😀 'quoted'", &long].map(|text| Text(text.to_owned()));
    let addresses = ["0.0.0.0", "255.255.255.255", "::", "2001:db8::1"];
    let addresses = addresses.map(|text| Inet(text.parse::<IpAddr>().expect("an address")));
    let uuids = [0, u128::MAX].map(|number| CqlValue::Uuid(Uuid::from_u128(number)));
    vec![
        ("ascii", asciis.to_vec()),
        ("blob", blobs.to_vec()),
        ("boolean", [true, false].map(Boolean).to_vec()),
        ("inet", addresses.to_vec()),
        ("text", texts.to_vec()),
        ("uuid", uuids.to_vec()),
    ]
}

fn ints(numbers: &[i32]) -> Vec<CqlValue> {
    numbers.iter().copied().map(CqlValue::Int).collect()
}

fn texts(texts: &[&str]) -> Vec<CqlValue> {
    texts
        .iter()
        .map(|text| CqlValue::Text((*text).to_owned()))
        .collect()
}

fn collections() -> Vec<Typed> {
    use CqlValue::{BigInt, Empty, Float, Int, List, Map, Set, Tuple, Vector};
    let pair = |key: &str, value: i64| (texts(&[key]).remove(0), BigInt(value));
    let nested = List(vec![Set(texts(&["", "a"])), Set(vec![])]);
    let floats = [1.0, f32::NAN, -f32::INFINITY].map(Float).to_vec();
    let long = "long ".repeat(100);
    vec![
        ("list<int>", vec![List(ints(&[1, 1, i32::MIN]))]),
        ("set<text>", vec![Set(texts(&["", "b"]))]),
        (
            "map<text, bigint>",
            vec![Map(vec![pair("", i64::MIN), pair("b", 1)])],
        ),
        (
            "frozen<list<text>>",
            vec![List(vec![]), List(texts(&["", "b"]))],
        ),
        ("frozen<map<int, text>>", vec![Map(vec![])]),
        (
            "map<int, frozen<list<frozen<set<text>>>>>",
            vec![Map(vec![(Int(1), nested)])],
        ),
        (
            "tuple<int, text, frozen<list<int>>>",
            vec![
                Tuple(vec![Some(Int(i32::MAX)), None, Some(List(ints(&[7])))]),
                Tuple(vec![None, Some(texts(&[""]).remove(0)), None]),
            ],
        ),
        ("vector<float, 3>", vec![Vector(floats.clone())]),
        (
            "vector<bigint, 2>",
            vec![Vector(vec![BigInt(i64::MIN), BigInt(i64::MAX)])],
        ),
        ("vector<text, 2>", vec![Vector(texts(&["", &long]))]),
        (
            "vector<frozen<list<int>>, 2>",
            vec![Vector(vec![List(ints(&[1, 2])), List(vec![])])],
        ),
        (
            "list<frozen<vector<float, 3>>>",
            vec![List(vec![Vector(floats)])],
        ),
        // What older drivers wrote for a missing number.
        ("int", vec![Empty]),
    ]
}

fn composed(keyspace: &str) -> Vec<Typed> {
    let udt = |name: &str, fields: Vec<(&str, Option<CqlValue>)>| CqlValue::UserDefinedType {
        keyspace: keyspace.to_owned(),
        name: name.to_owned(),
        fields: fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    };
    let b = CqlValue::List(texts(&["", "b"]));
    let inner = udt(
        "inner_t",
        vec![("a", Some(CqlValue::Int(i32::MIN))), ("b", Some(b))],
    );
    let flat = udt("flat_t", vec![("a", None), ("c", texts(&["c"]).pop())]);
    let missing = udt("inner_t", vec![("a", None), ("b", None)]);
    let map = CqlValue::Map(vec![(CqlValue::Int(1), missing.clone())]);
    let outer = udt(
        "outer_t",
        vec![("i", Some(inner.clone())), ("m", Some(map))],
    );
    vec![
        ("frozen<inner_t>", vec![inner, missing]),
        ("flat_t", vec![flat]),
        ("frozen<outer_t>", vec![outer.clone()]),
        ("list<frozen<outer_t>>", vec![CqlValue::List(vec![outer])]),
    ]
}

#[derive(Clone, Debug, PartialEq, SerializeValue, DeserializeValue)]
struct Inner {
    a: i32,
    b: Vec<String>,
}

/// Types of Rust that the driver maps by itself, and a type of the program's own.
async fn in_types_of_rust(session: &Session) {
    run(
        session,
        "CREATE TABLE mapped (k uuid PRIMARY KEY, l list<double>, s set<int>, m map<text, boolean>, u frozen<inner_t>, \
         t tuple<smallint, text>, v vector<float, 2>, i inet, b blob)",
    )
    .await;
    type Mapped = (
        Uuid,
        Vec<f64>,
        BTreeSet<i32>,
        BTreeMap<String, bool>,
        Inner,
        (i16, Option<String>),
        Vec<f32>,
        IpAddr,
        Vec<u8>,
    );
    let inner = Inner {
        a: 7,
        b: vec!["x".to_owned()],
    };
    let address: IpAddr = "::1".parse().expect("an address");
    let row: Mapped = (
        Uuid::from_u128(5),
        vec![0.5],
        BTreeSet::from([1, 2]),
        BTreeMap::from([("yes".to_owned(), true)]),
        inner,
        (-1, None),
        vec![1.0, 2.0],
        address,
        vec![1, 2],
    );
    let insert =
        "INSERT INTO mapped (k, l, s, m, u, t, v, i, b) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    with(session, insert, row.clone()).await;
    let found: Vec<Mapped> = select(session, "SELECT k, l, s, m, u, t, v, i, b FROM mapped").await;
    equal(found, [row], "types of Rust");
    let of_map: Vec<(HashMap<String, bool>,)> = select(session, "SELECT m FROM mapped").await;
    equal(of_map[0].0["yes"], true, "a map");
}
