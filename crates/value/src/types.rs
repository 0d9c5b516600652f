//! The type system of CQL, and the exact spelling of a type in `system_schema`.

use std::fmt;
use std::sync::Arc;

use crate::UserType;
use crate::identifier::Identifier;

/// The most dimensions of a vector, as in ScyllaDB.
pub const MAX_VECTOR_DIMENSIONS: u16 = 16_000;

/// A CQL type.
///
/// `Display` gives the text of `system_schema.columns.type` (`frozen<list<int>>`,
/// `vector<float, 3>`), in which a user type is a name. The parser of crate `cql` reads it back.
#[expect(missing_docs, reason = "the variants are CQL's own names of its types")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlType {
    Ascii,
    Bigint,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Duration,
    Float,
    Inet,
    Int,
    Smallint,
    Text,
    Time,
    Timestamp,
    Timeuuid,
    Tinyint,
    Uuid,
    Varint,
    List {
        element: Box<CqlType>,
        frozen: bool,
    },
    Set {
        element: Box<CqlType>,
        frozen: bool,
    },
    Map {
        key: Box<CqlType>,
        value: Box<CqlType>,
        frozen: bool,
    },
    /// Always frozen.
    Tuple(Vec<CqlType>),
    UserType {
        definition: Arc<UserType>,
        frozen: bool,
    },
    /// Always frozen. It has exactly `dimensions` elements, none of them null.
    Vector {
        element: Box<CqlType>,
        dimensions: u16,
    },
}

impl CqlType {
    /// The type of the paths of a non-frozen collection or user type, which gives their order. The
    /// path of a field is its position in the user type.
    pub fn path_type(&self) -> &CqlType {
        match self {
            CqlType::Set { element, .. } => element,
            CqlType::Map { key, .. } => key,
            CqlType::UserType { .. } => &CqlType::Smallint,
            _ => &CqlType::Timeuuid,
        }
    }

    /// Whether the type is a non-frozen collection or user type, which is stored as one cell for
    /// each element or field.
    pub fn is_multi_cell(&self) -> bool {
        matches!(
            self,
            CqlType::List { frozen: false, .. }
                | CqlType::Set { frozen: false, .. }
                | CqlType::Map { frozen: false, .. }
                | CqlType::UserType { frozen: false, .. }
        )
    }

    /// The definition of a user type; `None` for every other type.
    pub fn user_type(&self) -> Option<&Arc<UserType>> {
        match self {
            CqlType::UserType { definition, .. } => Some(definition),
            _ => None,
        }
    }

