//! The server side of the protocol over real sockets, in front of a service that does what the
//! tests need instead of CQL.

mod client;
mod echo;

mod bounds;
mod events;
mod garbage;
mod handshake;
mod hangups;
mod requests;
mod shutdown;
