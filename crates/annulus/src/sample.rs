//! Loading a sample by CQL statements in this process, whatever clients have to prove: at the start
//! (`--sample`), or as a task that a request begins ([`crate::sample_loads`]).

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::civil::Date;
use node::InternalExecutor;
use node::statement::{BoundValue, ExecutionOutcome};
use tasks::Task;

use crate::films::{self, DIMENSIONS, SampleFilm};

/// The number of inserts in flight.
const INSERTS_IN_FLIGHT: usize = 64;
/// The film whose neighbours the prepared query requests.
const EXAMPLE_TITLE: &str = "King Kong";
const INDEX_WAIT: Duration = Duration::from_secs(300);
/// The index by which words find films. `--sample` does without it.
const INDEX_ON_WORDS: &str = "CREATE CUSTOM INDEX IF NOT EXISTS movies_by_words ON samples.movies (plot) \
                              USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}";
/// A search by that index.
const SEARCH_BY_WORDS: &str = "SELECT id FROM samples.movies ORDER BY BM25(plot, 'robot') LIMIT 1";

/// The ways to the sample, as clients see them.
#[derive(Clone, Copy, Debug)]
pub struct ClientEndpoints {
    pub cql: SocketAddr,
    pub http: SocketAddr,
    /// Whether clients have to log in.
    pub login: bool,
    /// Whether both ports are under TLS.
    pub tls: bool,
}

/// Loads the films unless they are there, waits for their index, and prints suggestions of things
/// to try. With logins the tables belong to no one: superusers read them, and grant others what
/// they need.
///
/// `data_dir` is the directory for the file with the prepared query.
pub async fn load_movies(
    database: &InternalExecutor,
    doors: ClientEndpoints,
    data_dir: &Path,
) -> anyhow::Result<()> {
    let films = films::read()?;
    create_schema(database).await?;
    if count(database).await? == films.len() as i64 {
        tracing::info!(films = films.len(), "the film sample is loaded already");
    } else {
        let style = "Loading films {bar:40} {pos}/{len} {per_sec} {eta}";
        let bar =
            ProgressBar::new(films.len() as u64).with_style(ProgressStyle::with_template(style)?);
        insert(database, &films, |films| bar.inc(films)).await?;
        bar.finish();
    }
    wait_for_index(database, &films[0]).await?;
    let query = write_query(data_dir, &films)?;
    println!("{}", example_statements(doors, &query));
    Ok(())
}

/// Loads the films unless they are there, and waits for their indexes: the one on the embeddings,
/// and one on the words of the plots. The task counts the films.
pub async fn load_movies_as_task(database: &InternalExecutor, task: &Task) -> anyhow::Result<()> {
    let films = tokio::task::spawn_blocking(films::read).await??;
    let all = films.len() as u64;
    task.set_total(all);
    create_schema(database).await?;
    if count(database).await? != films.len() as i64 {
        insert(database, &films, |films| task.add(films)).await?;
    }
    task.set_completed(all);
    database.execute(INDEX_ON_WORDS, Vec::new()).await?;
    wait_for_index(database, &films[0]).await?;
    wait_for_answer(database, SEARCH_BY_WORDS, &[]).await
}

async fn create_schema(database: &InternalExecutor) -> anyhow::Result<()> {
    for statement in [
        "CREATE KEYSPACE IF NOT EXISTS samples WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}",
        &format!(
            "CREATE TABLE IF NOT EXISTS samples.movies (id int PRIMARY KEY, title text, genre text, \
             release_date date, plot text, plot_embedding vector<float, {DIMENSIONS}>)"
        ),
        "CREATE CUSTOM INDEX IF NOT EXISTS movies_by_plot ON samples.movies (plot_embedding) \
         USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}",
    ] {
        database.execute(statement, Vec::new()).await?;
    }
    Ok(())
}

async fn count(database: &InternalExecutor) -> anyhow::Result<i64> {
    let statement = "SELECT count(*) FROM samples.movies";
    let answer = database.execute(statement, Vec::new()).await?;
    let ExecutionOutcome::Rows(rows) = answer.outcome else {
        bail!("{statement} has no rows");
    };
    // The only cell: its length, and a bigint.
    let count = rows.body.get(4..12).context("a count has eight bytes")?;
    Ok(i64::from_be_bytes(count.try_into()?))
}

/// Writes the films. `inserted` gets the number of films that have been written since it was called
/// last.
async fn insert(
    database: &InternalExecutor,
    films: &[SampleFilm],
    inserted: impl Fn(u64) + Sync,
) -> anyhow::Result<()> {
    // By position: a future that takes a film by reference can't be sent to another thread.
    stream::iter(0..films.len())
        .map(|at| {
            let (film, inserted) = (&films[at], &inserted);
            async move {
                let statement = "INSERT INTO samples.movies (id, title, genre, release_date, plot, plot_embedding) \
                                 VALUES (?, ?, ?, ?, ?, ?)";
                database.execute(statement, values(film)?).await?;
                inserted(1);
                anyhow::Ok(())
            }
        })
        .buffer_unordered(INSERTS_IN_FLIGHT)
        .try_collect::<()>()
        .await
}

