//! Tests of a gateway between a client and a node, both scripted by the test: the bytes that each
//! gets of the other.

mod ends;
mod handshake;
mod limits;
mod maintenance;
mod metrics;
mod passing;
mod peer;
mod prepared;
mod ring;
mod tls;
mod version_5;
