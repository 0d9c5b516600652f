//! The index as its users see it, a file for each behaviour. One program, so that it links once.

mod bad_input;
mod churn;
mod completeness;
mod concurrency;
mod data;
mod duplicates;
mod extremes;
mod memory;
mod metrics;
mod model;
mod oracle;
mod quantization;
mod recall;
mod zero_vectors;
