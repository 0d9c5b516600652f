//! Tests of the log of slow searches.

use super::*;
use crate::connection::test_connection::each_is_slow;

#[tokio::test]
async fn a_slow_search_is_logged_with_its_plan_and_without_its_literals() {
    let slow_queries = each_is_slow();
    let options = GatewayOptions {
        slow_queries: slow_queries.clone(),
        ..GatewayOptions::default()
    };
    let mut setup = setup_of(options, snapshot()).await;
    let id = setup.prepare().await;
    let by_text = query("SELECT name, v FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 1");
    for (search, skips_metadata) in [(by_text, false), (execute(&id, 1), true)] {
        setup.client.ask(&search, 3).await;
        let body = r#"{"primary_keys":{"id":["a"]},"similarity_scores":[1]}"#;
        setup.store.neighbours(body).await;
        let (stream, _) = setup.node.request().await;
        let answer = Response::Rows(rows(&[("Alien", "a", true)], skips_metadata));
        let context = ResponseContext::new(stream);
        setup.node.answer(&answer, &context).await;
        assert_eq!(names(&setup.client.response().await.1), ["Alien"]);
    }
    let [by_text, prepared] = &slow_queries.entries()[..] else {
        panic!("two searches");
    };
    let shown = "SELECT name, v FROM films ORDER BY v ANN OF [?...] LIMIT ?";
    assert_eq!(by_text.statement, shown);
    assert_eq!(prepared.statement, SELECT);
    assert_ne!(by_text.request_id, prepared.request_id);
    for slow in [by_text, prepared] {
        let plan = slow.plan.as_deref().unwrap();
        assert!(plan.starts_with("nearest v by index "), "{plan}");
        assert_eq!(slow.keyspace.as_deref(), Some("shop"));
        assert_eq!(slow.client, setup.client.socket.local_addr().unwrap());
        assert_eq!(slow.role, None);
        assert!(slow.request_id.is_some());
    }
}
