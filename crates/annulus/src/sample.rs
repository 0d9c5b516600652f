//! Loading a sample through CQL, as a user would.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::civil::Date;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::value::{CqlDate, CqlValue};

use crate::films::{self, DIMENSIONS, Film};

/// The number of inserts in flight.
const INSERTS_IN_FLIGHT: usize = 64;
/// The film whose neighbours the prepared query asks for.
const EXAMPLE_TITLE: &str = "King Kong";
const INDEX_WAIT: Duration = Duration::from_secs(300);

/// Loads the films unless they are there, waits for their index, and prints suggestions of things
/// to try.
///
/// `data_dir` is the directory for the file with the prepared query.
pub async fn load_movies(cql: SocketAddr, http: SocketAddr, data_dir: &Path) -> anyhow::Result<()> {
    let session = SessionBuilder::new()
        .known_node_addr(cql)
        .build()
        .await
        .context("connecting to load the sample")?;
    let films = films::read()?;
    create_schema(&session).await?;
    if count(&session).await? == films.len() as i64 {
        tracing::info!(films = films.len(), "the film sample is loaded already");
    } else {
        insert(&session, &films).await?;
    }
    wait_for_index(&session, &films[0]).await?;
    let query = write_query(data_dir, &films)?;
    print_what_to_try(cql, http, &query);
    Ok(())
}

async fn create_schema(session: &Session) -> anyhow::Result<()> {
    for statement in [
        "CREATE KEYSPACE IF NOT EXISTS samples WITH replication = \
         {'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"
            .to_owned(),
        format!(
            "CREATE TABLE IF NOT EXISTS samples.movies (id int PRIMARY KEY, title text, genre text, \
             release_date date, plot text, plot_embedding vector<float, {DIMENSIONS}>)"
        ),
        "CREATE CUSTOM INDEX IF NOT EXISTS movies_by_plot ON samples.movies (plot_embedding) \
         USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}"
            .to_owned(),
    ] {
        session.query_unpaged(statement, ()).await?;
    }
    Ok(())
}

async fn count(session: &Session) -> anyhow::Result<i64> {
    let rows = session
        .query_unpaged("SELECT count(*) FROM samples.movies", ())
        .await?
        .into_rows_result()?;
    Ok(rows.single_row::<(i64,)>()?.0)
}

async fn insert(session: &Session, films: &[Film]) -> anyhow::Result<()> {
    let statement = session
        .prepare(
            "INSERT INTO samples.movies (id, title, genre, release_date, plot, plot_embedding) \
             VALUES (?, ?, ?, ?, ?, ?)",
        )
        .await?;
    let bar = ProgressBar::new(films.len() as u64).with_style(ProgressStyle::with_template(
        "Loading films {bar:40} {pos}/{len} {per_sec} {eta}",
    )?);
    stream::iter(films)
        .map(|film| {
            let (session, statement, bar) = (&session, &statement, &bar);
            async move {
                let date = CqlDate(days(&film.release_date)?);
                session
                    .execute_unpaged(
                        statement,
                        (
                            film.id,
                            &film.title,
                            &film.genre,
                            CqlValue::Date(date),
                            &film.plot,
                            &film.plot_embedding,
                        ),
                    )
                    .await?;
                bar.inc(1);
                anyhow::Ok(())
            }
        })
        .buffer_unordered(INSERTS_IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    bar.finish();
    Ok(())
}

/// Waits until `ANN OF` is answered. Until then its error tells the progress of the index.
async fn wait_for_index(session: &Session, film: &Film) -> anyhow::Result<()> {
    let statement = session
        .prepare("SELECT id FROM samples.movies ORDER BY plot_embedding ANN OF ? LIMIT 1")
        .await?;
    let deadline = Instant::now() + INDEX_WAIT;
    loop {
        match session
            .execute_unpaged(&statement, (&film.plot_embedding,))
            .await
        {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => {
                bail!("the index of the sample is not ready: {error}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Writes a query into a file that cqlsh reads, as a vector is too long to type.
fn write_query(data_dir: &Path, films: &[Film]) -> anyhow::Result<String> {
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

fn print_what_to_try(cql: SocketAddr, http: SocketAddr, query: &str) {
    let (host, port) = (cql.ip(), cql.port());
    println!(
        "Three things to try:\n  \
         cqlsh {host} {port} -f '{query}'\n      \
         the films most like \"{EXAMPLE_TITLE}\"\n  \
         make films PORT={port} QUERY=\"a lonely robot learns to love\"\n      \
         the films that a sentence describes (examples/films)\n  \
         curl http://{http}/api/v1/indexes/samples/movies_by_plot/status\n      \
         the state of the index"
    );
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
    use super::days;

    #[test]
    fn days_count_from_the_epoch_at_the_middle() {
        assert_eq!(days("1970-01-01").unwrap(), 1 << 31);
        assert_eq!(days("1970-03-01").unwrap(), (1 << 31) + 59);
        assert_eq!(days("1900-01-01").unwrap(), (1 << 31) - 25_567);
        assert!(days("soon").is_err());
    }
}
