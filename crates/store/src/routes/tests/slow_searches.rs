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

/// On one thread, on which searches are computed, too.
#[tokio::test]
async fn a_slow_search_is_logged_with_its_plan_and_without_its_values() {
    let lines = LoggedLines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let logs = tracing::subscriber::set_default(subscriber);
    let service = Service::serving().await;
    let filter =
        r#"{"restrictions": [{"type": "==", "lhs": "pk", "rhs": 1}], "allow_filtering": true}"#;
    let search = format!(r#"{{"vector": [3.25, 4.25], "limit": 7, "filter": {filter}}}"#);
    let answer = service.ann("idx", &search).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    drop(logs);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let slow: Vec<&str> = text
        .lines()
        .filter(|it| it.contains("slow_query"))
        .collect();
    let [line] = slow[..] else {
        panic!("one line: {text}");
    };
    for part in [
        "a slow search",
        "duration_ms=",
        "index=ks.idx",
        "rows=7",
        "is_filtered=true",
        "plan=\"",
        "admitted=1",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!line.contains("3.25"), "{line}");
    assert_eq!(service.slow_searches.count(), 1);
    // One that is refused is not a slow one.
    let refused = service.ann("none", &search).await;
    assert_eq!(refused.status, 404, "{}", refused.body);
    assert_eq!(service.slow_searches.count(), 1);
}
