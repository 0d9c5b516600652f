//! The service of an application: all that it may do with the books.

use scylla::client::pager::TypedRowStream;

use crate::Result;
use crate::database::Database;
use crate::mapping::Vector;
use crate::tables::{Book, Review};

/// The tables are private, so that a caller can't write a statement of its own.
pub struct Library {
    database: Database,
}

impl Library {
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// # Errors
    /// If the database is away or refuses the row, as in all methods.
    pub async fn add(&self, book: &Book) -> Result<()> {
        self.database.books.insert(book).await
    }

    pub async fn review(&self, review: &Review) -> Result<()> {
        self.database.reviews.insert(review).await
    }

    pub async fn book(&self, isbn: &str) -> Result<Option<Book>> {
        self.database.books.get(Book::key(isbn)).await
    }

    /// The books of a genre, from a year on, whose meaning is nearest.
    pub async fn like(&self, meaning: &Vector<3>, genre: &str, since: i32) -> Result<Vec<Book>> {
        let filter = [Book::genre().equals(genre), Book::year().at_least(since)];
        self.database
            .books
            .nearest(Book::embedding(), meaning, filter, 5)
            .await
    }

    /// All reviews of a book in their order. The driver fetches the next page while one is read.
    pub async fn reviews(&self, isbn: &str) -> Result<TypedRowStream<Review>> {
        self.database
            .reviews
            .select([Review::isbn().equals(isbn)])
            .await
    }
}
