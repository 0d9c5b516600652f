//! The commands `build-table`, `build-index`, `drop-index` and `drop-table`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use annulus_bench::data::{DataArguments, SimilarityMetric};
use anyhow::{Context, ensure};
use clap::Args;

use super::arguments::CqlArguments;
use super::waiting::{self, DROPPING_MAX, FORGETTING_MAX};
use crate::load::{self, TrafficLength, TrafficPlan};
use crate::report::{Measurement, OutputArguments, ResultOutput};
use crate::servers::TableNames;
use crate::servers::cql_server::RowInserter;
use crate::servers::http_server::ServerUrl;

/// The arguments of `build-table`.
#[derive(Args, Debug)]
pub struct BuildTableArguments {
    #[command(flatten)]
    cql: CqlArguments,
    #[command(flatten)]
    names: TableNames,
    #[command(flatten)]
    data: DataArguments,
    /// Copies of each row in the cluster
    #[arg(long, default_value_t = 1)]
    replication: usize,
    /// Make the table and leave it empty
    #[arg(long)]
    empty: bool,
    /// Inserts under way at once
    #[arg(long, short, default_value_t = 64)]
    concurrency: usize,
    #[command(flatten)]
    output: OutputArguments,
}

/// The arguments of `build-index`.
#[derive(Args, Debug)]
pub struct BuildIndexArguments {
    #[command(flatten)]
    cql: CqlArguments,
    /// The index service, which says when an earlier index of this name is dropped, when the new
    /// one serves, and how many rows it has
    #[arg(long, value_name = "http[s]://HOST:PORT")]
    http: Option<ServerUrl>,
    #[command(flatten)]
    names: TableNames,
    /// The similarity function of the index
    #[arg(long, value_enum, default_value_t = SimilarityMetric::Cosine)]
    metric: SimilarityMetric,
    /// Neighbours that the graph keeps of each vector (maximum_node_connections) [default: the
    /// server's]
    #[arg(long)]
    m: Option<usize>,
    /// Width of the walk when building (construction_beam_width) [default: the server's]
    #[arg(long)]
    ef_construction: Option<usize>,
    /// Least width of the walk when searching (search_beam_width) [default: the server's]
    #[arg(long)]
    ef_search: Option<usize>,
    /// The kind of the index, as it is written after USING; it gets the options of a vector_index
    #[arg(long, default_value = "vector_index")]
    using: String,
    /// The form in which vectors are stored: f32, f16, bf16, i8 or b1 [default: the server's]
    #[arg(long)]
    quantization: Option<String>,
    /// Seconds to wait until the index serves
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    patience: u64,
    #[command(flatten)]
    output: OutputArguments,
}

/// The arguments of `drop-index`.
#[derive(Args, Debug)]
pub struct DropIndexArguments {
    #[command(flatten)]
    cql: CqlArguments,
    /// The index service; the command waits until it has forgotten the index
    #[arg(long, value_name = "http[s]://HOST:PORT")]
    http: Option<ServerUrl>,
    #[command(flatten)]
    names: TableNames,
}

/// The arguments of `drop-table`.
#[derive(Args, Debug)]
pub struct DropTableArguments {
    #[command(flatten)]
    cql: CqlArguments,
    #[command(flatten)]
    names: TableNames,
}

/// Makes the keyspace and the table, and writes the base into the table.
pub async fn build_table(arguments: BuildTableArguments) -> anyhow::Result<()> {
    let base = Arc::new(arguments.data.read_base()?);
    ensure!(!base.is_empty(), "there are no vectors");
    let database = arguments.cql.connect().await?;
    let names = &arguments.names;
    database
        .change(format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {}}}",
            names.keyspace, arguments.replication
        ))
        .await?;
    database
        .change(format!(
            "CREATE TABLE {}.{} ({} bigint PRIMARY KEY, {} vector<float, {}>)",
            names.keyspace, names.table, names.key_column, names.vector_column, base.dimensions
        ))
        .await
        .context("drop-table removes a table of an earlier run")?;
    if arguments.empty {
        return Ok(());
    }
    let mut output = ResultOutput::new(&arguments.output)?;
    let plan = TrafficPlan {
        rate_per_s: None,
        length: TrafficLength::Requests(base.len() as u64),
        warm_up: Duration::ZERO,
        keep_requests: false,
    };
    let writes = database.writes(names).await?;
    let worker = || RowInserter {
        writes: writes.clone(),
        base: Arc::clone(&base),
        first: 0,
    };
    let workers = (0..arguments.concurrency).map(|_| worker()).collect();
    let progress = output.progress("insert")?;
    let measured = load::run(&plan, workers, &progress).await?;
    progress.finish_and_clear();
    let target = format!("cql://{}", database.address());
    let measurement = Measurement {
        operation: "insert".to_owned(),
        series: target.clone(),
        target,
        dataset: arguments.data.name(),
        concurrency: arguments.concurrency,
        ..Measurement::of(&measured)
    };
    let failed = measurement.failed();
    output.add(measurement)?;
    output.finish()?;
    ensure!(
        failed == 0,
        "{failed} of {} rows are not in the table",
        base.len()
    );
    Ok(())
}

