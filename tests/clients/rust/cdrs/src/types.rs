//! Values of every type there and back, at their edges.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use cdrs_tokio::frame::{Serialize, Version};
use cdrs_tokio::query_values;
use cdrs_tokio::types::blob::Blob;
use cdrs_tokio::types::cassandra_type::{CassandraType, wrapper_fn};
use cdrs_tokio::types::decimal::Decimal;
use cdrs_tokio::types::duration::Duration;
use cdrs_tokio::types::value::{Bytes, Value};
use num_bigint::BigInt;
use uuid::Uuid;

use crate::session::{Client, run};

/// A value as it is written, and as it is read.
type Pair = (Value, CassandraType);
/// A type with values of it.
type Typed = (&'static str, Vec<Pair>);

pub async fn types(client: &Client) {
    run(client, "CREATE TYPE inner_t (a int, b list<text>)").await;
    run(client, "CREATE TYPE flat_t (a int, c text)").await;
    run(
        client,
        "CREATE TYPE outer_t (i frozen<inner_t>, m map<int, frozen<inner_t>>)",
    )
    .await;
    let cases = natives().into_iter().chain(collections()).chain(composed());
    come_back(client, "types", Version::V4, &cases.collect::<Vec<_>>()).await;
}

/// The types that don't depend on others, and durations, which the driver only reads in this
/// version of the protocol.
pub async fn types_of_version_5(client: &Client) {
    // The driver doesn't encode larger numbers as the protocol has them.
    let durations = [(0, 0, 0), (14, 3, 5), (-14, -3, -63)].map(|(months, days, nanoseconds)| {
        Duration::new(months, days, nanoseconds).expect("numbers of one sign")
    });
    let durations = ("duration", of(CassandraType::Duration, durations));
    let cases = natives()
        .into_iter()
        .chain(collections())
        .chain([durations]);
    come_back(
        client,
        "types_of_version_5",
        Version::V5,
        &cases.collect::<Vec<_>>(),
    )
    .await;
}

/// Checks that values come back from a table with a column for each type.
async fn come_back(client: &Client, table: &str, version: Version, cases: &[Typed]) {
    let columns: String = cases
        .iter()
        .enumerate()
        .map(|(at, (cql, _))| format!(", c{at} {cql}"))
        .collect();
    run(
        client,
        &format!("CREATE TABLE {table} (k int PRIMARY KEY{columns})"),
    )
    .await;
    for (at, (cql, pairs)) in cases.iter().enumerate() {
        let insert = client
            .prepare(format!("INSERT INTO {table} (k, c{at}) VALUES (1, ?)"))
            .await
            .expect(cql);
        let select = client
            .prepare(format!("SELECT c{at} FROM {table} WHERE k = 1"))
            .await
            .expect(cql);
        let null = (Value::Null, CassandraType::Null);
        for (value, expected) in pairs.iter().chain([&null]) {
            let written = client
                .exec_with_values(&insert, query_values!(value.clone()))
                .await;
            written.unwrap_or_else(|error| panic!("{cql} {expected:?}: {error}"));
            let answer = client
                .exec(&select)
                .await
                .expect(cql)
                .response_body()
                .expect(cql);
            let found = answer.as_cols().expect("rows");
            let of_column = &found.metadata.col_specs[0].col_type;
            let read = wrapper_fn(&of_column.id)(&found.rows_content[0][0], of_column, version);
            let read = read.unwrap_or_else(|error| panic!("{cql} {expected:?}: {error}"));
            // As text, too, so that NaN is equal to itself.
            let is_equal = read == *expected || format!("{read:?}") == format!("{expected:?}");
            assert!(is_equal, "{cql}: {read:.200?}, not {expected:.200?}");
        }
    }
}

/// Values of a type that the driver writes by itself.
fn of<T: Clone + Into<Value>>(
    read_as: impl Fn(T) -> CassandraType,
    values: impl IntoIterator<Item = T>,
) -> Vec<Pair> {
    values
        .into_iter()
        .map(|value| (value.clone().into(), read_as(value)))
        .collect()
}

fn natives() -> Vec<Typed> {
    use CassandraType as Read;
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<String>>()
    };
    let huge = BigInt::from(10).pow(1000);
    let doubles = [
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        -0.0,
        f64::MAX,
        f64::from_bits(1),
    ];
    let floats = [f32::NAN, f32::INFINITY, -0.0, f32::MAX, f32::from_bits(1)];
    let addresses = ["0.0.0.0", "255.255.255.255", "::", "2001:db8::1"];
    let addresses = addresses.map(|text| text.parse::<IpAddr>().expect("an address"));
    let decimals = [
        Decimal::new(BigInt::from(-150), 2),
        Decimal::new(huge.clone(), i32::MAX),
        Decimal::new(-huge.clone(), i32::MIN),
        Decimal::new(BigInt::from(0), 0),
    ];
    let varints = [
        BigInt::from(0),
        huge.clone(),
        -huge,
        BigInt::from(-128),
        BigInt::from(128),
    ];
    let timeuuids = [0x8e14_e760_7fa8_11eb_bc66_0000_0000_0001, 0x1000 << 64].map(Uuid::from_u128);
    let mut long = texts(&["", "\0 é 😀 'quoted'"]);
    long.push("x".repeat(70_000));
    vec![
        ("ascii", of(Read::Ascii, texts(&["", "plain", "\0\x7f"]))),
        ("bigint", of(Read::Bigint, [i64::MIN, 0, i64::MAX])),
        (
            "blob",
            of(
                Read::Blob,
                [vec![], vec![0, 255], vec![7; 100_000]].map(Blob::new),
            ),
        ),
        ("boolean", of(Read::Boolean, [true, false])),
        ("date", of(Read::Date, [0, i32::MIN, -1])),
        ("decimal", of(Read::Decimal, decimals)),
        ("double", of(Read::Double, doubles)),
        ("float", of(Read::Float, floats)),
        ("inet", of(Read::Inet, addresses)),
        ("int", of(Read::Int, [i32::MIN, 0, i32::MAX])),
        ("smallint", of(Read::Smallint, [i16::MIN, i16::MAX])),
        ("text", of(Read::Varchar, long)),
        ("time", of(Read::Time, [0, 86_399_999_999_999])),
        ("timestamp", of(Read::Timestamp, [i64::MIN, 0, i64::MAX])),
        ("timeuuid", of(Read::Timeuuid, timeuuids)),
        ("tinyint", of(Read::Tinyint, [i8::MIN, i8::MAX])),
        ("uuid", of(Read::Uuid, [0, u128::MAX].map(Uuid::from_u128))),
        ("varint", of(Read::Varint, varints)),
    ]
}

