//! Checks that bytes are a value of a type.

use crate::CqlType;
use crate::elements::{CollectionElements, MapEntries, TupleFields, VectorElements};
use crate::{MAX_NUMERIC_BYTES, NANOSECONDS_PER_DAY, ValueError, duration};

/// Checks that `bytes` is a serialised value of `cql_type` without decoding it into memory.
///
/// A `vector<float, n>` must have exactly n elements. They may be NaN or infinite, which an index
/// refuses ([`finite_vector`]). Sets and maps may be out of order, as clients may send them so;
/// [`super::canonical()`] puts them in order.
///
/// # Errors
/// If `bytes` is no value of `cql_type`.
pub fn validate(cql_type: &CqlType, bytes: &[u8]) -> Result<(), ValueError> {
    match cql_type {
        CqlType::Blob => Ok(()),
        CqlType::Ascii => ascii(bytes),
        CqlType::Text => text(bytes),
        CqlType::Bigint | CqlType::Counter | CqlType::Double | CqlType::Timestamp => {
            length_or_empty(cql_type, 8, bytes)
        }
        CqlType::Int | CqlType::Float => length_or_empty(cql_type, 4, bytes),
        CqlType::Boolean => length_or_empty(cql_type, 1, bytes),
        CqlType::Uuid => length_or_empty(cql_type, 16, bytes),
        CqlType::Timeuuid => timeuuid(bytes),
        CqlType::Tinyint => length(cql_type, 1, bytes),
        CqlType::Smallint => length(cql_type, 2, bytes),
        CqlType::Date => length(cql_type, 4, bytes),
        CqlType::Time => time(bytes),
        CqlType::Inet => inet(bytes),
        CqlType::Varint => numeric_length("varint", bytes.len()),
        CqlType::Decimal => decimal(bytes),
        CqlType::Duration => duration::read(bytes).map(|_| ()),
        CqlType::List { element, .. } => CollectionElements::of_list(bytes)
            .and_then(|elements| each(element, elements))
            .map_err(|error| error.inside(cql_type)),
        CqlType::Set { element, .. } => CollectionElements::of_set(bytes)
            .and_then(|elements| each(element, elements))
            .map_err(|error| error.inside(cql_type)),
        CqlType::Map { key, value, .. } => {
            entries(key, value, bytes).map_err(|error| error.inside(cql_type))
        }
        CqlType::Tuple(types) => fields(types, bytes).map_err(|error| error.inside(cql_type)),
        CqlType::UserType { definition, .. } => {
            fields(&definition.field_types, bytes).map_err(|error| error.inside(cql_type))
        }
        CqlType::Vector {
            element,
            dimensions,
        } => match **element {
            CqlType::Float => float_vector(*dimensions, bytes),
            _ => each(element, VectorElements::new(element, *dimensions, bytes))
                .map_err(|error| error.inside(cql_type)),
        },
    }
}

fn each<'a>(
    element: &CqlType,
    elements: impl Iterator<Item = Result<&'a [u8], ValueError>>,
) -> Result<(), ValueError> {
    for bytes in elements {
        validate(element, bytes?)?;
    }
    Ok(())
}

fn entries(key: &CqlType, value: &CqlType, bytes: &[u8]) -> Result<(), ValueError> {
    for entry in MapEntries::new(bytes)? {
        let (key_bytes, value_bytes) = entry?;
        validate(key, key_bytes)?;
        validate(value, value_bytes)?;
    }
    Ok(())
}

fn fields(types: &[CqlType], bytes: &[u8]) -> Result<(), ValueError> {
    // The loop runs over the fields and not over the types, so that it ends with an error if bytes
    // are left over.
    let mut types = types.iter();
    for field in TupleFields::new(types.len(), bytes) {
        if let (Some(field), Some(cql_type)) = (field?, types.next()) {
            validate(cql_type, field)?;
        }
    }
    Ok(())
}

fn wrong_length(cql_type: &CqlType, expected: &str, got: usize) -> ValueError {
    ValueError(format!(
        "a value of type {cql_type} takes {expected} bytes, got {got}"
    ))
}

fn length(cql_type: &CqlType, expected: usize, bytes: &[u8]) -> Result<(), ValueError> {
    if bytes.len() == expected {
        Ok(())
    } else {
        Err(wrong_length(cql_type, &expected.to_string(), bytes.len()))
    }
}

