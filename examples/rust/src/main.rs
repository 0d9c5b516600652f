//! Finds books by vectors and by words.

use std::env;
use std::error::Error;

use scylla::SerializeRow;
use scylla::client::session_builder::SessionBuilder;
use scylla::response::query_result::QueryResult;

const SCHEMA: [&str; 4] = [
    "
    CREATE KEYSPACE IF NOT EXISTS quickstart
        WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
    ",
    "
    CREATE TABLE IF NOT EXISTS quickstart.books
        (id int PRIMARY KEY, title text, year int, about text, embedding vector<float, 3>)
    ",
    // The columns after the first are those that searches filter by.
    "
    CREATE CUSTOM INDEX IF NOT EXISTS books_by_embedding ON quickstart.books (embedding, year)
        USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}
    ",
    "
    CREATE CUSTOM INDEX IF NOT EXISTS books_by_words ON quickstart.books (about, year)
        USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}
    ",
];
const INSERT: &str =
    "INSERT INTO quickstart.books (id, title, year, about, embedding) VALUES (?, ?, ?, ?, ?)";
const FILTERED: &str =
    "SELECT title, year FROM quickstart.books WHERE year >= ? ORDER BY embedding ANN OF ? LIMIT 2";
const HYBRID: &str = "SELECT title, year FROM quickstart.books ORDER BY RRF(ANN(embedding, ?), BM25(about, ?)) LIMIT 2";

#[derive(SerializeRow)]
struct Book {
    id: i32,
    title: &'static str,
    year: i32,
    about: &'static str,
    embedding: &'static [f32],
}

// A model makes such vectors of texts. Here the numbers say how much sea, space and love is in a
// book.
const BOOKS: [Book; 4] = [
    Book {
        id: 1,
        title: "Moby-Dick",
        year: 1851,
        about: "A captain hunts a white whale across the oceans.",
        embedding: &[0.9, 0.0, 0.1],
    },
    Book {
        id: 2,
        title: "Pride and Prejudice",
        year: 1813,
        about: "Two proud people learn to love.",
        embedding: &[0.0, 0.0, 1.0],
    },
    Book {
        id: 3,
        title: "The Old Man and the Sea",
        year: 1952,
        about: "An old man rows out alone for one great fish.",
        embedding: &[0.9, 0.0, 0.3],
    },
    Book {
        id: 4,
        title: "Solaris",
        year: 1961,
        about: "Far from the Earth, an ocean thinks.",
        embedding: &[0.5, 0.8, 0.4],
    },
];
const SEA: &[f32] = &[1.0, 0.0, 0.0];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = env::var("ANNULUS_CQL").unwrap_or_else(|_| "127.0.0.1:9042".to_owned());
    let session = SessionBuilder::new().known_node(server).build().await?;
    for statement in SCHEMA {
        session.query_unpaged(statement, ()).await?;
    }

    // A driver learns from a prepared statement that a marker is a vector.
    let insert = session.prepare(INSERT).await?;
    for book in &BOOKS {
        session.execute_unpaged(&insert, book).await?;
    }

    let filtered = session.prepare(FILTERED).await?;
    let books = session.execute_unpaged(&filtered, (1900, SEA)).await?;
    show("Near the sea, since 1900:", books)?;

    let hybrid = session.prepare(HYBRID).await?;
    let books = session.execute_unpaged(&hybrid, (SEA, "ocean")).await?;
    show("Near the sea, or about an ocean:", books)
}

fn show(question: &str, books: QueryResult) -> Result<(), Box<dyn Error>> {
    println!("{question}");
    let books = books.into_rows_result()?;
    for book in books.rows::<(&str, i32)>()? {
        let (title, year) = book?;
        println!("  {title} ({year})");
    }
    Ok(())
}
