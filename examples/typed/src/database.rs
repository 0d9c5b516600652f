//! The tables of one keyspace, over one connection.

use std::sync::Arc;

use scylla::client::caching_session::CachingSessionBuilder;
use scylla::client::session_builder::SessionBuilder;

use crate::Result;
use crate::mapping::Rows;
use crate::tables::{Book, Review};

/// All that the application has in CQL.
pub struct Database {
    pub books: Rows<Book>,
    pub reviews: Rows<Review>,
}

impl Database {
    /// Connects, and creates the keyspace, the tables and the index that are not there yet.
    ///
    /// # Errors
    /// If the database is away, or refuses a definition.
    pub async fn open(address: &str, keyspace: &str) -> Result<Self> {
        let session = SessionBuilder::new().known_node(address).build().await?;
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let create =
            format!("CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {replication}");
        session.query_unpaged(create, ()).await?;
        session.use_keyspace(keyspace, false).await?;
        // Statements are prepared once, so that the driver knows the partition of each request, and
        // sends it to the node and the shard that have it.
        let session = Arc::new(CachingSessionBuilder::new(session).build());
        let database = Self {
            books: Rows::new(Arc::clone(&session)),
            reviews: Rows::new(session),
        };
        database.books.create_table().await?;
        database.reviews.create_table().await?;
        database
            .books
            .create_vector_index(
                Book::embedding(),
                &[Book::genre().name(), Book::year().name()],
            )
            .await?;
        Ok(database)
    }
}
