mod structures;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, poll};
use index::{Quantization, SimilarityFunction, VectorOptions};
use store_api::types::NodeStatus;
use uuid::Uuid;

use super::*;
use crate::filter::SearchRequirements;
use crate::identity::{
    IndexIdentity, IndexName, IndexedColumnKind, StructureOptions, TableIdentity, TokenRange,
};
use crate::items::ChangeKind;
use crate::keys::tests::text_schema;
use crate::metrics::ServiceMetrics;
use crate::observed::IndexableValue;
use crate::options::{FullVectorPlacement, IndexesOptions};

/// Options for an index without files.
pub(crate) fn in_memory() -> IndexesOptions {
    IndexesOptions {
        vectors: FullVectorPlacement::Memory,
        ..IndexesOptions::default()
    }
}

/// The identity of an index of a table with one text key, two dimensions, by squared distance.
pub(crate) fn identity(index: &str) -> IndexIdentity {
    IndexIdentity {
        name: IndexName {
            keyspace: "ks".into(),
            index: index.into(),
        },
        table: TableIdentity {
            keyspace: "ks".into(),
            table: "t".into(),
            id: Uuid::from_u128(1),
        },
        truncated_ms: None,
        column: "v".into(),
        column_kind: IndexedColumnKind::Regular,
        local_key: Vec::new(),
        filter_columns: Vec::new(),
        options: StructureOptions::Vector(VectorOptions {
            dimensions: 2,
            similarity: SimilarityFunction::Euclidean,
            quantization: Quantization::F32,
            maximum_node_connections: 16,
            construction_beam_width: 128,
            search_beam_width: None,
        }),
        version: Some(time_uuid(1)),
        keys: text_schema(1, 0),
        range: TokenRange::WHOLE_RING,
    }
}

/// Puts a vector into the graph of an index.
pub(crate) fn insert(index: &IndexContent, id: u32, vector: &[f32]) {
    let vector = index
        .prepare(&IndexableValue::Vector(vector.to_vec()))
        .unwrap();
    let inserted = index.change(id, ChangeKind::Insert, Some(&vector));
    assert_eq!(inserted, Ok(()));
}

/// The version of an index that was created at that time.
pub(crate) fn time_uuid(seconds: u64) -> Uuid {
    Uuid::new_v1(
        uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0),
        &[1; 6],
    )
}

fn engine() -> IndexEngine {
    IndexEngine::new(ServiceMetrics::new(), vec!["fine".into()])
}

fn add(engine: &IndexEngine, identity: IndexIdentity) -> Arc<IndexHandle> {
    let metrics = engine.metrics().index(&identity.name);
    let index = Arc::new(IndexHandle::new(identity, &in_memory(), metrics).unwrap());
    engine.insert(index.clone());
    index
}

fn route(engine: &IndexEngine, index: &str) -> Result<String, NoRoute> {
    engine
        .route(&identity(index).name, &SearchRequirements::default())
        .map(|routed| routed.index.identity.name.index.clone())
}

#[test]
fn the_node_serves_when_the_first_indexes_do() {
    let engine = engine();
    assert_eq!(engine.status(), NodeStatus::Initializing);
    engine.set_connected(false);
    assert_eq!(engine.status(), NodeStatus::ConnectingToDb);
    engine.set_connected(true);
    assert_eq!(engine.status(), NodeStatus::Bootstrapping);
    let first = add(&engine, identity("first"));
    engine.first_discovery();
    assert_eq!(engine.status(), NodeStatus::Bootstrapping);
    engine.serving(&first);
    assert_eq!(engine.status(), NodeStatus::Serving);
    // Indexes that come later don't count.
    add(&engine, identity("later"));
    engine.first_discovery();
    assert_eq!(engine.status(), NodeStatus::Serving);
    // A lost session changes the status until there is one again.
    engine.set_connected(false);
    assert_eq!(engine.status(), NodeStatus::ConnectingToDb);
    engine.set_connected(true);
    assert_eq!(engine.status(), NodeStatus::Serving);
}

#[test]
fn the_node_serves_without_indexes_and_when_the_last_one_is_dropped() {
    let empty = engine();
    empty.set_connected(true);
    empty.first_discovery();
    assert_eq!(empty.status(), NodeStatus::Serving);
    let engine = engine();
    engine.set_connected(true);
    add(&engine, identity("a"));
    engine.first_discovery();
    assert_eq!(engine.status(), NodeStatus::Bootstrapping);
    engine.remove(&identity("a").name);
    assert_eq!(engine.status(), NodeStatus::Serving);
}

