//! Vectors whose number of dimensions is part of their type.

use scylla::cluster::metadata::ColumnType as CqlType;
use scylla::deserialize::value::DeserializeValue;
use scylla::deserialize::{DeserializationError, FrameSlice, TypeCheckError};
use scylla::errors::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};

use super::ColumnType;

/// `vector<float, N>`. The driver has it as `Vec<f32>`, of any length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vector<const N: usize>(pub [f32; N]);

impl<const N: usize> ColumnType for Vector<N> {
    fn cql() -> String {
        format!("vector<float, {N}>")
    }
}

impl<const N: usize> SerializeValue for Vector<N> {
    fn serialize<'b>(
        &self,
        cql: &CqlType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        self.0.as_slice().serialize(cql, writer)
    }
}

impl<'frame, 'metadata, const N: usize> DeserializeValue<'frame, 'metadata> for Vector<N> {
    fn type_check(cql: &CqlType) -> Result<(), TypeCheckError> {
        Vec::<f32>::type_check(cql)
    }

    fn deserialize(
        cql: &'metadata CqlType<'metadata>,
        value: Option<FrameSlice<'frame>>,
    ) -> Result<Self, DeserializationError> {
        let floats = Vec::<f32>::deserialize(cql, value)?;
        let floats = <[f32; N]>::try_from(floats);
        floats.map(Self).map_err(|floats| {
            let dimensions = format!("a vector of {} dimensions, not of {N}", floats.len());
            DeserializationError::new(std::io::Error::other(dimensions))
        })
    }
}
