//! A column that may be null compares as strictly as one that may not.

use typed_mapping::tables::Book;

fn main() {
    let _ = Book::subtitle().equals(5);
}
