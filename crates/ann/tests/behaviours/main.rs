//! The index as its users see it, with a file for each behaviour. It is one program, so that it
//! links once.

mod bad_input;
mod batch;
mod churn;
mod combinations;
mod completeness;
mod concurrency;
mod concurrent_model;
mod data;
mod determinism;
mod duplicates;
mod exact;
mod explain;
mod extremes;
mod filters;
mod kept;
mod memory;
mod metrics;
mod model;
mod oracle;
mod quantization;
mod recall;
mod search_options;
mod snapshots;
mod zero_vectors;
