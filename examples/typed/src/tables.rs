//! The tables: a struct for each. The name of a table is the struct's in lower case.

use crate::mapping::{Vector, table};

table! {
    /// A book, with what its text means as a vector.
    pub struct Book {
        #[partition_key]
        pub isbn: String,
        pub title: String,
        pub genre: String,
        pub year: i32,
        pub subtitle: Option<String>,
        pub embedding: Vector<3>,
    }
}

table! {
    /// Of one book there may be very many: they are read page by page.
    pub struct Review {
        #[partition_key]
        pub isbn: String,
        #[clustering_key]
        pub number: i32,
        pub stars: i32,
        pub words: String,
    }
}
