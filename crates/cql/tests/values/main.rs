//! Types and values as seen from outside: their text, their bytes and their order.

mod hostile;
mod order;
mod round_trip;
mod strategies;
mod type_text;
