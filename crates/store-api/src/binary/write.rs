//! Writes the binary forms.

use bytes::Bytes;

use super::{HEAD_BYTES, NULL, RETURNED_AT, WORD_BYTES};

/// The body of a search: the elements of its vector.
pub fn vector(elements: &[f32]) -> Bytes {
    let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()).collect();
    bytes.into()
}

/// Writes an answer: first the distances and scores of the rows, then one column after the other.
#[derive(Debug)]
pub struct AnswerWriter {
    out: Vec<u8>,
    rows: usize,
    /// The number of columns whose values were requested.
    returned: usize,
}

impl AnswerWriter {
    /// Begins an answer with the distance and the similarity score of each row, nearest first.
    /// `key_bytes` is the approximate number of bytes of keys, values and names that follow.
    ///
    /// # Panics
    ///
    /// If there are 2³² rows or 2¹⁶ columns: no limit and no table has so many.
    pub fn new(
        scores: impl ExactSizeIterator<Item = (f32, f32)> + Clone,
        columns: usize,
        key_bytes: usize,
    ) -> AnswerWriter {
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
        AnswerWriter {
            out,
            rows,
            returned: 0,
        }
    }

    /// Adds a column of the key: its name, the CQL protocol's id of its type, and its serialised
    /// values, one for each row. All columns of the key come before those that are returned.
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
        self.put(name, typ, values.map(Some));
    }

    /// Adds a column whose values were requested, as [`AnswerWriter::column`] does; `None` is null.
    ///
    /// # Panics
    ///
    /// As [`AnswerWriter::column`].
    pub fn returned_column<'a>(
        &mut self,
        name: &str,
        typ: u16,
        values: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    ) {
        self.returned += 1;
        self.put(name, typ, values);
    }

    fn put<'a>(
        &mut self,
        name: &str,
        typ: u16,
        values: impl Iterator<Item = Option<&'a [u8]>> + Clone,
    ) {
        let length = u16::try_from(name.len()).expect("names are shorter");
        self.out.extend_from_slice(&typ.to_le_bytes());
        self.out.extend_from_slice(&length.to_le_bytes());
        self.out.extend_from_slice(name.as_bytes());
        let mut count = 0;
        for value in values.clone() {
            let length = value.map_or(NULL, |value| {
                u32::try_from(value.len()).expect("values are shorter")
            });
            self.out.extend_from_slice(&length.to_le_bytes());
            count += 1;
        }
        assert_eq!(count, self.rows, "a value of {name} for each row");
        for value in values.flatten() {
            self.out.extend_from_slice(value);
        }
    }

    /// The whole answer.
    ///
    /// # Panics
    ///
    /// If 2¹⁶ columns are returned: no table has so many.
    pub fn finish(mut self) -> Bytes {
        let returned = u16::try_from(self.returned).expect("a table has fewer columns");
        self.out[RETURNED_AT..HEAD_BYTES].copy_from_slice(&returned.to_le_bytes());
        self.out.into()
    }
}
