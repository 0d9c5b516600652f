//! Tests of clients against services that follow a script.

mod binary;
mod fake;
mod one_service;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use fake::{Answer, FakeStore};
use test_support::eventually;

use super::*;

/// The longest time that a test waits for something.
const PATIENCE: Duration = Duration::from_secs(20);

const FOUND: &str = r#"{"primary_keys":{"k":[7]},"distances":[0],"similarity_scores":[1]}"#;
const BOOTSTRAPPING: &str = r#"{"reason":"NODE_BOOTSTRAPPING"}"#;
const BUILDING: &str = r#"{"reason":"INDEX_BUILDING","message":"12.500%"}"#;

fn found() -> Answer {
    Answer::of(200, FOUND)
}

fn bootstrapping() -> Answer {
    Answer::of(503, BOOTSTRAPPING)
}

fn options(primary: &[&FakeStore]) -> ClientOptions {
    ClientOptions {
        base_uris: primary.iter().map(|store| store.uri()).collect(),
        request_timeout: PATIENCE,
        connect_timeout: Duration::from_millis(500),
        ..ClientOptions::default()
    }
}

async fn ask(client: &StoreClient) -> Result<i64, String> {
    let found = client
        .ann("ks", "i", &AnnRequest::new(vec![1.0], 1), &["k"])
        .await;
    let found = found.map_err(|error| error.to_string())?;
    Ok(match &found.keys[0][0] {
        KeyValue::Json(number) => number.as_i64().expect("a number"),
        KeyValue::Cql(bytes) => i64::from_be_bytes(bytes[..].try_into().expect("a bigint")),
    })
}

/// A port that nothing listens on.
async fn closed() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn requests_are_spread_over_all_services() {
    let stores = [
        FakeStore::start(found()).await,
        FakeStore::start(found()).await,
    ];
    let client = StoreClient::new(options(&[&stores[0], &stores[1]])).unwrap();
    for _ in 0..64 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    // In one of 2^63 runs all searches go to one service.
    assert!(stores.iter().all(|store| store.searches() > 0));
    assert_eq!(stores[0].searches() + stores[1].searches(), 64);
}

