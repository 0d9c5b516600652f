//! Reads `fbin`, `ibin` and `u8bin`, the formats of big-ann-benchmarks. A file has the number of
//! rows and of columns as little-endian `u32`, and then all elements.

use std::io::Read;

use anyhow::{Context, ensure};

use super::array::{NumberArray, NumberValues};

const HEADER_BYTES: u64 = 8;

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BigAnnElement {
    /// `fbin`.
    F32,
    /// `ibin`.
    I32,
    /// `u8bin`.
    U8,
}

/// Reads all rows.
///
/// A file of true neighbours may have their distances after the ids. They are skipped.
pub fn read(mut source: impl Read, element: BigAnnElement) -> anyhow::Result<NumberArray> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let (header, elements) = bytes
        .split_first_chunk::<{ HEADER_BYTES as usize }>()
        .context("it is shorter than its header")?;
    let [rows, columns] =
        [0, 4].map(|at| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte])));
    let element_bytes = if element == BigAnnElement::U8 { 1 } else { 4 };
    // The product of two 32-bit numbers and a small factor fits.
    let expected = u128::from(rows) * u128::from(columns) * element_bytes;
    let distances = if element == BigAnnElement::I32 {
        expected
    } else {
        0
    };
    let found = elements.len() as u128;
    ensure!(
        found == expected || found == expected + distances,
        "its header says {rows} rows of {columns}, which take {expected} bytes, but it has {found}"
    );
    let elements = &elements[..expected as usize];
    let (words, _) = elements.as_chunks::<4>();
    let columns = columns as usize;
    match element {
        BigAnnElement::F32 => {
            let values = words.iter().map(|&word| f32::from_le_bytes(word)).collect();
            NumberArray::new(columns, NumberValues::Floats(values), "float32")
        }
        BigAnnElement::I32 => {
            let values = words.iter().map(|&word| i32::from_le_bytes(word).into());
            NumberArray::new(columns, NumberValues::Integers(values.collect()), "int32")
        }
        BigAnnElement::U8 => {
            let values = elements.iter().map(|&byte| byte.into()).collect();
            NumberArray::new(columns, NumberValues::Integers(values), "uint8")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rows: u32, columns: u32, words: &[[u8; 4]]) -> Vec<u8> {
        let mut bytes = [rows.to_le_bytes(), columns.to_le_bytes()].concat();
        bytes.extend(words.concat());
        bytes
    }

    #[test]
    fn rows_follow_their_header() {
        let words = [1.5_f32, -2.0].map(f32::to_le_bytes);
        let array = read(&file(2, 1, &words)[..], BigAnnElement::F32).unwrap();
        assert_eq!((array.rows(), array.columns), (2, 1));
        assert_eq!(array.values, NumberValues::Floats(vec![1.5, -2.0]));
    }

    #[test]
    fn distances_after_neighbours_are_left_out() {
        let words = [3_i32, 4, 100, 200].map(i32::to_le_bytes);
        let array = read(&file(1, 2, &words)[..], BigAnnElement::I32).unwrap();
        assert_eq!(array.values, NumberValues::Integers(vec![3, 4]));
    }

    #[test]
    fn a_header_that_promises_something_else_is_refused() {
        let words = [1.0_f32, 2.0, 3.0].map(f32::to_le_bytes);
        assert!(read(&file(2, 1, &words)[..], BigAnnElement::F32).is_err());
        assert!(read(&file(u32::MAX, u32::MAX, &words)[..], BigAnnElement::F32).is_err());
        assert!(read(&[1, 0, 0][..], BigAnnElement::F32).is_err());
    }
}
