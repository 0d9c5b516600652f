//! Columns with types, over the driver's rows.
//!
//! The driver's derives turn a struct into bound values and a row into a struct. What they lack is
//! a column as a value of a type, to compare with. The macro [`table!`] adds it.

use std::marker::PhantomData;

use scylla::deserialize::row::DeserializeRow;
use scylla::serialize::row::SerializeRow;
use scylla::serialize::value::SerializeValue;

pub use rows::Rows;
pub use vector::Vector;

mod rows;
mod vector;

/// A Rust type that a column may have.
pub trait ColumnType: 'static {
    fn cql() -> String;
}

/// A type whose columns compare with operands. Vectors don't: they are searched.
pub trait Comparable: ColumnType {
    type Operand<'a>: SerializeValue + Send + Sync;
}

macro_rules! comparable {
    ($($rust:ty, $operand:ty, $cql:literal;)+) => {
        $(impl ColumnType for $rust {
            fn cql() -> String {
                $cql.to_owned()
            }
        }

        impl Comparable for $rust {
            type Operand<'a> = $operand;
        })+
    };
}

comparable! {
    String, &'a str, "text";
    bool, bool, "boolean";
    i32, i32, "int";
    i64, i64, "bigint";
    f64, f64, "double";
}

/// A column that may be null. It compares like one that may not.
impl<Type: ColumnType> ColumnType for Option<Type> {
    fn cql() -> String {
        Type::cql()
    }
}

impl<Type: Comparable> Comparable for Option<Type> {
    type Operand<'a> = Type::Operand<'a>;
}

/// A column of one table, of one type.
pub struct Column<T, Type> {
    name: &'static str,
    of: PhantomData<fn() -> (T, Type)>,
}

impl<T, Type> Column<T, Type> {
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let of = PhantomData;
        Self { name, of }
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl<T: Table, Type: Comparable> Column<T, Type> {
    #[must_use]
    pub fn equals(self, operand: Type::Operand<'_>) -> Condition<'_, T> {
        self.compare("=", operand)
    }

    #[must_use]
    pub fn at_least(self, operand: Type::Operand<'_>) -> Condition<'_, T> {
        self.compare(">=", operand)
    }

    #[must_use]
    pub fn at_most(self, operand: Type::Operand<'_>) -> Condition<'_, T> {
        self.compare("<=", operand)
    }

    fn compare<'a>(self, operator: &str, operand: Type::Operand<'a>) -> Condition<'a, T> {
        Condition {
            text: format!("{} {operator} ?", self.name),
            operand: Box::new(operand),
            of: PhantomData,
        }
    }
}

type BoundOperand<'a> = Box<dyn SerializeValue + Send + Sync + 'a>;

/// A comparison for `WHERE` of one table. Its operand is bound, never part of the text.
pub struct Condition<'a, T> {
    text: String,
    operand: BoundOperand<'a>,
    of: PhantomData<fn() -> T>,
}

/// A whole primary key: a condition on each of its columns.
pub struct Key<'a, T>(pub(crate) Vec<Condition<'a, T>>);

/// A struct that is a table. The macro implements it.
pub trait Table:
    SerializeRow + for<'frame, 'metadata> DeserializeRow<'frame, 'metadata> + Send + 'static
{
    const STRUCT: &'static str;
    /// The columns in the order of the struct's fields.
    const COLUMNS: &'static [&'static str];

    /// `a text, b int, PRIMARY KEY ((a), b)`.
    fn definition() -> String;
}

/// Declares a struct and the table that it is: partition key, clustering key, then the rest.
macro_rules! table {
    (
        $(#[$about:meta])*
        pub struct $table:ident {
            $(#[partition_key] pub $partition:ident: $partition_type:ty,)+
            $(#[clustering_key] pub $clustering:ident: $clustering_type:ty,)*
            $(pub $column:ident: $column_type:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, scylla::DeserializeRow, scylla::SerializeRow)]
        pub struct $table {
            $(pub $partition: $partition_type,)+
            $(pub $clustering: $clustering_type,)*
            $(pub $column: $column_type,)*
        }

        $crate::mapping::columns!($table {
            $($partition: $partition_type,)+
            $($clustering: $clustering_type,)*
            $($column: $column_type,)*
        });

        impl $table {
            /// The whole primary key of a row.
            #[must_use]
            pub fn key<'a>(
                $($partition: <$partition_type as $crate::mapping::Comparable>::Operand<'a>,)+
                $($clustering: <$clustering_type as $crate::mapping::Comparable>::Operand<'a>,)*
            ) -> $crate::mapping::Key<'a, Self> {
                $crate::mapping::Key(vec![
                    $(Self::$partition().equals($partition),)+
                    $(Self::$clustering().equals($clustering),)*
                ])
            }
        }

        impl $crate::mapping::Table for $table {
            const STRUCT: &'static str = stringify!($table);
            const COLUMNS: &'static [&'static str] = &[
                $(stringify!($partition),)+
                $(stringify!($clustering),)*
                $(stringify!($column),)*
            ];

            fn definition() -> String {
                use $crate::mapping::ColumnType;
                let columns = [
                    $((stringify!($partition), <$partition_type>::cql()),)+
                    $((stringify!($clustering), <$clustering_type>::cql()),)*
                    $((stringify!($column), <$column_type>::cql()),)*
                ];
                let columns = columns.map(|(name, cql)| format!("{name} {cql}")).join(", ");
                let partition = [$(stringify!($partition)),+].join(", ");
                let key = [format!("({partition})"), $(stringify!($clustering).to_owned()),*].join(", ");
                format!("{columns}, PRIMARY KEY ({key})")
            }
        }
    };
}

/// A function for each column, with the name and the type of its field.
macro_rules! columns {
    ($table:ident { $($column:ident: $type:ty,)+ }) => {
        impl $table {
            $(#[must_use]
            pub const fn $column() -> $crate::mapping::Column<Self, $type> {
                $crate::mapping::Column::new(stringify!($column))
            })+
        }
    };
}

pub(crate) use columns;
pub(crate) use table;
