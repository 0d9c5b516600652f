//! The declarations of all scalar functions.

use value::CqlType::{self, *};

use super::math::{self, NumericFunction};
use super::{FunctionBody, OfValues, blob, floor, similarity, text, time};

/// One function with one signature. Several declarations of one name are overloads.
pub(super) struct FunctionDeclaration {
    /// The name in lower case, without a keyspace.
    pub name: &'static str,
    /// The types of the arguments and of the result.
    pub signature: FunctionSignature,
    /// See [`super::ScalarFunction::is_foldable`].
    pub is_foldable: bool,
    /// The implementation.
    pub body: FunctionBody,
}

/// The types that a function takes and returns.
pub(super) enum FunctionSignature {
    /// Fixed types.
    Fixed {
        arguments: &'static [CqlType],
        result: CqlType,
    },
    /// Takes two `vector<float, n>` with the same n and returns a float.
    FloatVectors,
    /// Takes one value of any type and returns a text.
    Any,
    /// Takes a text and returns a value of the type that is wanted where the call occurs.
    Receiver,
}

/// Declares a function of fixed types.
const fn fixed(
    name: &'static str,
    arguments: &'static [CqlType],
    result: CqlType,
    is_foldable: bool,
    body: FunctionBody,
) -> FunctionDeclaration {
    FunctionDeclaration {
        name,
        signature: FunctionSignature::Fixed { arguments, result },
        is_foldable,
        body,
    }
}

/// Declares a function whose result depends only on its arguments.
const fn pure(
    name: &'static str,
    arguments: &'static [CqlType],
    result: CqlType,
    body: OfValues,
) -> FunctionDeclaration {
    fixed(name, arguments, result, true, FunctionBody::OfValues(body))
}

/// Declares a function of the bytes of its argument, whether they are a value or empty.
const fn of_bytes(
    name: &'static str,
    arguments: &'static [CqlType],
    result: CqlType,
    body: OfValues,
) -> FunctionDeclaration {
    fixed(name, arguments, result, true, FunctionBody::OfBytes(body))
}

/// Declares a function whose result depends on the time of the call or on chance.
const fn volatile(name: &'static str, result: CqlType, body: OfValues) -> FunctionDeclaration {
    unfolded(name, &[], result, body)
}

/// Declares a function that is computed while a statement is carried out, and not before. There its
/// work is counted.
const fn unfolded(
    name: &'static str,
    arguments: &'static [CqlType],
    result: CqlType,
    body: OfValues,
) -> FunctionDeclaration {
    fixed(name, arguments, result, false, FunctionBody::OfValues(body))
}

/// Declares a function of two float vectors.
const fn of_vectors(name: &'static str, body: OfValues) -> FunctionDeclaration {
    FunctionDeclaration {
        name,
        signature: FunctionSignature::FloatVectors,
        is_foldable: true,
        body: FunctionBody::OfValues(body),
    }
}

/// Declares a function that turns any value into JSON. It isn't folded: a plan would hold texts
/// many times as long as its statement's.
const fn to_json(name: &'static str) -> FunctionDeclaration {
    FunctionDeclaration {
        name,
        signature: FunctionSignature::Any,
        is_foldable: false,
        body: FunctionBody::ToJson,
    }
}

/// Declares a function that reads any value from JSON.
const fn from_json(name: &'static str) -> FunctionDeclaration {
    FunctionDeclaration {
        name,
        signature: FunctionSignature::Receiver,
        is_foldable: true,
        body: FunctionBody::FromJson,
    }
}

/// The declarations of `name`.
pub(super) fn overloads(name: &str) -> impl Iterator<Item = &'static FunctionDeclaration> {
    DECLARATIONS
        .iter()
        .chain(BLOB_CONVERSIONS)
        .chain(MATHS)
        .filter(move |declaration| declaration.name == name)
}

