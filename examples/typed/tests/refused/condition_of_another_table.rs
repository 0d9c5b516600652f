//! Books are not selected by a column of reviews.

use typed_mapping::database::Database;
use typed_mapping::tables::Review;

fn good_books(database: &Database) {
    let _ = database.books.select([Review::stars().at_least(4)]);
}

fn main() {}
