//! A table has the columns of its struct.

use typed_mapping::tables::Book;

fn main() {
    let _ = Book::author().equals("Jane Austen");
}