#[tokio::test]
async fn an_unavailable_service_gets_one_request_and_then_none() {
    let down = closed().await;
    let (good, starting) = (
        FakeStore::start(found()).await,
        FakeStore::start(bootstrapping()).await,
    );
    starting.set_status("BOOTSTRAPPING");
    let mut options = options(&[&good, &starting]);
    options.base_uris.push(format!("http://{down}"));
    let client = StoreClient::new(options).unwrap();
    for _ in 0..64 {
        assert_eq!(
            ask(&client).await,
            Ok(7),
            "no request fails while one serves"
        );
    }
    assert_eq!(starting.searches(), 1);
    assert_eq!(good.searches(), 64);

    starting.set_answer(found());
    starting.set_status("SERVING");
    eventually("the quarantine ends", async || {
        assert_eq!(ask(&client).await, Ok(7));
        starting.searches() > 1
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_an_error_goes_to_the_user() {
    for (status, body, text) in [
        (
            503,
            BUILDING,
            "HTTP status 503 Service Unavailable, message: 12.500%",
        ),
        (
            503,
            "busy",
            "HTTP status 503 Service Unavailable, message: busy",
        ),
        (
            500,
            "oh",
            "HTTP status 500 Internal Server Error, message: oh",
        ),
        (
            404,
            "missing index: ks.i",
            "HTTP status 404 Not Found, message: missing index: ks.i",
        ),
    ] {
        let store = FakeStore::start(Answer::of(status, body)).await;
        let spare = FakeStore::start(found()).await;
        let mut options = options(&[&store]);
        options.secondary_uris = vec![spare.uri()];
        let client = StoreClient::new(options).unwrap();
        for _ in 0..2 {
            let expected = format!("Vector Store error: {text}");
            assert_eq!(ask(&client).await, Err(expected));
        }
        assert_eq!((store.searches(), spare.searches()), (2, 0));
    }
}

const SERVING: &str = r#"{"status":"SERVING","count":3}"#;
const VERSION: Uuid = Uuid::from_u128(0x30b7_7a00_c8a8_11f0_8000_0000_0000_0001);

#[tokio::test]
async fn a_new_index_is_waited_for_until_all_services_serve_it() {
    let stores = [
        FakeStore::start(found()).await,
        FakeStore::start(found()).await,
    ];
    let mut options = options(&[&stores[0]]);
    options.base_uris.push(format!("http://{}", closed().await));
    options.secondary_uris = vec![stores[1].uri()];
    let client = StoreClient::new(options).unwrap();
    stores[0].set_index(200, SERVING);
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { waiting.created("ks", "i", VERSION, PATIENCE).await });
    stores[1].is_looked_at_twice().await;
    assert!(!waiting.is_finished(), "the second does not know it");
    stores[1].set_index(200, r#"{"status":"BOOTSTRAPPING","count":1}"#);
    stores[1].is_looked_at_twice().await;
    assert!(!waiting.is_finished(), "the second is building it");
    let earlier =
        r#"{"status":"SERVING","count":3,"version":"20b77a00-c8a8-11f0-8000-000000000001"}"#;
    stores[1].set_index(200, earlier);
    stores[1].is_looked_at_twice().await;
    assert!(
        !waiting.is_finished(),
        "the second has one of the name that is gone"
    );
    stores[1].set_index(200, SERVING);
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_new_index_is_not_waited_for_without_end() {
    let store = FakeStore::start(found()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    let waiting = client.created("ks", "i", VERSION, Duration::from_millis(20));
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    let disabled = StoreClient::disabled();
    let waiting = disabled.created("ks", "i", VERSION, PATIENCE);
    tokio::time::timeout(PATIENCE / 2, waiting).await.unwrap();
}

#[tokio::test]
async fn the_secondary_services_are_for_when_all_others_are_away() {
    let primary = FakeStore::start(found()).await;
    let secondary = FakeStore::start(found()).await;
    let mut options = options(&[&primary]);
    options.secondary_uris = vec![secondary.uri()];
    let client = StoreClient::new(options).unwrap();
    assert_eq!(ask(&client).await, Ok(7));
    assert_eq!(secondary.searches(), 0);
    primary.set_answer(bootstrapping());
    primary.set_status("BOOTSTRAPPING");
    assert_eq!(ask(&client).await, Ok(7));
    assert_eq!(secondary.searches(), 1);
}

#[tokio::test]
async fn the_callers_own_zone_comes_first() {
    let (near, far) = (
        FakeStore::start(found()).await,
        FakeStore::start(found()).await,
    );
    let mut options = options(&[&far, &near]);
    options.zones = ServiceZones {
        own: Some("a".to_owned()),
        of: HashMap::from([(near.uri(), "a".to_owned()), (far.uri(), "b".to_owned())]),
    };
    let client = StoreClient::new(options).unwrap();
    for _ in 0..64 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert_eq!((near.searches(), far.searches()), (64, 0));
    near.set_answer(bootstrapping());
    near.set_status("BOOTSTRAPPING");
    assert_eq!(ask(&client).await, Ok(7));
    assert_eq!(far.searches(), 1);
}

/// A name server with one name, and the number of times that it was queried.
fn names(addresses: Vec<SocketAddr>) -> (Lookup, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup: Lookup = Arc::new(move |host, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let addresses = addresses.clone();
        Box::pin(async move {
            match host.as_str() {
                "stores" => Ok(addresses),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        })
    });
    (lookup, asked)
}

fn named(name: &str) -> ClientOptions {
    ClientOptions {
        base_uris: vec![format!("http://{name}:1")],
        ..options(&[])
    }
}

#[tokio::test]
async fn a_name_stands_for_all_its_addresses() {
    let stores = [
        FakeStore::start(found()).await,
        FakeStore::start(found()).await,
    ];
    let mut addresses: Vec<SocketAddr> = stores.iter().map(FakeStore::address).collect();
    addresses.push(closed().await);
    let (lookup, asked) = names(addresses);
    let client = StoreClient::with_lookup(named("stores"), lookup).unwrap();
    for _ in 0..64 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    assert!(stores.iter().all(|store| store.searches() > 0));
    assert_eq!(
        stores[0].host(),
        "stores:1",
        "the name goes with the request"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_search_has_the_id_of_the_request_that_it_is_for() {
    let store = FakeStore::start(found()).await;
    let client = StoreClient::new(options(&[&store])).unwrap();
    let id = traces::RequestId::of("abc-1").unwrap();
    assert_eq!(id.scope(ask(&client)).await, Ok(7));
    assert_eq!(store.request_id().as_deref(), Some("abc-1"));
    assert_eq!(ask(&client).await, Ok(7));
    assert_eq!(store.request_id(), None);
}

#[tokio::test]
async fn a_name_is_looked_up_anew_when_none_of_its_addresses_answers() {
    let moved = FakeStore::start(found()).await;
    let address = Arc::new(std::sync::Mutex::new(closed().await));
    let lookup: Lookup = Arc::new({
        let address = address.clone();
        move |_, _| {
            let address = *address.lock().unwrap();
            Box::pin(async move { Ok(vec![address]) })
        }
    });
    let client = StoreClient::with_lookup(named("stores"), lookup).unwrap();
    let error = Err("Vector Store service is unavailable".to_owned());
    assert_eq!(ask(&client).await, error);
    *address.lock().unwrap() = moved.address();
    assert_eq!(ask(&client).await, error, "so soon");
    let inner = client.inner.as_ref().unwrap();
    inner.primary.forget_look_up().await;
    assert_eq!(ask(&client).await, Ok(7));
}

#[tokio::test]
async fn a_name_without_addresses_is_looked_up_no_more_often_than_every_five_seconds() {
    let (lookup, asked) = names(Vec::new());
    for name in ["stores", "nobody"] {
        asked.store(0, Ordering::SeqCst);
        let client = StoreClient::with_lookup(named(name), lookup.clone()).unwrap();
        for _ in 0..3 {
            let error = "Vector Store service address could not be fetched from DNS";
            assert_eq!(ask(&client).await, Err(error.to_owned()));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn the_texts_of_failure() {
    let disabled = StoreClient::new(options(&[])).unwrap();
    let error = "Vector Store is disabled";
    assert_eq!(ask(&disabled).await, Err(error.to_owned()));

    let nobody = ClientOptions {
        base_uris: vec![format!("http://{}", closed().await)],
        ..options(&[])
    };
    let nobody = StoreClient::new(nobody).unwrap();
    let error = "Vector Store service is unavailable";
    assert_eq!(ask(&nobody).await, Err(error.to_owned()));

    let silent = FakeStore::start(Answer::Never).await;
    let mut options = options(&[&silent]);
    options.request_timeout = Duration::from_millis(100);
    let error = "Vector Store request was aborted";
    assert_eq!(
        ask(&StoreClient::new(options).unwrap()).await,
        Err(error.to_owned())
    );

    let strange = FakeStore::start(Answer::of(200, "{}")).await;
    let strange = StoreClient::new(self::options(&[&strange])).unwrap();
    let error = "Vector Store returned an invalid JSON";
    assert_eq!(ask(&strange).await, Err(error.to_owned()));
}

#[tokio::test]
async fn a_service_without_a_certificate_that_we_believe_is_unavailable() {
    let (store, authority) = FakeStore::start_tls(found()).await;
    let mut options = options(&[]);
    options.base_uris = vec![format!("https://{}", store.address())];
    let error = StoreClient::new(options.clone()).unwrap_err().to_string();
    assert!(error.contains("no authorities"), "{error}");

    options.certificate_authorities = Some(authority);
    let client = StoreClient::new(options.clone()).unwrap();
    assert_eq!(ask(&client).await, Ok(7));

    let (_, another) = FakeStore::start_tls(found()).await;
    options.certificate_authorities = Some(another);
    let error = ask(&StoreClient::new(options.clone()).unwrap()).await;
    assert_eq!(error, Err("Vector Store service is unavailable".to_owned()));

    options.certificate_authorities = Some(b"nothing".to_vec());
    let error = StoreClient::new(options).unwrap_err().to_string();
    assert!(error.contains("no certificate"), "{error}");
}
