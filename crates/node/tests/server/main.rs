//! The server over real sockets: the protocol in front of a service that does what the tests need
//! ([`echo`]), and statements in front of a real database ([`real`]).

mod client;
mod echo;
mod real;

mod bounds;
mod describe;
mod driver_queries;
mod events;
mod garbage;
mod handshake;
mod hangups;
mod hostile_statements;
mod memory;
mod requests;
mod schema_events;
mod shutdown;
mod statements;
