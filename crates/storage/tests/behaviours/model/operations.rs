//! Random operations: what is written, and what takes place in between.

use super::*;

#[derive(Clone, Debug)]
pub enum Op {
    /// Mutations of several partitions in one write.
    Write(Vec<(i32, Vec<PartitionChange>)>),
    InsertIfNotExists(i32, Option<Vec<Bytes>>, Vec<PartitionChange>),
    Advance(i64),
    Reopen,
    Truncate,
    DropColumnB,
    /// Makes or drops the secondary index of this number.
    ToggleIndex(usize),
}

fn ints() -> impl Strategy<Value = Bytes> {
    (0..3).prop_map(int)
}

fn words() -> impl Strategy<Value = Bytes> {
    prop::sample::select(vec!["", "a", "b", "ab"]).prop_map(text)
}

pub fn clustering() -> impl Strategy<Value = Vec<Bytes>> {
    (ints(), words()).prop_map(|(c1, c2)| vec![c1, c2])
}

fn prefixes() -> impl Strategy<Value = Vec<Bytes>> {
    (clustering(), 1..=2_usize).prop_map(|(mut values, length)| {
        values.truncate(length);
        values
    })
}

fn bounds() -> impl Strategy<Value = ClusteringBound> {
    prop_oneof![
        1 => Just(ClusteringBound::Unbounded),
        3 => prefixes().prop_map(ClusteringBound::Inclusive),
        2 => prefixes().prop_map(ClusteringBound::Exclusive),
    ]
}

/// Timestamps of few values, so that they are often equal.
fn timestamps() -> impl Strategy<Value = i64> {
    1..9_i64
}

fn ttls() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![2 => Just(None), 1 => (1..6_u32).prop_map(Some)]
}

/// Timeuuids of few times.
fn list_paths() -> impl Strategy<Value = Bytes> {
    (0..4_u8).prop_map(|n| {
        let id = value::timeuuid::from_micros(i64::from(n), 7).expect("a time in range");
        Bytes::copy_from_slice(id.as_bytes())
    })
}

fn simple(values: BoxedStrategy<Bytes>) -> BoxedStrategy<CellOperation> {
    prop_oneof![
        3 => values.prop_map(CellOperation::Set),
        1 => Just(CellOperation::Delete),
    ]
    .boxed()
}

fn elements(
    paths: BoxedStrategy<Bytes>,
    values: BoxedStrategy<Bytes>,
) -> BoxedStrategy<CellOperation> {
    let pairs = vec((paths.clone(), values), 0..4);
    prop_oneof![
        1 => Just(CellOperation::Delete),
        2 => pairs.clone().prop_map(|pairs| CellOperation::ReplaceElements(once(pairs))),
        3 => pairs.prop_map(|pairs| CellOperation::PutElements(once(pairs))),
        2 => vec(paths, 0..3).prop_map(CellOperation::DeleteElements),
    ]
    .boxed()
}

/// Removes repeated paths, as a statement names each path once.
fn once(pairs: Vec<(Bytes, Bytes)>) -> Vec<(Bytes, Bytes)> {
    pairs
        .into_iter()
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .collect()
}

fn lists() -> BoxedStrategy<CellOperation> {
    prop_oneof![
        4 => elements(list_paths().boxed(), ints().boxed()),
        1 => (0..3_u32, ints())
            .prop_map(|(index, value)| CellOperation::SetListIndex { index, value }),
        1 => (0..3_u32).prop_map(|index| CellOperation::DeleteListIndex { index }),
        1 => vec(ints(), 1..3).prop_map(CellOperation::RemoveListValues),
    ]
    .boxed()
}

fn regular_cells() -> impl Strategy<Value = Vec<CellChange>> {
    let one = prop_oneof![
        simple(words().boxed()).prop_map(|change| cell(A, change)),
        simple(ints().boxed()).prop_map(|change| cell(B, change)),
        lists().prop_map(|change| cell(LIST, change)),
        elements(words().boxed(), ints().boxed()).prop_map(|change| cell(MAP, change)),
    ];
    vec(one, 0..4)
}

fn static_cells() -> impl Strategy<Value = Vec<CellChange>> {
    let empty = Just(Bytes::new()).boxed();
    let one = prop_oneof![
        simple(ints().boxed()).prop_map(|change| cell(S, change)),
        elements(ints().boxed(), empty).prop_map(|change| cell(S_SET, change)),
    ];
    vec(one, 1..3)
}

fn changes() -> impl Strategy<Value = PartitionChange> {
    prop_oneof![
        8 => (clustering(), regular_cells(), timestamps(), ttls(), any::<bool>()).prop_map(
            |(clustering, cells, timestamp, ttl_s, marker)| PartitionChange::Row {
                clustering,
                cells,
                timestamp,
                ttl_s,
                marker,
            }
        ),
        2 => (static_cells(), timestamps(), ttls()).prop_map(|(cells, timestamp, ttl_s)| {
            PartitionChange::Static {
                cells,
                timestamp,
                ttl_s,
            }
        }),
        2 => (clustering(), timestamps())
            .prop_map(|(clustering, timestamp)| PartitionChange::DeleteRow { clustering, timestamp }),
        2 => (bounds(), bounds(), timestamps())
            .prop_map(|(start, end, timestamp)| PartitionChange::DeleteRange { start, end, timestamp }),
        1 => timestamps().prop_map(|timestamp| PartitionChange::DeletePartition { timestamp }),
    ]
}

pub fn ops() -> impl Strategy<Value = Op> {
    let partition = 0..3_i32;
    let writes = vec((partition.clone(), vec(changes(), 1..4)), 1..3);
    prop_oneof![
        20 => writes.prop_map(Op::Write),
        3 => (partition, prop::option::of(clustering()), timestamps(), regular_cells(), static_cells())
            .prop_map(|(p, key, timestamp, cells, statics)| {
                let by_path = |cell: &CellChange| {
                    !matches!(
                        cell.change,
                        CellOperation::SetListIndex { .. } | CellOperation::DeleteListIndex { .. }
                    )
                };
                let change = match &key {
                    Some(clustering) => insert(
                        clustering.clone(),
                        cells.into_iter().filter(by_path).collect(),
                        timestamp,
                    ),
                    None => PartitionChange::Static { cells: statics, timestamp, ttl_s: None },
                };
                Op::InsertIfNotExists(p, key, vec![change])
            }),
        3 => (1..4_i64).prop_map(Op::Advance),
        1 => Just(Op::Reopen),
        1 => Just(Op::Truncate),
        1 => Just(Op::DropColumnB),
        2 => (0..indexes::COUNT).prop_map(Op::ToggleIndex),
    ]
}