/// The values of a film's row, as the native protocol carries them.
fn values(film: &SampleFilm) -> anyhow::Result<Vec<BoundValue>> {
    let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let values = [
        Bytes::copy_from_slice(&film.id.to_be_bytes()),
        text(&film.title),
        text(&film.genre),
        Bytes::copy_from_slice(&days(&film.release_date)?.to_be_bytes()),
        text(&film.plot),
        vector(&film.plot_embedding),
    ];
    Ok(values.into_iter().map(BoundValue::Value).collect())
}

fn vector(elements: &[f32]) -> Bytes {
    let bytes = elements.iter().flat_map(|element| element.to_be_bytes());
    bytes.collect()
}

/// Waits until `ANN OF` is answered.
async fn wait_for_index(database: &InternalExecutor, film: &SampleFilm) -> anyhow::Result<()> {
    let statement = "SELECT id FROM samples.movies ORDER BY plot_embedding ANN OF ? LIMIT 1";
    let vector = BoundValue::Value(vector(&film.plot_embedding));
    wait_for_answer(database, statement, &[vector]).await
}

/// Waits until a search is answered. Until then its error reports the progress of the index.
async fn wait_for_answer(
    database: &InternalExecutor,
    statement: &str,
    values: &[BoundValue],
) -> anyhow::Result<()> {
    let deadline = Instant::now() + INDEX_WAIT;
    loop {
        match database.execute(statement, values.to_vec()).await {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                bail!("the index of the sample is not ready: {error}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Writes a query into a file that cqlsh reads, as a vector is too long to type.
fn write_query(data_dir: &Path, films: &[SampleFilm]) -> anyhow::Result<String> {
    let film = films
        .iter()
        .find(|film| film.title == EXAMPLE_TITLE)
        .unwrap_or(&films[0]);
    let mut vector = String::new();
    for (position, element) in film.plot_embedding.iter().enumerate() {
        let comma = if position > 0 { ", " } else { "" };
        write!(vector, "{comma}{element}")?;
    }
    let path = data_dir.join("films-like-king-kong.cql");
    let text = format!(
        "SELECT title, release_date, similarity_cosine(plot_embedding, [{vector}]) AS similarity \
         FROM samples.movies ORDER BY plot_embedding ANN OF [{vector}] LIMIT 5;\n"
    );
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path.display().to_string())
}

fn example_statements(doors: ClientEndpoints, query: &str) -> String {
    let ClientEndpoints { cql, http, .. } = doors;
    let (host, port) = (cql.ip(), cql.port());
    let (ask, scheme, authority) = match doors.tls {
        true => (
            "SSL_CERTFILE=ca.pem cqlsh --ssl",
            "https",
            " --cacert ca.pem",
        ),
        false => ("cqlsh", "http", ""),
    };
    let role = if doors.login { " -u ROLE" } else { "" };
    let mut things = format!(
        "Things to try:\n  \
         {ask}{role} {host} {port} -f '{query}'\n      \
         the films most like \"{EXAMPLE_TITLE}\"\n  \
         curl{authority}{role} {scheme}://{http}/api/v1/indexes/samples/movies_by_plot/status\n      \
         the state of the index"
    );
    // The example speaks no TLS and logs in nowhere.
    if !doors.tls && !doors.login {
        things += &format!(
            "\n  make films PORT={port} QUERY=\"a lonely robot learns to love\"\n      \
             the films that a sentence describes (apps/films)"
        );
    }
    things
}

/// Converts `YYYY-MM-DD` to days, with the epoch at 2^31.
fn days(date: &str) -> anyhow::Result<u32> {
    let date: Date = date
        .parse()
        .with_context(|| format!("{date:?} is no date"))?;
    let days = (date - Date::constant(1970, 1, 1)).get_days();
    Ok((1_u32 << 31).wrapping_add_signed(days))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_count_from_the_epoch_at_the_middle() {
        assert_eq!(days("1970-01-01").unwrap(), 1 << 31);
        assert_eq!(days("1970-03-01").unwrap(), (1 << 31) + 59);
        assert_eq!(days("1900-01-01").unwrap(), (1 << 31) - 25_567);
        assert!(days("soon").is_err());
    }
    #[test]
    fn things_to_try_say_how_to_get_in() {
        let open = ClientEndpoints {
            cql: "127.0.0.1:1".parse().unwrap(),
            http: "127.0.0.1:2".parse().unwrap(),
            login: false,
            tls: false,
        };
        let said = example_statements(open, "q.cql");
        assert!(said.contains("cqlsh 127.0.0.1 1 -f 'q.cql'"), "{said}");
        assert!(said.contains("make films PORT=1"), "{said}");
        let closed = ClientEndpoints {
            login: true,
            tls: true,
            ..open
        };
        let said = example_statements(closed, "q.cql");
        assert!(said.contains("cqlsh --ssl -u ROLE 127.0.0.1 1"), "{said}");
        assert!(
            said.contains("curl --cacert ca.pem -u ROLE https://127.0.0.1:2/"),
            "{said}"
        );
        assert!(!said.contains("make films"), "{said}");
    }
}
