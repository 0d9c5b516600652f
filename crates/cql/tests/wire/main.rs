//! Tests of the native protocol as it comes from a socket.

mod allocation;
mod drivers;
mod hostile;
mod round_trip;
mod strategies;
