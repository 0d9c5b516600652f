//! Tests of the real binary from outside, with the official Rust driver and CDC library. Each file
//! tests one behaviour.

mod bench;
mod cdc;
mod console;
mod crash;
mod damage;
mod equality;
mod full_disk;
mod gateway_tls;
mod gateway_with_store;
mod health;
mod index;
mod insecure;
mod linear;
mod log;
mod memory;
mod memory_runs_out;
mod operator;
mod rust_driver;
mod serve_tls;
mod server;
mod snapshot_crash;
mod store_alone;
mod text_crash;
mod unreadable_vectors;
mod upgrades;
