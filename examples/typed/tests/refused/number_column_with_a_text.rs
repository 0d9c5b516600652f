//! A number column compares with numbers.

use typed_mapping::tables::Book;

fn main() {
    let _ = Book::year().at_least("1813");
}
