//! A review is no book.

use typed_mapping::Result;
use typed_mapping::database::Database;
use typed_mapping::tables::Review;

async fn add(database: &Database, review: &Review) -> Result<()> {
    database.books.insert(review).await
}

fn main() {}
