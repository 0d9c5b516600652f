//! A caller of the service has no statement of its own.

use typed_mapping::Result;
use typed_mapping::library::Library;

async fn all(library: &Library) -> Result<()> {
    library.database.books.select([]).await?;
    Ok(())
}

fn main() {}
