//! A text column compares with text.

use typed_mapping::tables::Book;

fn main() {
    let _ = Book::genre().equals(5);
}
