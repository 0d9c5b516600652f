//! Tests of the searches of a node in the same process.

use store_api::{ClientError, ClientOptions, IndexServices, KeyValue, VectorSearch};

use super::*;

impl Service {
    /// The service as a node in this process reaches it.
    pub(super) fn local(&self) -> IndexServices {
        let door = InProcessStore::default();
        door.open(self.api.clone());
        Arc::new(door).into()
    }

    /// The service as a node elsewhere reaches it, over HTTP.
    pub(super) fn remote(&self) -> IndexServices {
        let client = store_api::StoreClient::new(ClientOptions {
            base_uris: vec![self.base.clone()],
            ..ClientOptions::default()
        });
        client.unwrap().into()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_comes_to_what_a_request_does() {
    let service = Service::serving().await;
    let building = service.add(IndexIdentity {
        column: "w".into(),
        ..identity("building")
    });
    building.set_progress(12.5);
    let (local, remote) = (service.local(), service.remote());
    let columns = ["pk", "ck"];
    let mut found = 0;
    let mut refusals = Vec::new();
    for (index, vector, limit) in [
        ("idx", vec![0.0, 0.0], 2),
        ("idx", vec![6.0, 8.0], 1000),
        ("idx", vec![0.0; 3], 2),
        ("idx", vec![0.0, f32::NAN], 2),
        ("none", vec![0.0, 0.0], 2),
        ("building", vec![0.0, 0.0], 2),
    ] {
        // The first search over HTTP is in JSON. Its binary answer shows the client that the
        // service takes binary searches too.
        let _ = remote
            .ann("ks", "idx", VectorSearch::new(vec![0.0, 0.0], 1), &columns)
            .await;
        let search = VectorSearch::new(vector, limit);
        let there = remote.ann("ks", index, search.clone(), &columns);
        let there = there.await;
        let here = local.ann("ks", index, search, &columns).await;
        assert_eq!(here, there, "{index}");
        match here {
            Ok(_) => found += 1,
            Err(error) => refusals.push(error.to_string()),
        }
    }
    assert_eq!(found, 2);
    assert_eq!(
        refusals,
        [
            "Vector Store error: HTTP status 400 Bad Request, message: Wrong embedding dimension: expected 2, got 3",
            "Vector Store error: HTTP status 400 Bad Request, message: vector[1] is not a finite 32-bit number",
            "Vector Store error: HTTP status 404 Not Found, message: missing index: ks.none",
            "Vector Store error: HTTP status 503 Service Unavailable, message: Index ks.building is still being constructed: 12.500% done",
        ]
    );
    let nearest = local
        .ann("ks", "idx", VectorSearch::new(vec![6.0, 8.0], 1), &columns)
        .await;
    let key = [&[0, 0, 0, 2][..], b"c"].map(|value| KeyValue::Cql(Bytes::from_static(value)));
    assert_eq!(nearest.unwrap().keys, [key.to_vec()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_has_not_started_is_not_available() {
    let door: IndexServices = Arc::new(InProcessStore::default()).into();
    let early = door
        .ann("ks", "idx", VectorSearch::new(vec![0.0, 0.0], 1), &["p0"])
        .await;
    assert_eq!(early, Err(ClientError::Unavailable));

    let service = Service::start(100).await;
    service.engine.set_connected(true);
    service.add(identity("idx"));
    service.engine.first_discovery();
    let local = service.local();
    let bootstrapping = local.ann("ks", "idx", VectorSearch::new(vec![0.0, 0.0], 1), &["p0"]);
    assert_eq!(bootstrapping.await, Err(ClientError::Unavailable));
}
