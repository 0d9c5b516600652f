//! Reads `npy`, numpy's own format (numpy.lib.format), versions 1 to 3: magic bytes, a header that
//! is a Python dictionary literal, and the elements. Arrays must be C-ordered, of one or two
//! dimensions and of little-endian numbers.

use std::io::Read;

use anyhow::{Context, bail, ensure};
use half::f16;

use super::array::{NumberArray, NumberValues};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array. An array of a single dimension becomes rows of one element.
pub fn read(mut source: impl Read) -> anyhow::Result<NumberArray> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes)?;
    let (header, elements) = split_header(&bytes)?;
    let NumpyHeader {
        descr,
        rows,
        columns,
    } = parse(header)?;
    let (element_bytes, stored_as) = match descr {
        "f2" => (2, "float16"),
        "f4" => (4, "float32"),
        "f8" => (8, "float64"),
        "u1" => (1, "uint8"),
        "i4" => (4, "int32"),
        "u4" => (4, "uint32"),
        "i8" => (8, "int64"),
        other => bail!("its elements are {other:?}; save them as float32, float16, int32 or int64"),
    };
    let expected = rows
        .checked_mul(columns)
        .and_then(|elements| elements.checked_mul(element_bytes));
    ensure!(
        expected == Some(elements.len()),
        "its header says {rows} rows of {columns} {stored_as}, but {} bytes follow",
        elements.len()
    );
    let (twos, fours, eights) = (
        elements.as_chunks::<2>().0.iter().copied(),
        elements.as_chunks::<4>().0.iter().copied(),
        elements.as_chunks::<8>().0.iter().copied(),
    );
    let values = match descr {
        "f2" => NumberValues::Floats(twos.map(|x| f16::from_le_bytes(x).to_f32()).collect()),
        "f4" => NumberValues::Floats(fours.map(f32::from_le_bytes).collect()),
        "f8" => NumberValues::Floats(eights.map(|x| f64::from_le_bytes(x) as f32).collect()),
        "u1" => NumberValues::Integers(elements.iter().map(|&x| x.into()).collect()),
        "i4" => NumberValues::Integers(fours.map(|x| i32::from_le_bytes(x).into()).collect()),
        "u4" => NumberValues::Integers(fours.map(|x| u32::from_le_bytes(x).into()).collect()),
        _ => NumberValues::Integers(eights.map(i64::from_le_bytes).collect()),
    };
    NumberArray::new(columns, values, stored_as)
}

/// Splits a file into the header's text and the bytes after it.
fn split_header(bytes: &[u8]) -> anyhow::Result<(&str, &[u8])> {
    let cut = "it ends within its header";
    let rest = bytes
        .strip_prefix(MAGIC)
        .context("it does not begin like an npy file")?;
    let (&[major, _minor], rest) = rest.split_first_chunk::<2>().context(cut)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>().context(cut)?;
            (u16::from_le_bytes(*length) as usize, rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>().context(cut)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => bail!("its format version is {other}, known are 1 to 3"),
    };
    let (header, elements) = rest.split_at_checked(length).context(cut)?;
    Ok((std::str::from_utf8(header)?, elements))
}

#[derive(Debug, PartialEq)]
struct NumpyHeader<'a> {
    /// Kind and bytes of an element, such as `f4`.
    descr: &'a str,
    rows: usize,
    columns: usize,
}

fn parse(header: &str) -> anyhow::Result<NumpyHeader<'_>> {
    let unclear = || format!("its header is not understood: {header}");
    let after = |key: &str| {
        let (_, rest) = header.split_once(key)?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let descr = after("'descr'")
        .and_then(|rest| rest.strip_prefix('\''))
        .and_then(|rest| rest.split_once('\''))
        .with_context(unclear)?
        .0;
    ensure!(
        !descr.starts_with('>'),
        "its elements are big-endian; save them little-endian"
    );
    let fortran = after("'fortran_order'").with_context(unclear)?;
    let shape = after("'shape'")
        .and_then(|rest| rest.strip_prefix('('))
        .and_then(|rest| rest.split_once(')'))
        .with_context(unclear)?
        .0;
    let sizes: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(unclear)?;
    let (rows, columns) = match sizes[..] {
        [rows] => (rows, 1),
        [rows, columns] => (rows, columns),
        _ => bail!("its shape is ({shape}), but it must have rows of vectors"),
    };
    ensure!(
        fortran.starts_with("False") || columns == 1,
        "it is stored column by column; save numpy.ascontiguousarray(it)"
    );
    Ok(NumpyHeader {
        descr: descr.trim_start_matches(['<', '|', '=']),
        rows,
        columns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[version, 0]].concat();
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(elements);
        bytes
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn both_lengths_of_headers_and_each_number() {
        let floats = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
        for version in [1, 2] {
            let array = read(&file(version, &header("<f4", "(2, 2)"), &floats)[..]).unwrap();
            assert_eq!((array.rows(), array.columns), (2, 2));
            assert_eq!(array.values, NumberValues::Floats(vec![1.0, 2.0, 3.0, 4.0]));
        }
        let halves = [0.5, -2.0].map(|x| f16::from_f32(x).to_le_bytes()).concat();
        let array = read(&file(1, &header("<f2", "(1, 2)"), &halves)[..]).unwrap();
        assert_eq!(array.values, NumberValues::Floats(vec![0.5, -2.0]));
        let ids = [7_i64, -1].map(i64::to_le_bytes).concat();
        let array = read(&file(1, &header("<i8", "(2,)"), &ids)[..]).unwrap();
        assert_eq!((array.rows(), array.columns), (2, 1));
        assert_eq!(array.values, NumberValues::Integers(vec![7, -1]));
    }

    #[test]
    fn unreadable_files_are_refused_with_the_reason() {
        let four = [0; 4];
        let says = |descr: &str, shape: &str, elements: &[u8]| {
            let error = read(&file(1, &header(descr, shape), elements)[..]).unwrap_err();
            format!("{error:#}")
        };
        assert!(says("<c8", "(1, 1)", &four).contains("float32"));
        assert!(says(">f4", "(1, 1)", &four).contains("big-endian"));
        assert!(says("<f4", "(1, 1, 1)", &four).contains("shape"));
        assert!(says("<f4", "(2, 1)", &four).contains("4 bytes follow"));
        assert!(says("<f4", "(99999999999, 99999999999)", &four).contains("follow"));
        let fortran = header("<f4", "(1, 2)").replace("False", "True");
        assert!(read(&file(1, &fortran, &[0; 8])[..]).is_err());
        assert!(read(&b"PK"[..]).is_err());
        assert!(read(MAGIC).is_err());
    }
}
