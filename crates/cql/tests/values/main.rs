//! Tests of types and values from outside the crate: their text, their bytes and their order.

mod hostile;
mod order;
mod round_trip;
mod strategies;
mod type_text;
