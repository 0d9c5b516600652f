//! The indexing service.

pub mod cdc;
pub mod compute;
pub mod db;
pub mod discovery;
pub mod engine;
pub mod identity;
pub mod index_actor;
pub mod items;
pub mod keys;
pub mod metrics;
pub mod monitor_indexes;
pub mod monitor_items;
pub mod options;
pub mod reread;
pub mod rows;
pub mod scan;
pub mod score;
pub mod table;
