//! The values that clients bind to the markers of a statement.

use bytes::Bytes;

/// The value of one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoundValue {
    /// Null.
    Null,
    /// Not set. A column that would be set to the marker is left as it is.
    Unset,
    /// A serialised value, which shares the memory of the frame.
    Value(Bytes),
}
