//! Tests of the log of slow searches.

use std::io;
use std::sync::Mutex;

use super::*;

/// The lines that were logged.
#[derive(Clone, Default)]
struct LoggedLines(Arc<Mutex<Vec<u8>>>);

impl io::Write for LoggedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The fields of the lines about slow searches that requests to a service with `ks.idx` log. All
/// is on one thread, on which searches are computed, too.
async fn logged(requests: impl AsyncFnOnce(&Service)) -> Vec<Value> {
    let lines = LoggedLines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_writer(move || writer.clone())
        .finish();
    let logs = tracing::subscriber::set_default(subscriber);
    let service = Service::serving().await;
    requests(&service).await;
    drop(logs);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let slow = lines.filter(|line: &Value| line["target"] == "slow_query");
    let slow: Vec<Value> = slow.map(|line| line["fields"].clone()).collect();
    assert_eq!(service.slow_searches.count(), slow.len() as u64);
    slow
}

#[tokio::test]
async fn a_slow_search_is_logged_with_its_plan_and_without_its_values() {
    let filter =
        r#"{"restrictions": [{"type": "==", "lhs": "pk", "rhs": 1}], "allow_filtering": true}"#;
    let search = format!(r#"{{"vector": [3.25, 4.25], "limit": 7, "filter": {filter}}}"#);
    let slow = logged(async |service| {
        let answer = service.ann("idx", &search).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        // One without an index is none.
        let refused = service.ann("none", &search).await;
        assert_eq!(refused.status, 404, "{}", refused.body);
    })
    .await;
    let [line] = &slow[..] else {
        panic!("one line: {slow:?}");
    };
    assert_eq!(line["message"], "a slow search");
    assert_eq!(line["index"], "ks.idx");
    assert_eq!(line["rows"], 7);
    assert_eq!(line["is_filtered"], true);
    assert_eq!(line["is_answered"], true);
    assert_eq!(line["admitted"], 1);
    assert!(line["plan"].is_string(), "{line}");
    for number in ["duration_ms", "waited_ms"] {
        assert!(line[number].is_u64(), "{number}: {line}");
    }
    assert!(!line.to_string().contains("3.25"), "{line}");
}

#[tokio::test]
async fn a_search_that_fails_is_logged_too() {
    let slow = logged(async |service| {
        // The service never knows these writes.
        let search = r#"{"vector": [0, 0], "min_time_us": 7}"#;
        let request = hyper::Request::post(format!("{}/api/v1/indexes/ks/idx/ann", service.base))
            .header("content-type", "application/json")
            .header("x-request-timeout-ms", "20")
            .body(Full::new(Bytes::from(search)));
        let answer = service.http.request(request.unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), 503);
    })
    .await;
    let [line] = &slow[..] else {
        panic!("one line: {slow:?}");
    };
    assert_eq!(line["is_answered"], false);
    assert_eq!(line["plan"], Value::Null);
    assert!(line["waited_ms"].is_u64(), "{line}");
}
