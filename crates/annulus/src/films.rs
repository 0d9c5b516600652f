//! The film sample as it is compiled into the binary (see `samples/movies/README.md`).

use std::iter;

use anyhow::{Context, ensure};

/// The texts of all films, as `samples/movies/pack.py` packs them.
static TEXTS: &[u8] = include_bytes!("../../../samples/movies/texts.lz4");
/// The embeddings of all films, rounded to a byte per element.
static VECTORS: &[u8] = include_bytes!("../../../samples/movies/vectors.i8");

/// The dimensions of [`SampleFilm::plot_embedding`].
pub const DIMENSIONS: usize = 384;

/// A film of the sample.
#[derive(Clone, Debug)]
pub struct SampleFilm {
    pub id: i32,
    pub title: String,
    pub genre: String,
    /// `YYYY-MM-DD`.
    pub release_date: String,
    pub plot: String,
    pub plot_embedding: Vec<f32>,
}

/// Reads all films.
pub fn read() -> anyhow::Result<Vec<SampleFilm>> {
    let texts = lz4_flex::block::decompress_size_prepended(TEXTS)
        .context("the texts of the film sample")?;
    let texts = str::from_utf8(&texts).context("the texts of the film sample")?;
    let fields: Vec<&str> = texts.split_terminator('\0').collect();
    let (films, fields_left) = fields.as_chunks::<4>();
    let (vectors, bytes_left) = VECTORS.as_chunks::<DIMENSIONS>();
    ensure!(
        fields_left.is_empty() && bytes_left.is_empty() && films.len() == vectors.len(),
        "the film sample has {} texts and {} bytes of vectors",
        fields.len(),
        VECTORS.len()
    );
    let films = iter::zip(films, vectors).zip(1..);
    let films = films.map(|((texts, vector), id)| film(id, texts, vector));
    Ok(films.collect())
}

fn film(id: i32, texts: &[&str; 4], vector: &[u8; DIMENSIONS]) -> SampleFilm {
    let [title, genre, release_date, plot] = texts.map(str::to_owned);
    SampleFilm {
        id,
        title,
        genre,
        release_date,
        plot,
        plot_embedding: embedding(vector),
    }
}

/// Returns the embedding of length 1 that was rounded to these bytes.
fn embedding(vector: &[u8; DIMENSIONS]) -> Vec<f32> {
    let elements = vector.map(|byte| f32::from(byte.cast_signed()));
    let square: f32 = elements.iter().map(|element| element * element).sum();
    let length = square.sqrt();
    elements.iter().map(|element| element / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_films_are_whole() {
        let films = read().unwrap();
        assert_eq!(films.len(), 10_000);
        assert_eq!(films[1].title, "Sherlock Holmes Baffled");
        for (film, id) in iter::zip(&films, 1..) {
            assert_eq!(film.id, id);
            assert_eq!(film.release_date.len(), "1900-01-01".len());
            assert!(film.plot.len() >= 200, "{}: {}", film.title, film.plot);
            let norm: f32 = film.plot_embedding.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-3, "{}: {norm}", film.title);
        }
    }
}
