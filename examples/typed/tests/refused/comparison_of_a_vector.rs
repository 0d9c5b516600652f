//! Vectors are searched, not compared.

use typed_mapping::mapping::Vector;
use typed_mapping::tables::Book;

fn main() {
    let _ = Book::embedding().equals(&Vector([1.0, 0.0, 0.0]));
}
