//! The film sample as it is compiled into the binary (see `samples/movies/README.md`).

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

static PARQUET: &[u8] = include_bytes!("../../../samples/movies/movies.parquet");

/// The dimensions of [`Film::plot_embedding`].
pub const DIMENSIONS: usize = 384;

/// A film of the sample.
#[derive(Clone, Debug)]
pub struct Film {
    pub id: i32,
    pub title: String,
    pub genre: String,
    /// `YYYY-MM-DD`.
    pub release_date: String,
    pub plot: String,
    pub plot_embedding: Vec<f32>,
}

/// Reads all films.
pub fn read() -> anyhow::Result<Vec<Film>> {
    let file = SerializedFileReader::new(Bytes::from_static(PARQUET)).context("the film sample")?;
    let group = file.get_row_group(0)?;
    let group = group.as_ref();
    let ids = column::<Int32Type>(group, "id")?;
    let titles = texts(group, "title")?;
    let genres = texts(group, "genre")?;
    let dates = texts(group, "release_date")?;
    let plots = texts(group, "plot")?;
    let embeddings = column::<FloatType>(group, "plot_embedding.list.element")?;
    ensure!(
        embeddings.len() == ids.len() * DIMENSIONS,
        "the film sample has {} vector elements for {} films",
        embeddings.len(),
        ids.len()
    );
    let films = ids
        .into_iter()
        .zip(titles)
        .zip(genres)
        .zip(dates)
        .zip(plots)
        .zip(embeddings.chunks_exact(DIMENSIONS))
        .map(
            |(((((id, title), genre), release_date), plot), embedding)| Film {
                id,
                title,
                genre,
                release_date,
                plot,
                plot_embedding: embedding.to_vec(),
            },
        );
    Ok(films.collect())
}

/// Reads all values of a leaf column, which must have no nulls.
fn column<T: DataType>(group: &dyn RowGroupReader, path: &str) -> anyhow::Result<Vec<T::T>> {
    let metadata = group.metadata();
    let position = metadata
        .columns()
        .iter()
        .position(|column| column.column_path().string() == path)
        .ok_or_else(|| anyhow!("the film sample has no column {path}"))?;
    let rows = usize::try_from(metadata.num_rows())?;
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(position)?);
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_records(
        rows,
        Some(&mut definition),
        Some(&mut repetition),
        &mut values,
    )?;
    Ok(values)
}

fn texts(group: &dyn RowGroupReader, path: &str) -> anyhow::Result<Vec<String>> {
    column::<ByteArrayType>(group, path)?
        .iter()
        .map(|bytes: &ByteArray| Ok(bytes.as_utf8()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_films_are_whole() {
        let films = read().unwrap();
        assert_eq!(films.len(), 10_000);
        assert_eq!(films[1].title, "Sherlock Holmes Baffled");
        for film in &films {
            let norm: f32 = film.plot_embedding.iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-3, "{}: {norm}", film.title);
        }
    }
}
