//! Connections with and without compression, and the schema as the driver reads it.

use scylla::client::session::Session;
use scylla::cluster::metadata::{ColumnKind, Strategy};
use scylla::frame::Compression;
use scylla::frame::response::result::{CollectionType, ColumnType, NativeType};

use super::target::{Target, execute, rows, select};

/// The text is larger than a socket's buffers, so that it arrives in pieces.
const TEXT_BYTES: usize = 1_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_pass_whole_under_each_compression() {
    let keyspace = "rust_compression";
    let target = Target::start();
    let scenario = async |session: Session| {
        execute(
            &session,
            "CREATE TABLE texts (id int PRIMARY KEY, text text)",
        )
        .await;
        let text: String = ('a'..='z').cycle().take(TEXT_BYTES).collect();
        let compressions = [None, Some(Compression::Lz4), Some(Compression::Snappy)];
        for (id, compression) in (0..).zip(compressions) {
            let builder = target.builder().compression(compression);
            let session = builder.use_keyspace(keyspace, false).build().await;
            let session = session.expect("the driver connects");
            let insert = session
                .prepare("INSERT INTO texts (id, text) VALUES (?, ?)")
                .await
                .expect("it is prepared");
            let written = session.execute_unpaged(&insert, (id, &text)).await;
            written.expect("it is written");
            let read = session
                .query_unpaged("SELECT text FROM texts WHERE id = ?", (id,))
                .await
                .expect("it is read");
            assert!(
                rows::<(String,)>(read) == [(text.clone(),)],
                "{compression:?}"
            );
        }
        assert_eq!(
            select::<(i32,)>(&session, "SELECT id FROM texts")
                .await
                .len(),
            3
        );
    };
    target.in_keyspace(keyspace, scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_knows_the_schema_as_it_was_made() {
    let keyspace = "rust_schema";
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (part int, number text, owner text STATIC, tags set<text>, \
             \"Name\" text, v vector<float, 3>, PRIMARY KEY ((part), number))";
        execute(&session, create).await;
        let state = session.get_cluster_state();
        let metadata = state.get_keyspace(keyspace).expect("the keyspace");
        let Strategy::NetworkTopologyStrategy {
            datacenter_repfactors,
        } = &metadata.strategy
        else {
            panic!("{:?}", metadata.strategy);
        };
        assert_eq!(datacenter_repfactors["datacenter1"], 1);
        let films = &metadata.tables["films"];
        assert_eq!(films.partition_key, ["part"]);
        assert_eq!(films.clustering_key, ["number"]);
        let column = |name: &str| {
            let column = &films.columns[name];
            (column.kind.clone(), column.typ.clone())
        };
        let text = ColumnType::Native(NativeType::Text);
        assert_eq!(column("owner"), (ColumnKind::Static, text.clone()));
        assert_eq!(column("Name"), (ColumnKind::Regular, text.clone()));
        let tags = ColumnType::Collection {
            frozen: false,
            typ: CollectionType::Set(Box::new(text)),
        };
        assert_eq!(column("tags"), (ColumnKind::Regular, tags));
        let vector = ColumnType::Vector {
            typ: Box::new(ColumnType::Native(NativeType::Float)),
            dimensions: 3,
        };
        assert_eq!(column("v"), (ColumnKind::Regular, vector));

        execute(&session, "ALTER TABLE films ADD year int").await;
        let state = session.get_cluster_state();
        let films = &state.get_keyspace(keyspace).expect("the keyspace").tables["films"];
        let int = ColumnType::Native(NativeType::Int);
        assert_eq!(films.columns["year"].typ, int);
        execute(&session, "DROP TABLE films").await;
        let state = session.get_cluster_state();
        let tables = &state.get_keyspace(keyspace).expect("the keyspace").tables;
        assert!(!tables.contains_key("films"));
    };
    Target::start().in_keyspace(keyspace, scenario).await;
}
