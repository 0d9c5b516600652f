//! Reads binary answers.

use bytes::{Buf, Bytes};

use super::{HEAD_BYTES, NULL, WORD_BYTES};

/// The error for bytes that are no binary answer: too short, too long, or with a name that is no
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an answer in the binary form of version 1")]
pub struct MalformedAnswer;

/// The rows of an answer, nearest first.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerRows {
    /// The distance of each row by the metric of the index; smaller is nearer.
    pub distances: Vec<f32>,
    /// The similarity score of each row; higher is nearer.
    pub similarity_scores: Vec<f32>,
    /// The columns of the primary key, partition key first.
    pub columns: Vec<AnswerColumn>,
    /// The columns whose values were requested.
    pub returned: Vec<ReturnedColumn>,
}

/// A column of the primary key.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerColumn {
    /// The name of the column.
    pub name: String,
    /// The id of the column's type in the CQL native protocol.
    pub typ: u16,
    /// The values as CQL serialises them, one for each row. They share the memory of the answer.
    pub values: Vec<Bytes>,
}

/// A column whose values were requested.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnedColumn {
    /// The name of the column.
    pub name: String,
    /// The id of the column's type in the CQL native protocol.
    pub typ: u16,
    /// The values as CQL serialises them, one for each row; `None` for null. They share the memory
    /// of the answer.
    pub values: Vec<Option<Bytes>>,
}

impl AnswerRows {
    /// Reads an answer. Memory for values is allocated only after their bytes are known to be
    /// there.
    pub fn read(mut body: Bytes) -> Result<AnswerRows, MalformedAnswer> {
        if body.len() < HEAD_BYTES {
            return Err(MalformedAnswer);
        }
        let rows = usize::try_from(body.get_u32_le()).map_err(|_| MalformedAnswer)?;
        let columns = usize::from(body.get_u16_le());
        let returned = usize::from(body.get_u16_le());
        let distances = floats(&mut body, rows)?;
        let similarity_scores = floats(&mut body, rows)?;
        let columns = (0..columns).map(|_| key_column(&mut body, rows));
        let columns = columns.collect::<Result<_, _>>()?;
        let returned = (0..returned).map(|_| column(&mut body, rows));
        let returned = returned.collect::<Result<_, _>>()?;
        if body.has_remaining() {
            return Err(MalformedAnswer);
        }
        Ok(AnswerRows {
            distances,
            similarity_scores,
            columns,
            returned,
        })
    }
}

fn key_column(body: &mut Bytes, rows: usize) -> Result<AnswerColumn, MalformedAnswer> {
    let ReturnedColumn { name, typ, values } = column(body, rows)?;
    let values = values.into_iter().collect::<Option<_>>();
    Ok(AnswerColumn {
        name,
        typ,
        values: values.ok_or(MalformedAnswer)?,
    })
}

fn column(body: &mut Bytes, rows: usize) -> Result<ReturnedColumn, MalformedAnswer> {
    let mut head = take(body, 4)?;
    let typ = head.get_u16_le();
    let name = take(body, usize::from(head.get_u16_le()))?;
    let name = std::str::from_utf8(&name).map_err(|_| MalformedAnswer)?;
    let mut lengths = words(body, rows)?;
    let mut values = Vec::with_capacity(rows);
    for _ in 0..rows {
        values.push(match lengths.get_u32_le() {
            NULL => None,
            length => Some(take(
                body,
                usize::try_from(length).map_err(|_| MalformedAnswer)?,
            )?),
        });
    }
    Ok(ReturnedColumn {
        name: name.to_owned(),
        typ,
        values,
    })
}

fn floats(body: &mut Bytes, count: usize) -> Result<Vec<f32>, MalformedAnswer> {
    let mut words = words(body, count)?;
    Ok((0..count).map(|_| words.get_f32_le()).collect())
}

fn words(body: &mut Bytes, count: usize) -> Result<Bytes, MalformedAnswer> {
    take(body, count.checked_mul(WORD_BYTES).ok_or(MalformedAnswer)?)
}

fn take(body: &mut Bytes, bytes: usize) -> Result<Bytes, MalformedAnswer> {
    if body.remaining() < bytes {
        return Err(MalformedAnswer);
    }
    Ok(body.split_to(bytes))
}

#[cfg(test)]
mod tests {
    use super::super::{AnswerWriter, elements, vector};
    use super::*;