#[test]
fn the_newest_index_that_serves_answers() {
    let engine = engine();
    engine.set_connected(true);
    engine.first_discovery();
    let old = add(&engine, identity("old"));
    let new = add(
        &engine,
        IndexIdentity {
            version: Some(time_uuid(1_000_000)),
            ..identity("new")
        },
    );
    let other = add(
        &engine,
        IndexIdentity {
            column: "other".into(),
            version: Some(time_uuid(2_000_000)),
            ..identity("other")
        },
    );
    engine.serving(&other);
    assert_eq!(route(&engine, "none"), Err(NoRoute::Missing));
    new.set_progress(12.3456);
    assert_eq!(
        route(&engine, "new"),
        Err(NoRoute::Building {
            progress: 12.345,
            lacks: Some(0),
        })
    );
    engine.serving(&old);
    assert_eq!(route(&engine, "new").as_deref(), Ok("old"));
    engine.serving(&new);
    assert_eq!(route(&engine, "new").as_deref(), Ok("new"));
    assert_eq!(route(&engine, "old").as_deref(), Ok("new"));
    assert_eq!(route(&engine, "other").as_deref(), Ok("other"));
    engine.remove(&new.identity.name);
    assert_eq!(route(&engine, "new"), Err(NoRoute::Missing));
    assert_eq!(route(&engine, "old").as_deref(), Ok("old"));
}

#[test]
fn a_node_that_starts_says_so() {
    let engine = engine();
    engine.set_connected(true);
    add(&engine, identity("a"));
    engine.first_discovery();
    assert_eq!(route(&engine, "a"), Err(NoRoute::NodeBootstrapping));
}

#[test]
fn a_search_that_no_serving_index_fits_waits_for_one_that_is_built() {
    let engine = engine();
    engine.set_connected(true);
    engine.first_discovery();
    let local = add(
        &engine,
        IndexIdentity {
            local_key: vec!["p0".into()],
            ..identity("local")
        },
    );
    engine.serving(&local);
    assert!(matches!(route(&engine, "local"), Err(NoRoute::Unsuited(_))));
    let global = add(&engine, identity("global"));
    for name in ["global", "local"] {
        let building = Err(NoRoute::Building {
            progress: 0.0,
            lacks: None,
        });
        assert_eq!(route(&engine, name), building, "{name}");
    }
    engine.serving(&global);
    assert_eq!(route(&engine, "local").as_deref(), Ok("global"));
}

#[tokio::test(start_paused = true)]
async fn a_search_waits_for_an_index_that_lacks_few_rows() {
    let engine = engine();
    engine.set_connected(true);
    engine.first_discovery();
    let index = add(&engine, identity("a"));
    for id in 0..2u32 {
        let key = index.identity.keys.encode([id.to_string().as_bytes()]);
        index.content.keys_mut().insert(id, key);
        insert(&index.content, id, &[1.0, 1.0]);
    }
    let needed = SearchRequirements::default();
    let search = || engine.current_route(&index.identity.name, &needed, Duration::from_secs(2));
    let building = |progress, lacks| Some(NoRoute::Building { progress, lacks });
    // A scan that does not begin is waited for only so long.
    let began = tokio::time::Instant::now();
    assert_eq!(search().await.err(), building(0.0, None));
    assert!(began.elapsed() < Duration::from_secs(2));
    // Once the scan has begun, a search knows whether to wait.
    let mut waits = pin!(search());
    assert!(poll!(&mut waits).is_pending());
    engine.progressed(&index, 0.01);
    let refused = waits.now_or_never().expect("it does not wait").err();
    assert_eq!(refused, building(0.01, Some(19_998)));
    engine.progressed(&index, 50.0);
    let late = search().await.err().expect("it is not built in time");
    let lacks = Some(2);
    assert_eq!(
        late,
        NoRoute::Building {
            progress: 50.0,
            lacks
        }
    );
    let mut waits = pin!(search());
    assert!(poll!(&mut waits).is_pending());
    engine.serving(&index);
    assert!(waits.await.is_ok());
}
