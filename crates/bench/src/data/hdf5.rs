//! Reads HDF5 files in the layout of ann-benchmarks (github.com/erikbern/ann-benchmarks): datasets
//! `train`, `test` and `neighbors`, with the metric in the file's attribute `distance`.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use hdf5_reader::{Datatype, Hdf5File};

use super::array::{NumberArray, NumberValues};
use super::exact::SimilarityMetric;

/// Reads a two-dimensional dataset.
pub fn read(path: &Path, dataset: &str) -> anyhow::Result<NumberArray> {
    let file = Hdf5File::open(path)?;
    let dataset = file
        .dataset(dataset)
        .with_context(|| format!("dataset {dataset:?}"))?;
    let &[_, columns] = dataset.shape() else {
        bail!(
            "dataset {:?} has the shape {:?}; it must have rows of vectors (sparse sets are not supported)",
            dataset.name(),
            dataset.shape()
        );
    };
    let columns = usize::try_from(columns)?;
    match dataset.dtype() {
        Datatype::FloatingPoint { size: 4, .. } => {
            let values = dataset.read_array::<f32>()?.into_iter().collect();
            NumberArray::new(columns, NumberValues::Floats(values), "float32")
        }
        Datatype::FloatingPoint { size: 8, .. } => {
            let values = dataset.read_array::<f64>()?;
            let values = values.into_iter().map(|value| value as f32).collect();
            NumberArray::new(columns, NumberValues::Floats(values), "float64")
        }
        Datatype::FixedPoint { size: 4, .. } => {
            let values = dataset.read_array::<i32>()?;
            let values = values.into_iter().map(i64::from).collect();
            NumberArray::new(columns, NumberValues::Integers(values), "int32")
        }
        Datatype::FixedPoint { size: 8, .. } => {
            let values = dataset.read_array::<i64>()?.into_iter().collect();
            NumberArray::new(columns, NumberValues::Integers(values), "int64")
        }
        other => bail!(
            "dataset {:?} has elements {other:?}; known are float32, float64, int32 and int64",
            dataset.name()
        ),
    }
}

/// Reads the metric that the file names. Returns `None` if it names none, and fails if it names one
/// that is not known.
pub fn metric(path: &Path) -> anyhow::Result<Option<SimilarityMetric>> {
    let file = Hdf5File::open(path)?;
    let Ok(distance) = file.root_group()?.attribute("distance") else {
        return Ok(None);
    };
    let name = distance.read_string().context("attribute \"distance\"")?;
    let metric = match name.as_str() {
        "angular" => SimilarityMetric::Cosine,
        "euclidean" => SimilarityMetric::Euclidean,
        "dot" | "ip" => SimilarityMetric::DotProduct,
        other => bail!("its metric is {other:?}; known are angular, euclidean and dot"),
    };
    Ok(Some(metric))
}

/// Reads the names of the datasets at the top of the file.
pub fn names(path: &Path) -> anyhow::Result<Vec<String>> {
    let file = Hdf5File::open(path)?;
    let datasets = file.root_group()?.datasets()?;
    ensure!(!datasets.is_empty(), "it has no datasets at the top");
    Ok(datasets
        .iter()
        .map(|dataset| dataset.name().to_owned())
        .collect())
}