/// Makes an index and waits until it serves.
pub async fn build_index(arguments: BuildIndexArguments) -> anyhow::Result<()> {
    let database = arguments.cql.connect().await?;
    let names = &arguments.names;
    let server = match &arguments.http {
        Some(url) => Some(arguments.cql.requests.server(url)?),
        None => None,
    };
    if let Some(server) = &server {
        waiting::dropped(&database, names, DROPPING_MAX).await?;
        waiting::forgotten(server, names, FORGETTING_MAX).await?;
    }
    let mut options = vec![("similarity_function", arguments.metric.name().to_owned())];
    let numbers = [
        ("maximum_node_connections", arguments.m),
        ("construction_beam_width", arguments.ef_construction),
        ("search_beam_width", arguments.ef_search),
    ];
    for (name, value) in numbers {
        options.extend(value.map(|value| (name, value.to_string())));
    }
    options.extend(arguments.quantization.clone().map(|q| ("quantization", q)));
    let options: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("'{name}': '{value}'"))
        .collect();
    let mut output = ResultOutput::new(&arguments.output)?;
    let begin = Instant::now();
    database
        .change(format!(
            "CREATE CUSTOM INDEX {} ON {}.{} ({}) USING '{}' WITH OPTIONS = {{{}}}",
            names.index,
            names.keyspace,
            names.table,
            names.vector_column,
            arguments.using,
            options.join(", ")
        ))
        .await
        .context("drop-index removes an index of an earlier run")?;
    let progress = output.progress("index")?;
    let deadline = begin + Duration::from_secs(arguments.patience);
    let rows = match &server {
        Some(server) => {
            let status = waiting::serving(server, names, deadline, &progress).await?;
            status.count
        }
        None => {
            waiting::answering(&database, names, deadline).await?;
            0
        }
    };
    progress.finish_and_clear();
    let target = format!("cql://{}", database.address());
    let mut measurement = Measurement {
        operation: "build-index".to_owned(),
        series: target.clone(),
        target,
        operations: rows as u64,
        seconds: begin.elapsed().as_secs_f64(),
        ..Measurement::default()
    };
    measurement.rate_per_s = rows as f64 / measurement.seconds;
    let seconds = measurement.seconds;
    measurement
        .figures
        .insert("seconds until it serves".to_owned(), seconds);
    output.add(measurement)?;
    output.finish()
}

/// Drops the index. With `--http` it waits until the index service has noticed.
pub async fn drop_index(arguments: DropIndexArguments) -> anyhow::Result<()> {
    let names = &arguments.names;
    let database = arguments.cql.connect().await?;
    let (keyspace, index) = (&names.keyspace, &names.index);
    database
        .change(format!("DROP INDEX {keyspace}.{index}"))
        .await?;
    let Some(url) = &arguments.http else {
        return Ok(());
    };
    let server = arguments.cql.requests.server(url)?;
    waiting::forgotten(&server, names, FORGETTING_MAX)
        .await
        .context("the database has dropped the index")
}

/// Drops the table, with its indexes.
pub async fn drop_table(arguments: DropTableArguments) -> anyhow::Result<()> {
    let names = &arguments.names;
    let database = arguments.cql.connect().await?;
    let (keyspace, table) = (&names.keyspace, &names.table);
    database
        .change(format!("DROP TABLE {keyspace}.{table}"))
        .await
}
