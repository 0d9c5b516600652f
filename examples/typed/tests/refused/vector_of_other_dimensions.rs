//! The number of dimensions is part of the type.

use typed_mapping::Result;
use typed_mapping::library::Library;
use typed_mapping::mapping::Vector;
use typed_mapping::tables::Book;

async fn like(library: &Library) -> Result<Vec<Book>> {
    library.like(&Vector([1.0, 0.0]), "novel", 1800).await
}

fn main() {}