fn length_or_empty(cql_type: &CqlType, expected: usize, bytes: &[u8]) -> Result<(), ValueError> {
    if bytes.is_empty() {
        Ok(())
    } else {
        length(cql_type, expected, bytes)
    }
}

fn ascii(bytes: &[u8]) -> Result<(), ValueError> {
    match bytes.iter().position(|byte| !byte.is_ascii()) {
        None => Ok(()),
        Some(position) => Err(ValueError(format!(
            "a value of type ascii has a byte beyond ASCII, 0x{:02x}, at offset {position}",
            bytes[position]
        ))),
    }
}

fn text(bytes: &[u8]) -> Result<(), ValueError> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(ValueError(format!(
            "a value of type text is not UTF-8 from offset {}",
            error.valid_up_to()
        ))),
    }
}

fn timeuuid(bytes: &[u8]) -> Result<(), ValueError> {
    length_or_empty(&CqlType::Timeuuid, 16, bytes)?;
    match bytes.get(6) {
        Some(byte) if byte >> 4 != 1 => Err(ValueError(format!(
            "a value of type timeuuid is a UUID of version 1, got version {}",
            byte >> 4
        ))),
        _ => Ok(()),
    }
}

fn time(bytes: &[u8]) -> Result<(), ValueError> {
    let Some((nanoseconds, [])) = bytes.split_first_chunk::<8>() else {
        return Err(wrong_length(&CqlType::Time, "8", bytes.len()));
    };
    let nanoseconds = i64::from_be_bytes(*nanoseconds);
    if (0..NANOSECONDS_PER_DAY).contains(&nanoseconds) {
        Ok(())
    } else {
        Err(ValueError(format!(
            "a value of type time lies between 0 and {} nanoseconds, got {nanoseconds}",
            NANOSECONDS_PER_DAY - 1
        )))
    }
}

fn inet(bytes: &[u8]) -> Result<(), ValueError> {
    match bytes.len() {
        0 | 4 | 16 => Ok(()),
        got => Err(wrong_length(&CqlType::Inet, "4 or 16", got)),
    }
}

/// Checks the length of a varint, or of the unscaled part of a decimal.
pub(crate) fn numeric_length(what: &str, length: usize) -> Result<(), ValueError> {
    if length <= MAX_NUMERIC_BYTES {
        Ok(())
    } else {
        Err(ValueError(format!(
            "a {what} of {length} bytes is longer than the {MAX_NUMERIC_BYTES} bytes allowed"
        )))
    }
}

fn decimal(bytes: &[u8]) -> Result<(), ValueError> {
    match bytes.len() {
        0 => Ok(()),
        1..=4 => Err(wrong_length(&CqlType::Decimal, "at least 5", bytes.len())),
        length => numeric_length("decimal", length - 4),
    }
}

fn float_vector(dimensions: u16, bytes: &[u8]) -> Result<(), ValueError> {
    let expected = usize::from(dimensions) * 4;
    if bytes.len() != expected {
        let got = if bytes.len().is_multiple_of(4) {
            format!("{} elements", bytes.len() / 4)
        } else {
            format!(
                "{} bytes, which is no whole number of elements",
                bytes.len()
            )
        };
        return Err(ValueError(format!(
            "a vector<float, {dimensions}> takes exactly {dimensions} elements of 4 bytes, got {got}"
        )));
    }
    Ok(())
}

/// Checks that no element of a serialised `vector<float, n>` is NaN or infinite. A table keeps such
/// vectors, but an index can't keep them, and a search by one is not possible.
///
/// # Errors
/// For the first element that is no finite number.
pub fn finite_vector(vector: &[u8]) -> Result<(), ValueError> {
    let elements = vector.as_chunks::<4>().0;
    let not_finite = elements
        .iter()
        .map(|element| f32::from_be_bytes(*element))
        .enumerate()
        .find(|(_, element)| !element.is_finite());
    match not_finite {
        None => Ok(()),
        Some((position, element)) => Err(ValueError(format!(
            "element {position} of a vector<float, {}> is {element}: the elements of a vector that is indexed or \
             searched by must be finite numbers, as no distance to anything else is defined",
            elements.len()
        ))),
    }
}