    /// Two rows with a key of a number and a text.
    fn answer() -> Bytes {
        let scores = [(0.5f32, 0.75f32), (1.0, 0.5)];
        let mut writer = AnswerWriter::new(scores.into_iter(), 2, 20);
        writer.column("id", 9, [[0, 0, 0, 7], [0, 0, 0, 8]].iter().map(|v| &v[..]));
        writer.column("ż", 13, ["", "abc"].iter().map(|v| v.as_bytes()));
        writer.finish()
    }

    #[test]
    fn the_layout_to_the_byte() {
        #[rustfmt::skip]
        let expected = [
            2, 0, 0, 0, 2, 0, 0, 0,
            0, 0, 0, 0x3f, 0, 0, 0x80, 0x3f,
            0, 0, 0x40, 0x3f, 0, 0, 0, 0x3f,
            9, 0, 2, 0, b'i', b'd',
            4, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8,
            13, 0, 2, 0, 0xc5, 0xbc,
            0, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', b'c',
        ];
        assert_eq!(answer(), &expected[..]);
        assert_eq!(vector(&[1.0, -0.5]), &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf][..]);
    }

    #[test]
    fn a_written_answer_is_read() {
        let rows = AnswerRows::read(answer()).unwrap();
        assert_eq!(rows.distances, [0.5, 1.0]);
        assert_eq!(rows.similarity_scores, [0.75, 0.5]);
        assert_eq!(
            (rows.columns[0].name.as_str(), rows.columns[0].typ),
            ("id", 9)
        );
        assert_eq!(rows.columns[0].values[1], &[0, 0, 0, 8][..]);
        assert_eq!(
            (rows.columns[1].name.as_str(), rows.columns[1].typ),
            ("ż", 13)
        );
        assert_eq!(rows.columns[1].values, ["", "abc"]);
        let none = AnswerWriter::new([].into_iter(), 0, 0).finish();
        assert_eq!(AnswerRows::read(none).unwrap().columns, []);
        let numbers = [1.5, f32::MIN, -0.0];
        assert_eq!(elements(&vector(&numbers)).unwrap(), numbers);
        assert_eq!(elements(&[0; 7]), None);
    }

    #[test]
    fn values_beside_the_key_may_be_null() {
        let mut writer = AnswerWriter::new([(0.0, 1.0), (1.0, 0.5)].into_iter(), 1, 20);
        writer.column("id", 16, [[7], [8]].iter().map(|v| &v[..]));
        writer.returned_column("t", 13, [Some(&b"x"[..]), None].into_iter());
        let whole = writer.finish();
        let rows = AnswerRows::read(whole.clone()).unwrap();
        assert_eq!(rows.columns[0].values, [&[7][..], &[8]]);
        assert_eq!(
            (rows.returned[0].name.as_str(), rows.returned[0].typ),
            ("t", 13)
        );
        assert_eq!(rows.returned[0].values, [Some("x".into()), None]);
        for end in 0..whole.len() {
            assert_eq!(
                AnswerRows::read(whole.slice(..end)),
                Err(MalformedAnswer),
                "{end} bytes"
            );
        }
        // A key is never null.
        let mut writer = AnswerWriter::new([(0.0, 1.0)].into_iter(), 0, 0);
        writer.returned_column("t", 13, [None].into_iter());
        let mut as_key = writer.finish().to_vec();
        as_key[4..8].copy_from_slice(&[1, 0, 0, 0]);
        assert_eq!(AnswerRows::read(as_key.into()), Err(MalformedAnswer));
    }

    #[test]
    fn answers_cut_short_or_too_long_are_refused() {
        let whole = answer();
        for end in 0..whole.len() {
            assert_eq!(
                AnswerRows::read(whole.slice(..end)),
                Err(MalformedAnswer),
                "{end} bytes"
            );
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(AnswerRows::read(longer.into()), Err(MalformedAnswer));
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let whole = answer().to_vec();
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = whole.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            AnswerRows::read(changed.into())
        };
        let name = HEAD_BYTES + 4 * WORD_BYTES + 4;
        for (at, bytes) in [
            (0, &[0xff; 4][..]),
            (4, &[0xff, 0xff]),
            (6, &[1]),
            (name - 2, &[0xff, 0xff]),
            (name, &[0xff]),
            (name + 2, &[0xff; 4]),
        ] {
            assert_eq!(with(at, bytes), Err(MalformedAnswer), "{bytes:?} at {at}");
        }
    }
}
