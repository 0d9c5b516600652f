//! Writes the binary forms.

use bytes::Bytes;

use super::{HEAD_BYTES, WORD_BYTES};

/// The body of a search: the elements of its vector.
pub fn vector(elements: &[f32]) -> Bytes {
    let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()).collect();
    bytes.into()
}

/// Writes an answer: first the distances and scores of the rows, then one column after the other.
#[derive(Debug)]
pub struct Writer {
    out: Vec<u8>,
    rows: usize,
}

impl Writer {
    /// Begins an answer with the distance and the similarity score of each row, nearest first.
    /// `key_bytes` is the approximate number of bytes of keys and names that follow.
    ///
    /// # Panics
    ///
    /// If there are 2³² rows or 2¹⁶ columns: no limit and no table has so many.
    pub fn new(
        scores: impl ExactSizeIterator<Item = (f32, f32)> + Clone,
        columns: usize,
        key_bytes: usize,
    ) -> Writer {
        let rows = scores.len();
        let lengths = columns * (HEAD_BYTES + WORD_BYTES * rows);
        let mut out = Vec::with_capacity(HEAD_BYTES + 2 * WORD_BYTES * rows + lengths + key_bytes);
        let count = u32::try_from(rows).expect("rows are limited");
        let columns = u16::try_from(columns).expect("keys have 255 columns at most");
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&columns.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        for (distance, _) in scores.clone() {
            out.extend_from_slice(&distance.to_le_bytes());
        }
        for (_, similarity) in scores {
            out.extend_from_slice(&similarity.to_le_bytes());
        }
        Writer { out, rows }
    }

    /// Adds a column: its name, the CQL protocol's id of its type, and its serialised values, one
    /// for each row.
    ///
    /// # Panics
    ///
    /// If the name has 2¹⁶ bytes, a value 2³², or there are not as many values as rows.
    pub fn column<'a>(
        &mut self,
        name: &str,
        typ: u16,
        values: impl Iterator<Item = &'a [u8]> + Clone,
    ) {
        let length = u16::try_from(name.len()).expect("names are shorter");
        self.out.extend_from_slice(&typ.to_le_bytes());
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.extend_from_slice(name.as_bytes());
        let mut count = 0;
        for value in values.clone() {
            let length = u32::try_from(value.len()).expect("keys are shorter");
            self.out.extend_from_slice(&length.to_le_bytes());
            count += 1;
        }
        assert_eq!(count, self.rows, "a value of {name} for each row");
        for value in values {
            self.out.extend_from_slice(value);
        }
    }

    /// The whole answer.
    pub fn finish(self) -> Bytes {
        self.out.into()
    }
}
