//! Writes three books and 250 reviews, then searches and reads them.

use std::env::var;

use futures_util::TryStreamExt;
use typed_mapping::Result;
use typed_mapping::database::Database;
use typed_mapping::library::Library;
use typed_mapping::mapping::Vector;
use typed_mapping::tables::{Book, Review};

#[tokio::main]
async fn main() -> Result<()> {
    let address = var("ANNULUS_CQL").unwrap_or_else(|_| "127.0.0.1:9042".to_owned());
    let library = Library::new(Database::open(&address, "library").await?);
    for book in books() {
        library.add(&book).await?;
    }

    let found = library.book("9780141439518").await?;
    println!(
        "by its key: {}",
        found.map_or("none".to_owned(), |book| book.title)
    );
    for book in library
        .like(&Vector([0.9, 0.1, 0.0]), "novel", 1800)
        .await?
    {
        println!("like it: {} ({})", book.title, book.year);
    }

    for number in 0..250 {
        let (isbn, words) = ("9780141439518".to_owned(), format!("opinion {number}"));
        library
            .review(&Review {
                isbn,
                number,
                stars: number % 5 + 1,
                words,
            })
            .await?;
    }
    let mut reviews = library.reviews("9780141439518").await?;
    let (mut count, mut stars) = (0, 0);
    while let Some(review) = reviews.try_next().await? {
        count += 1;
        stars += review.stars;
    }
    println!("reviews: {count} with {stars} stars");
    Ok(())
}

fn books() -> [Book; 3] {
    let book = |isbn: &str, title: &str, genre: &str, year, embedding| Book {
        isbn: isbn.to_owned(),
        title: title.to_owned(),
        genre: genre.to_owned(),
        year,
        subtitle: None,
        embedding: Vector(embedding),
    };
    [
        book(
            "9780141439518",
            "Pride and Prejudice",
            "novel",
            1813,
            [1.0, 0.0, 0.0],
        ),
        book("9780141441146", "Jane Eyre", "novel", 1847, [0.7, 0.7, 0.0]),
        book(
            "9780199219766",
            "The Voyage of the Beagle",
            "travel",
            1839,
            [0.9, 0.1, 0.1],
        ),
    ]
}
