//! Waits until an index serves, or until a dropped index is forgotten.
//!
//! An index service looks at the schema now and then, usually once a second. Until it notices a
//! DROP INDEX it serves the old index under its name. ScyllaDB's service reports no version in the
//! status of an index, so nothing distinguishes that index from a later one of the same name and
//! options. So an index is made only once the service has forgotten the earlier one: an answer
//! about that name is then about the new index.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use indicatif::ProgressBar;
use store_api::types::{IndexState, IndexStatus};

use crate::servers::TableNames;
use crate::servers::cql_server::DatabaseSession;
use crate::servers::http_server::{self, ApiServer};

/// The pause between two requests for the status.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest time to wait until a server of the database hears that another server dropped an
/// index.
pub const DROPPING_MAX: Duration = Duration::from_secs(5);

/// The longest time to wait until an index service notices that an index was dropped. It takes a
/// second or two. A service that has just lost its connection to the database, or frees a large
/// index, takes longer.
pub const FORGETTING_MAX: Duration = Duration::from_secs(60);

/// Waits until the index service says that the index serves.
pub async fn serving(
    server: &ApiServer,
    names: &TableNames,
    deadline: Instant,
    progress: &ProgressBar,
) -> anyhow::Result<IndexStatus> {
    progress.set_length(100);
    loop {
        let status = http_server::index_status(server, names).await;
        if let Ok(status) = &status {
            if status.status == IndexState::Serving {
                return Ok(*status);
            }
            progress.set_position(status.build_progress as u64);
        }
        if Instant::now() > deadline {
            let last = status.context("the index is not known")?;
            bail!("the index is still {:?} (--patience)", last.status);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until the server answers `ANN OF` for the index.
pub async fn answering(
    database: &DatabaseSession,
    names: &TableNames,
    deadline: Instant,
) -> anyhow::Result<()> {
    let searches = database.searches(names, 1).await?;
    let dimensions = searches.dimensions()?;
    let mut vector = vec![0.0; dimensions];
    vector[0] = 1.0;
    loop {
        match searches.nearest(&vector).await {
            Ok(_) => return Ok(()),
            Err(failure) if Instant::now() > deadline => {
                bail!("the index does not serve (--patience): {}", failure.0)
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Waits until the database has no index of that name. The index service won't forget an index that
/// the database still has.
pub async fn dropped(
    database: &DatabaseSession,
    names: &TableNames,
    patience: Duration,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + patience;
    while database.has_index_name(names).await? {
        ensure!(
            Instant::now() < deadline,
            "keyspace {} already has an index {}; remove it with `annulus bench drop-index`, or name another with --index",
            names.keyspace,
            names.index
        );
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Waits until the index service has no such index, at most for `patience` and one answer. The
/// database must not have the index any more. A service that does not answer may still have the
/// index, so it is waited for as well.
pub async fn forgotten(
    server: &ApiServer,
    names: &TableNames,
    patience: Duration,
) -> anyhow::Result<()> {
    let TableNames {
        keyspace, index, ..
    } = names;
    let deadline = Instant::now() + patience;
    loop {
        let status = http_server::find_index_status(server, names).await;
        if let Ok(None) = status {
            return Ok(());
        }
        if Instant::now() > deadline {
            let seconds = patience.as_secs();
            return Err(match status {
                Ok(_) => anyhow!(
                    "{server} still knows an index {keyspace}.{index} after {seconds} s, but the database has none: check \
                     that the service reads the database that --cql names, and look at its log, or name another index with --index"
                ),
                Err(error) => error.context(format!(
                    "after {seconds} s it is not known whether the index service still has an earlier index \
                     {keyspace}.{index}: check that the service runs, and that --http names it"
                )),
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    const SERVING: &str = r#"{"status":"SERVING","count":3,"build_progress":100.0}"#;

    fn names() -> TableNames {
        TableNames {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            index: "i".to_owned(),
            key_column: "id".to_owned(),
            vector_column: "v".to_owned(),
        }
    }

    fn server_at(url: &str) -> ApiServer {
        ApiServer::from(url.parse::<http_server::ServerUrl>().unwrap())
    }

    /// A service that gives these answers in turn and then repeats the last one, and the number of
    /// answers it has given.
    async fn service(answers: &'static [(u16, &'static str)]) -> (ApiServer, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let given = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&given);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let turn = counter.fetch_add(1, Ordering::SeqCst);
                answer(stream, answers[turn.min(answers.len() - 1)]).await;
            }
        });
        (server_at(&url), given)
    }

    async fn answer(mut stream: TcpStream, (status, body): (u16, &str)) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        let path = b"GET /api/v1/indexes/ks/i/status HTTP/1.1\r\n";
        assert!(request.starts_with(path), "{request:?}");
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n\r\n");
        let whole = [head.as_bytes(), body.as_bytes()].concat();
        stream.write_all(&whole).await.unwrap();
    }

    #[tokio::test]
    async fn an_index_is_forgotten_when_it_is_not_found_and_not_before() {
        let answers = &[
            (200, SERVING),
            (500, "a fault"),
            (200, r#"{"status":"BOOTSTRAPPING","count":0}"#),
            (404, "missing index: ks.i"),
            (200, SERVING),
        ];
        let (server, given) = service(answers).await;
        let patience = Duration::from_secs(60);
        forgotten(&server, &names(), patience).await.unwrap();
        assert_eq!(given.load(Ordering::SeqCst), 4);
    }

    #[tokio::test]
    async fn one_that_stays_is_not_waited_for_without_end() {
        let (server, given) = service(&[(200, SERVING)]).await;
        let patience = Duration::from_secs(2);
        let waited = forgotten(&server, &names(), patience).await;
        let error = waited.unwrap_err().to_string();
        assert!(error.contains(&format!("{server} still knows")), "{error}");
        assert!(error.contains("ks.i after") && error.contains("--cql"));
        assert!(given.load(Ordering::SeqCst) > 1);
    }

    #[tokio::test]
    async fn an_unreachable_service_is_not_one_without_the_index() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);
        let patience = Duration::from_millis(100);
        let waited = forgotten(&server_at(&url), &names(), patience).await;
        let error = format!("{:#}", waited.unwrap_err());
        assert!(error.contains("earlier index ks.i"), "{error}");
        assert!(error.contains("cannot connect"), "{error}");
    }
}