fn ints(numbers: Vec<i32>) -> CassandraType {
    CassandraType::List(numbers.into_iter().map(CassandraType::Int).collect())
}

fn texts(texts: Vec<&str>) -> CassandraType {
    CassandraType::List(
        texts
            .into_iter()
            .map(|text| CassandraType::Varchar(text.to_owned()))
            .collect(),
    )
}

/// The driver reads a set as a list.
fn collections() -> Vec<Typed> {
    use CassandraType::{Bigint, Float, Int, List, Map, Varchar, Vector};
    let numbers = |map: BTreeMap<&str, i64>| {
        Map(map
            .into_iter()
            .map(|(key, value)| (Varchar(key.to_owned()), Bigint(value)))
            .collect())
    };
    let nested: BTreeMap<i32, Vec<Vec<&str>>> = BTreeMap::from([(1, vec![vec!["", "a"], vec![]])]);
    let read = |nested: BTreeMap<i32, Vec<Vec<&str>>>| {
        let lists = |all: Vec<Vec<&str>>| List(all.into_iter().map(texts).collect());
        Map(nested
            .into_iter()
            .map(|(key, all)| (Int(key), lists(all)))
            .collect())
    };
    let floats = [1.0, f32::NAN, -f32::INFINITY];
    let encoded = Value::Some(
        floats
            .iter()
            .flat_map(|float| float.to_be_bytes())
            .collect(),
    );
    vec![
        ("list<int>", of(ints, [vec![1, 1, i32::MIN]])),
        ("set<text>", of(texts, [vec!["", "b"]])),
        (
            "map<text, bigint>",
            of(numbers, [BTreeMap::from([("", i64::MIN), ("b", 1)])]),
        ),
        ("frozen<list<text>>", of(texts, [vec![], vec!["", "b"]])),
        ("frozen<map<text, bigint>>", of(numbers, [BTreeMap::new()])),
        (
            "map<int, frozen<list<frozen<set<text>>>>>",
            of(read, [nested]),
        ),
        (
            "vector<float, 3>",
            vec![(encoded, Vector(floats.map(Float).to_vec()))],
        ),
    ]
}

/// Fields of a tuple or of a type of the program's own.
fn fields(fields: [Value; 2]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|field| field.serialize_to_vec(Version::V4))
        .collect()
}

fn composed() -> Vec<Typed> {
    use CassandraType::{Int, List, Map, Null, Tuple, Udt, Varchar};
    let named = |pairs: [(&str, CassandraType); 2]| {
        Udt(HashMap::from(
            pairs.map(|(name, value)| (name.to_owned(), value)),
        ))
    };
    let inner = fields([i32::MIN.into(), vec!["", "b"].into()]);
    let inner_read = named([("a", Int(i32::MIN)), ("b", texts(vec!["", "b"]))]);
    let flat = fields([Value::Null, "c".into()]);
    let flat_read = named([("a", Null), ("c", Varchar("c".to_owned()))]);
    let missing = fields([Value::Null, Value::Null]);
    let missing_read = named([("a", Null), ("b", Null)]);
    let map = BTreeMap::from([(1, Bytes::new(missing.clone()))]);
    let outer = fields([Value::Some(inner.clone()), map.into()]);
    let map_read = Map(vec![(Int(1), missing_read.clone())]);
    let outer_read = named([("i", inner_read.clone()), ("m", map_read)]);
    let tuple = fields([Value::Null, "text".into()]);
    let tuple_read = Tuple(vec![Null, Varchar("text".to_owned())]);
    let list = vec![Bytes::new(outer.clone())];
    vec![
        ("tuple<int, text>", vec![(Value::Some(tuple), tuple_read)]),
        (
            "frozen<inner_t>",
            vec![
                (Value::Some(inner), inner_read),
                (Value::Some(missing), missing_read),
            ],
        ),
        ("flat_t", vec![(Value::Some(flat), flat_read)]),
        (
            "frozen<outer_t>",
            vec![(Value::Some(outer), outer_read.clone())],
        ),
        (
            "list<frozen<outer_t>>",
            vec![(list.into(), List(vec![outer_read]))],
        ),
    ]
}
