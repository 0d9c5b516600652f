//! Tests of searches around maintenance.

use http_server::MaintenanceMode;
use test_support::eventually;

use super::*;

#[tokio::test]
async fn a_search_that_has_begun_goes_on_during_maintenance() {
    let maintenance = MaintenanceMode::default();
    let options = GatewayOptions {
        maintenance: maintenance.clone(),
        ..GatewayOptions::default()
    };
    let mut setup = setup_of(options, snapshot()).await;
    let search = query("SELECT name, v FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 1");
    setup.client.ask(&search, 3).await;
    let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
    setup.store.neighbours(body).await;
    let (stream, _) = setup.node.request().await;
    assert_eq!(maintenance.in_progress(), 1);
    maintenance.set(true);
    setup.client.ask(&search, 4).await;
    let (context, refusal) = setup.client.response().await;
    assert_eq!(context.stream, 4);
    assert!(
        matches!(&refusal, Response::Error(error) if error.kind == ErrorKind::IsBootstrapping),
        "{refusal:?}"
    );
    let answer = Response::Rows(rows(&[("Alien", "a", true)], false));
    let context = ResponseContext::new(stream);
    setup.node.answer(&answer, &context).await;
    let (context, answer) = setup.client.response().await;
    assert_eq!(context.stream, 3);
    assert_eq!(names(&answer), ["Alien"]);
    eventually("no search is in progress", async || {
        maintenance.in_progress() == 0
    })
    .await;
}
