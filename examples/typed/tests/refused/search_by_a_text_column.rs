//! Only a column of vectors is searched for the nearest.

use typed_mapping::Result;
use typed_mapping::database::Database;
use typed_mapping::mapping::Vector;
use typed_mapping::tables::Book;

async fn nearest(database: &Database) -> Result<Vec<Book>> {
    database
        .books
        .nearest(Book::title(), &Vector([1.0, 0.0, 0.0]), [], 5)
        .await
}

fn main() {}
