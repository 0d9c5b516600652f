//! The server and the schema as the driver knows them.

use std::collections::HashMap;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::cluster::metadata::{CollectionType, ColumnKind, ColumnType, NativeType, Strategy};
use sections::{equal, eventually};

use crate::session::{builder, rows, run, select, with};

const INTERVAL: Duration = Duration::from_millis(100);

pub async fn connected(session: &Session) {
    let found: Vec<(String,)> = select(session, "SELECT release_version FROM system.local").await;
    assert!(!found[0].0.is_empty(), "a release");
    let own = "SELECT protocol_version, driver_name FROM system_views.clients LIMIT 1";
    let own: Vec<(i32, Option<String>)> = select(session, own).await;
    equal(own[0].0, 4, "the protocol that is spoken");
    let state = session.get_cluster_state();
    equal(state.get_nodes_info().len(), 1, "nodes");
}

pub async fn metadata(session: &Session, keyspace: &str) {
    run(session, "CREATE TYPE person (name text, born date)").await;
    run(
        session,
        "CREATE TABLE films (maker uuid, year int, title text, studio text static, cast_of list<frozen<person>>, \
         \"Mixed\" frozen<map<text, frozen<set<int>>>>, v vector<float, 3>, PRIMARY KEY (maker, year, title)) \
         WITH CLUSTERING ORDER BY (year DESC, title ASC)",
    )
    .await;
    run(session, "CREATE INDEX films_by_studio ON films (studio)").await;
    let state = session.get_cluster_state();
    let known = state.get_keyspace(keyspace).expect("the keyspace");
    let Strategy::SimpleStrategy { replication_factor } = known.strategy else {
        panic!("{:?}", known.strategy);
    };
    equal(replication_factor, 1, "replication");
    let person = &known.user_defined_types["person"];
    let fields: Vec<&str> = person.field_types.iter().map(|(name, _)| &**name).collect();
    equal(fields, ["name", "born"], "fields");
    let films = &known.tables["films"];
    equal(&films.partition_key, ["maker"], "the partition key");
    equal(
        &films.clustering_key,
        ["year", "title"],
        "clustering columns",
    );
    equal(films.columns.len(), 7, "columns");
    equal(
        &films.columns["studio"].kind,
        ColumnKind::Static,
        "a static column",
    );
    let vector = ColumnType::Vector {
        typ: Box::new(ColumnType::Native(NativeType::Float)),
        dimensions: 3,
    };
    equal(&films.columns["v"].typ, vector, "a vector's type");
    let ints = ColumnType::Collection {
        frozen: true,
        typ: CollectionType::Set(Box::new(ColumnType::Native(NativeType::Int))),
    };
    let mixed = ColumnType::Collection {
        frozen: true,
        typ: CollectionType::Map(
            Box::new(ColumnType::Native(NativeType::Text)),
            Box::new(ints),
        ),
    };
    equal(&films.columns["Mixed"].typ, mixed, "a nested type");
    let indexes = "SELECT options FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = 'films'";
    let options: Vec<(HashMap<String, String>,)> = rows(with(session, indexes, (keyspace,)).await);
    equal(&options[0].0["target"], "studio", "the index's target");
}

/// A session is told of what another does. It reads the keyspaces again of which it was told, and
/// those alone, once in an interval, which is a minute by default.
pub async fn events(session: &Session, address: &str, keyspace: &str) {
    let second = builder(address).cluster_metadata_refresh_interval(INTERVAL);
    let second = second.build().await.expect("a second session");
    let columns = async || {
        let state = second.get_cluster_state();
        let known = state.get_keyspace(keyspace).expect("the keyspace");
        known
            .tables
            .get("told")
            .map_or(0, |table| table.columns.len())
    };
    equal(columns().await, 0, "nothing yet");
    run(session, "CREATE TABLE told (k int PRIMARY KEY)").await;
    eventually("a table is told", async || columns().await == 1).await;
    run(session, "ALTER TABLE told ADD a text").await;
    eventually("its change is told", async || columns().await == 2).await;
    run(session, "DROP TABLE told").await;
    eventually("its end is told", async || columns().await == 0).await;
}
