//! Tests of clients of one service, and of changes, which are sent to one service only.

use super::*;
use crate::NotOneService;
use crate::types::RepairRequest;

async fn of_one_service(addresses: Vec<SocketAddr>) -> Result<StoreClient, NotOneService> {
    StoreClient::of_one_service_by(named("stores"), names(addresses).0).await
}

#[tokio::test]
async fn a_name_of_several_machines_is_refused() {
    let addresses = vec![([10, 0, 0, 2], 1).into(), ([10, 0, 0, 1], 1).into()];
    let error = of_one_service(addresses).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "http://stores:1 names several services (10.0.0.1:1, 10.0.0.2:1): name one"
    );
}

#[tokio::test]
async fn of_the_addresses_of_this_machine_the_first_that_answers_is_asked() {
    let stores = [
        FakeStore::start(found()).await,
        FakeStore::start(found()).await,
    ];
    let mut addresses: Vec<SocketAddr> = stores.iter().map(FakeStore::address).collect();
    addresses.push(closed().await);
    let client = of_one_service(addresses).await.unwrap();
    for _ in 0..32 {
        assert_eq!(ask(&client).await, Ok(7));
    }
    let searches = stores.map(|store| store.searches());
    assert!([[32, 0], [0, 32]].contains(&searches), "{searches:?}");
}

#[tokio::test]
async fn an_unreachable_service_is_an_error() {
    let client = of_one_service(vec![closed().await, closed().await]).await;
    let error = "Vector Store service is unavailable".to_owned();
    assert_eq!(ask(&client.unwrap()).await, Err(error));
    let client = of_one_service(Vec::new()).await;
    let error = "Vector Store service address could not be fetched from DNS".to_owned();
    assert_eq!(ask(&client.unwrap()).await, Err(error));
}

#[tokio::test]
async fn a_change_is_asked_of_one_service_alone() {
    let stores = [
        FakeStore::start(bootstrapping()).await,
        FakeStore::start(bootstrapping()).await,
        FakeStore::start(bootstrapping()).await,
    ];
    let mut options = options(&[&stores[0], &stores[1]]);
    options.secondary_uris = vec![stores[2].uri()];
    let client = StoreClient::new(options).unwrap();
    let refused = client.repair("ks", "i", RepairRequest::default()).await;
    assert_eq!(refused, Err(ClientError::Unavailable));
    let asked: usize = stores.iter().map(FakeStore::searches).sum();
    assert_eq!(asked, 1);
}
