//! The results as they are written to the file.

use contender::Description;
use serde::Serialize;

use super::builds::BuiltBy;
use crate::ratio::Reading;
use crate::sweep::Scope;

/// The results of a contender on a data set at one `k` and recall. Ratios are to `usearch-f32` in
/// the same run.
#[derive(Serialize)]
pub struct Record {
    /// The data set, followed by `/kind` for the queries of one kind.
    dataset: String,
    dim: usize,
    n: usize,
    contender: String,
    k: usize,
    /// The recall asked for.
    recall: f64,
    /// The ratio of queries a second of processor time, in the median round.
    qps_ratio: Option<f64>,
    /// The ratio of processor seconds for a build; less is better.
    build_cpu_ratio: Option<f64>,
    /// Bytes of a vector that cannot be dropped and read again. They include the full vectors only
    /// if these are not in a file.
    bytes_per_vector_ram: f64,

    qps: f64,
    qps_ratio_min: Option<f64>,
    qps_ratio_max: Option<f64>,
    /// The ratio of queries a second by the clock, in the median round.
    qps_ratio_wall: Option<f64>,
    /// The recall of the fastest width, if even that is above the recall asked for.
    recall_above: Option<f64>,
    build_cpu_seconds: f64,
    bytes_per_vector_claimed: Option<f64>,
    bytes_per_vector_mapped: Option<f64>,
    distances_per_query: Option<f64>,
    rescored_per_query: Option<f64>,
    hops_per_query: Option<f64>,
    bytes_per_query: Option<f64>,
    kernels: String,
}

impl Record {
    /// Makes a record from the measurements.
    pub fn new(
        about: &Description,
        scope: &Scope,
        built: &BuiltBy,
        k: usize,
        recall: f64,
        reading: &Reading,
    ) -> Record {
        let each = |bytes: u64| bytes as f64 / about.vectors as f64;
        let memory = built.first.memory;
        Record {
            dataset: scope.name.clone(),
            dim: about.dimensions,
            n: about.vectors,
            contender: built.contender.clone(),
            k,
            recall,
            qps_ratio: reading.ratio.map(|ratio| ratio.median),
            build_cpu_ratio: built.ratio.map(|ratio| ratio.median),
            bytes_per_vector_ram: each(built.bytes_in_ram()),
            qps: reading.qps,
            qps_ratio_min: reading.ratio.map(|ratio| ratio.min),
            qps_ratio_max: reading.ratio.map(|ratio| ratio.max),
            qps_ratio_wall: reading.wall_ratio.map(|ratio| ratio.median),
            recall_above: reading.recall_above,
            build_cpu_seconds: built.seconds(),
            bytes_per_vector_claimed: memory.map(|memory| each(memory.anonymous)),
            bytes_per_vector_mapped: memory.map(|memory| each(memory.mapped)),
            distances_per_query: reading.effort.map(|effort| effort.distances),
            rescored_per_query: reading.effort.and_then(|effort| effort.rescored),
            hops_per_query: reading.effort.map(|effort| effort.hops),
            bytes_per_query: reading.effort.and_then(|effort| effort.bytes),
            kernels: built.first.kernels.clone(),
        }
    }
}

/// Writes records as a JSON list, one object a line.
pub fn to_json(records: &[Record]) -> anyhow::Result<String> {
    let lines: Vec<String> = records
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}