    /// Whether the type is a list, set or map, frozen or not.
    pub fn is_collection(&self) -> bool {
        matches!(
            self,
            CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }
        )
    }

    /// The dimensions of a `vector<float, n>`; `None` for every other type.
    pub fn float_vector_dimensions(&self) -> Option<u16> {
        match self {
            CqlType::Vector {
                element,
                dimensions,
            } if **element == CqlType::Float => Some(*dimensions),
            _ => None,
        }
    }

    /// The type with its outermost collection or user type frozen.
    #[must_use]
    pub fn frozen(&self) -> CqlType {
        let mut copy = self.clone();
        if let CqlType::List { frozen, .. }
        | CqlType::Set { frozen, .. }
        | CqlType::Map { frozen, .. }
        | CqlType::UserType { frozen, .. } = &mut copy
        {
            *frozen = true;
        }
        copy
    }

    /// Whether values of the type hold durations, which have no order. As in Cassandra, a vector of
    /// durations doesn't count.
    pub fn holds_durations(&self) -> bool {
        match self {
            CqlType::Duration => true,
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                element.holds_durations()
            }
            CqlType::Map { key, value, .. } => key.holds_durations() || value.holds_durations(),
            CqlType::Tuple(types) => types.iter().any(CqlType::holds_durations),
            CqlType::UserType { definition, .. } => {
                definition.field_types.iter().any(CqlType::holds_durations)
            }
            _ => false,
        }
    }

    /// Whether a duration occurs anywhere in the type, in a vector too. Durations have no order, as
    /// a month may be shorter or longer than 30 days. So sets, keys of maps and primary keys, which
    /// are sorted, hold no such type.
    pub fn holds_durations_even_in_vectors(&self) -> bool {
        match self {
            CqlType::Duration => true,
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.holds_durations_even_in_vectors(),
            CqlType::Map { key, value, .. } => {
                key.holds_durations_even_in_vectors() || value.holds_durations_even_in_vectors()
            }
            CqlType::Tuple(types) => types.iter().any(CqlType::holds_durations_even_in_vectors),
            CqlType::UserType { definition, .. } => {
                let mut types = definition.field_types.iter();
                types.any(CqlType::holds_durations_even_in_vectors)
            }
            _ => false,
        }
    }

    /// The length in bytes of every serialised value; `None` if the type has no fixed length.
    ///
    /// As in Cassandra, tinyint, smallint, date and time count as not fixed. Elements of a vector
    /// are written with a length each unless their type has a fixed length.
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            CqlType::Boolean => Some(1),
            CqlType::Int | CqlType::Float => Some(4),
            CqlType::Bigint | CqlType::Double | CqlType::Timestamp => Some(8),
            CqlType::Uuid | CqlType::Timeuuid => Some(16),
            CqlType::Vector {
                element,
                dimensions,
            } => element
                .fixed_length()
                .map(|length| length * usize::from(*dimensions)),
            _ => None,
        }
    }

    /// Whether no bytes at all are a [`Value::Empty`](crate::Value::Empty) of the type.
    pub fn takes_no_bytes(&self) -> bool {
        matches!(
            self,
            CqlType::Bigint
                | CqlType::Boolean
                | CqlType::Counter
                | CqlType::Decimal
                | CqlType::Double
                | CqlType::Float
                | CqlType::Inet
                | CqlType::Int
                | CqlType::Timestamp
                | CqlType::Timeuuid
                | CqlType::Uuid
                | CqlType::Varint
        )
    }
}

impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frozen_or_not = |f: &mut fmt::Formatter<'_>, frozen: bool, text: fmt::Arguments<'_>| {
            if frozen {
                write!(f, "frozen<{text}>")
            } else {
                f.write_fmt(text)
            }
        };
        match self {
            CqlType::Ascii => f.write_str("ascii"),
            CqlType::Bigint => f.write_str("bigint"),
            CqlType::Blob => f.write_str("blob"),
            CqlType::Boolean => f.write_str("boolean"),
            CqlType::Counter => f.write_str("counter"),
            CqlType::Date => f.write_str("date"),
            CqlType::Decimal => f.write_str("decimal"),
            CqlType::Double => f.write_str("double"),
            CqlType::Duration => f.write_str("duration"),
            CqlType::Float => f.write_str("float"),
            CqlType::Inet => f.write_str("inet"),
            CqlType::Int => f.write_str("int"),
            CqlType::Smallint => f.write_str("smallint"),
            CqlType::Text => f.write_str("text"),
            CqlType::Time => f.write_str("time"),
            CqlType::Timestamp => f.write_str("timestamp"),
            CqlType::Timeuuid => f.write_str("timeuuid"),
            CqlType::Tinyint => f.write_str("tinyint"),
            CqlType::Uuid => f.write_str("uuid"),
            CqlType::Varint => f.write_str("varint"),
            CqlType::List { element, frozen } => {
                frozen_or_not(f, *frozen, format_args!("list<{element}>"))
            }
            CqlType::Set { element, frozen } => {
                frozen_or_not(f, *frozen, format_args!("set<{element}>"))
            }
            CqlType::Map { key, value, frozen } => {
                frozen_or_not(f, *frozen, format_args!("map<{key}, {value}>"))
            }
            CqlType::Tuple(elements) => {
                f.write_str("frozen<tuple<")?;
                for (position, element) in elements.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{element}")?;
                }
                f.write_str(">>")
            }
            CqlType::UserType { definition, frozen } => {
                let name = Identifier(&definition.name);
                frozen_or_not(f, *frozen, format_args!("{name}"))
            }
            CqlType::Vector {
                element,
                dimensions,
            } => write!(f, "vector<{element}, {dimensions}>"),
        }
    }
}
