//! Reads `fvecs`, `ivecs` and `bvecs`, the formats of SIFT and GIST (corpus-texmex.irisa.fr). Each
//! row has its length as a little-endian `i32`, and then as many `f32`, `i32` or bytes.

use std::io::Read;

use anyhow::{Context, ensure};

use super::array::{NumberArray, NumberValues};

/// The type of the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TexmexElement {
    /// `fvecs`.
    F32,
    /// `ivecs`.
    I32,
    /// `bvecs`.
    U8,
}

/// Reads all rows.
pub fn read(mut source: impl Read, element: TexmexElement) -> anyhow::Result<NumberArray> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let header = bytes.first_chunk::<4>().context("it is empty")?;
    let columns = i32::from_le_bytes(*header);
    ensure!(
        (1..=1 << 20).contains(&columns),
        "it begins with a row of {columns} elements, so it is not of this format"
    );
    let columns = columns as usize;
    let element_bytes = if element == TexmexElement::U8 { 1 } else { 4 };
    let row_bytes = 4 + columns * element_bytes;
    ensure!(
        bytes.len().is_multiple_of(row_bytes),
        "{} bytes are not whole rows of {columns} elements: it is cut off, or its rows differ in length",
        bytes.len()
    );
    for (row, chunk) in bytes.chunks_exact(row_bytes).enumerate() {
        ensure!(
            chunk[..4] == *header,
            "row {row} does not have {columns} elements like the first"
        );
    }
    let elements = bytes.chunks_exact(row_bytes).flat_map(|row| &row[4..]);
    match element {
        TexmexElement::U8 => {
            let values = elements.map(|&byte| i64::from(byte)).collect();
            NumberArray::new(columns, NumberValues::Integers(values), "uint8")
        }
        TexmexElement::F32 => {
            let rows = bytes.chunks_exact(row_bytes);
            let words = rows.flat_map(|row| row[4..].as_chunks::<4>().0);
            let values = words.map(|&word| f32::from_le_bytes(word)).collect();
            NumberArray::new(columns, NumberValues::Floats(values), "float32")
        }
        TexmexElement::I32 => {
            let rows = bytes.chunks_exact(row_bytes);
            let words = rows.flat_map(|row| row[4..].as_chunks::<4>().0);
            let values = words
                .map(|&word| i64::from(i32::from_le_bytes(word)))
                .collect();
            NumberArray::new(columns, NumberValues::Integers(values), "int32")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fvecs(rows: &[&[f32]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in rows {
            bytes.extend((row.len() as i32).to_le_bytes());
            row.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
        }
        bytes
    }

    #[test]
    fn rows_of_each_element_type() {
        let array = read(&fvecs(&[&[1.0, -2.5], &[0.0, 4.0]])[..], TexmexElement::F32).unwrap();
        assert_eq!(array.columns, 2);
        assert_eq!(
            array.values,
            NumberValues::Floats(vec![1.0, -2.5, 0.0, 4.0])
        );
        let bytes = [2, 0, 0, 0, 7, 255];
        let array = read(&bytes[..], TexmexElement::U8).unwrap();
        assert_eq!(array.values, NumberValues::Integers(vec![7, 255]));
        let bytes = [1, 0, 0, 0, 255, 255, 255, 255];
        let array = read(&bytes[..], TexmexElement::I32).unwrap();
        assert_eq!(array.values, NumberValues::Integers(vec![-1]));
    }

    #[test]
    fn cut_off_and_ragged_files_are_refused() {
        let whole = fvecs(&[&[1.0, 2.0], &[3.0, 4.0]]);
        assert!(read(&whole[..whole.len() - 1], TexmexElement::F32).is_err());
        // Two rows of one element have the length of one row of three.
        let ragged = fvecs(&[&[1.0, 2.0, 3.0], &[1.0], &[2.0]]);
        let error = read(&ragged[..], TexmexElement::F32).unwrap_err();
        assert!(error.to_string().contains("row 1"), "{error}");
        assert!(read(&[][..], TexmexElement::F32).is_err());
    }
}
