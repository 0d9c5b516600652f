//! The native protocol as seen from a socket.

mod allocation;
mod drivers;
mod hostile;
mod round_trip;
mod strategies;