// Cassandra 5 writes these names with underscores and keeps the older ones. Both forms work, and a
// result column has the name that was called.
static DECLARATIONS: &[FunctionDeclaration] = &[
    volatile("now", Timeuuid, time::now),
    volatile("currenttimeuuid", Timeuuid, time::now),
    volatile("current_timeuuid", Timeuuid, time::now),
    volatile("currenttimestamp", Timestamp, time::current_timestamp),
    volatile("current_timestamp", Timestamp, time::current_timestamp),
    volatile("currentdate", Date, time::current_date),
    volatile("current_date", Date, time::current_date),
    volatile("currenttime", Time, time::current_time),
    volatile("current_time", Time, time::current_time),
    volatile("uuid", Uuid, time::random_uuid),
    pure("mintimeuuid", &[Timestamp], Timeuuid, time::min_timeuuid),
    pure("min_timeuuid", &[Timestamp], Timeuuid, time::min_timeuuid),
    pure("maxtimeuuid", &[Timestamp], Timeuuid, time::max_timeuuid),
    pure("max_timeuuid", &[Timestamp], Timeuuid, time::max_timeuuid),
    pure(
        "dateof",
        &[Timeuuid],
        Timestamp,
        time::timeuuid_to_timestamp,
    ),
    pure(
        "unixtimestampof",
        &[Timeuuid],
        Bigint,
        time::timeuuid_to_timestamp,
    ),
    pure("todate", &[Timeuuid], Date, time::timeuuid_to_date),
    pure("todate", &[Timestamp], Date, time::timestamp_to_date),
    pure("to_date", &[Timeuuid], Date, time::timeuuid_to_date),
    pure("to_date", &[Timestamp], Date, time::timestamp_to_date),
    pure(
        "totimestamp",
        &[Timeuuid],
        Timestamp,
        time::timeuuid_to_timestamp,
    ),
    pure("totimestamp", &[Date], Timestamp, time::date_to_timestamp),
    pure(
        "to_timestamp",
        &[Timeuuid],
        Timestamp,
        time::timeuuid_to_timestamp,
    ),
    pure("to_timestamp", &[Date], Timestamp, time::date_to_timestamp),
    pure(
        "tounixtimestamp",
        &[Timeuuid],
        Bigint,
        time::timeuuid_to_timestamp,
    ),
    pure("tounixtimestamp", &[Timestamp], Bigint, blob::same_bytes),
    pure("tounixtimestamp", &[Date], Bigint, time::date_to_timestamp),
    pure(
        "to_unix_timestamp",
        &[Timeuuid],
        Bigint,
        time::timeuuid_to_timestamp,
    ),
    pure("to_unix_timestamp", &[Timestamp], Bigint, blob::same_bytes),
    pure(
        "to_unix_timestamp",
        &[Date],
        Bigint,
        time::date_to_timestamp,
    ),
    pure(
        "floor",
        &[Timestamp, Duration],
        Timestamp,
        floor::of_timestamp,
    ),
    pure(
        "floor",
        &[Timestamp, Duration, Timestamp],
        Timestamp,
        floor::of_timestamp,
    ),
    pure(
        "floor",
        &[Timeuuid, Duration],
        Timestamp,
        floor::of_timeuuid,
    ),
    pure(
        "floor",
        &[Timeuuid, Duration, Timestamp],
        Timestamp,
        floor::of_timeuuid,
    ),
    pure("floor", &[Date, Duration], Date, floor::of_date),
    pure("floor", &[Date, Duration, Date], Date, floor::of_date),
    pure("floor", &[Time, Duration], Time, floor::of_time),
    of_vectors("similarity_cosine", similarity::cosine),
    of_vectors("similarity_euclidean", similarity::euclidean),
    of_vectors("similarity_dot_product", similarity::dot_product),
    pure("bm25_words", &[Text], Text, text::words_as_they_are),
    to_json("tojson"),
    to_json("to_json"),
    from_json("fromjson"),
    from_json("from_json"),
];

/// Declares `typeAsBlob` and `blobAsType` for each name of a native type.
macro_rules! blob_conversions {
    ($($name:literal: $type:ident),* $(,)?) => {
        &[$(
            of_bytes(concat!($name, "asblob"), &[$type], Blob, blob::same_bytes),
            of_bytes(concat!($name, "_as_blob"), &[$type], Blob, blob::same_bytes),
            of_bytes(concat!("blobas", $name), &[Blob], $type, |arguments, _| {
                blob::checked(&$type, arguments)
            }),
            of_bytes(concat!("blob_as_", $name), &[Blob], $type, |arguments, _| {
                blob::checked(&$type, arguments)
            }),
        )*]
    };
}

static BLOB_CONVERSIONS: &[FunctionDeclaration] = blob_conversions!(
    "ascii": Ascii,
    "bigint": Bigint,
    "boolean": Boolean,
    "counter": Counter,
    "date": Date,
    "decimal": Decimal,
    "double": Double,
    "duration": Duration,
    "float": Float,
    "inet": Inet,
    "int": Int,
    "smallint": Smallint,
    "text": Text,
    "time": Time,
    "timestamp": Timestamp,
    "timeuuid": Timeuuid,
    "tinyint": Tinyint,
    "uuid": Uuid,
    "varchar": Text,
    "varint": Varint,
);

/// Declares the functions of one number for each type of numbers.
macro_rules! maths {
    ($($type:ident),* $(,)?) => {
        &[$(
            pure("abs", &[$type], $type, |values, clock| {
                math::apply(NumericFunction::Abs, &$type, values, clock)
            }),
            unfolded("exp", &[$type], $type, |values, clock| {
                math::apply(NumericFunction::Exp, &$type, values, clock)
            }),
            unfolded("log", &[$type], $type, |values, clock| {
                math::apply(NumericFunction::Log, &$type, values, clock)
            }),
            unfolded("log10", &[$type], $type, |values, clock| {
                math::apply(NumericFunction::Log10, &$type, values, clock)
            }),
            pure("round", &[$type], $type, |values, clock| {
                math::apply(NumericFunction::Round, &$type, values, clock)
            }),
        )*]
    };
}

static MATHS: &[FunctionDeclaration] = maths!(
    Bigint, Counter, Decimal, Double, Float, Int, Smallint, Tinyint, Varint
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_the_parser_gives_them() {
        for declaration in DECLARATIONS.iter().chain(BLOB_CONVERSIONS) {
            assert_eq!(declaration.name, declaration.name.to_lowercase());
        }
    }

    #[test]
    fn no_function_takes_more_arguments_than_are_handed_over() {
        for declaration in DECLARATIONS.iter().chain(BLOB_CONVERSIONS) {
            if let FunctionSignature::Fixed { arguments, .. } = &declaration.signature {
                assert!(arguments.len() <= crate::functions::ARGUMENTS_MAX);
            }
        }
    }
}
