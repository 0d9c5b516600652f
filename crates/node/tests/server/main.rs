//! The server over real sockets: the protocol with a test service ([`echo`]), and statements on a
//! real database ([`real`]).

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
mod logins;
mod memory;
mod requests;
mod schema_events;
mod shutdown;
mod statements;
mod tls;
mod version_5;
