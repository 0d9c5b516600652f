//! `annulus export`: the rows of a table into a file that `annulus import` reads again.
//!
//! Rows are read page by page, and each page is written before the next comes. The file has its
//! name only once it is whole.

mod npy;
mod parquet;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scylla::client::session::Session;
use scylla::deserialize::row::ColumnIterator;
use scylla::response::PagingState;
use scylla::response::query_result::{ColumnSpecs, QueryRowsResult};
use scylla::statement::prepared::PreparedStatement;
use value::CqlType;
use value::identifier::Identifier;

use crate::cql_json::cql_type;
use crate::import::FileFormat;
use crate::server_error;
use crate::table_name::QualifiedTable;
use crate::table_schema;
use crate::{CqlFlags, ToolError};

/// The bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Examples of the command, for its help.
pub const EXAMPLES: &str = "Examples:
  annulus export shop.docs --to docs.parquet
  annulus export shop.docs --to red.csv --columns id,title --where \"colour = 'red'\"
  annulus export shop.docs --to vectors.npy --ids ids.npy
  annulus export shop.docs --to - --format jsonl | gzip > docs.jsonl.gz";

/// The flags of `annulus export`.
#[derive(Args, Clone, Debug)]
pub struct ExportFlags {
    /// Table to export
    #[arg(value_name = "KEYSPACE.TABLE")]
    table: QualifiedTable,

    /// File to write; - is the standard output
    #[arg(long, value_name = "FILE")]
    to: PathBuf,

    /// Format of the file, where its name doesn't say it
    #[arg(long, value_enum)]
    format: Option<FileFormat>,

    /// Columns to export; without it all
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<String>,

    /// Condition on the rows, as CQL has it after WHERE, with ALLOW FILTERING where it needs that
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,

    /// File for the keys of an npy file's rows: .npy for one column of whole numbers, else a text
    /// with one a line
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,

    /// Rows of a page
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(i32).range(1..))]
    page_size: i32,

    #[command(flatten)]
    connection: CqlFlags,
}

/// A column of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExportColumn {
    name: String,
    cql_type: CqlType,
    is_key: bool,
}

/// A file that rows are written to. A value is serialised, or `None` for null.
trait RowSink {
    /// Writes a row.
    fn row(&mut self, values: &[Option<&[u8]>]) -> Result<(), ToolError>;

    /// Writes the rest. The file is whole after that.
    fn finish(&mut self) -> Result<(), ToolError>;

    /// The number of rows that were left out, which the format can't hold.
    fn left_out(&self) -> u64 {
        0
    }
}

fn unwritable(path: &Path, error: &dyn ToString) -> ToolError {
    ToolError::File(format!("{}: {}", path.display(), error.to_string()))
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Runs `annulus export`.
///
/// # Errors
/// If the flags, the server or the file can't be used, or the user interrupts.
pub async fn run(flags: ExportFlags) -> Result<(), ToolError> {
    let format = flags.format.or_else(|| FileFormat::of_name(&flags.to));
    let format = format.ok_or_else(|| {
        ToolError::Usage(format!(
            "--to {}: the name says no format: name one with --format",
            flags.to.display()
        ))
    })?;
    let session = flags.connection.connect().await?;
    let columns = columns(&session, &flags).await?;
    let statement = select_statement(&flags, &columns);
    let mut prepared = session.prepare(statement.as_str()).await.map_err(|error| {
        ToolError::Statement(format!(
            "{statement}: {}",
            server_error::of_preparation(&error)
        ))
    })?;
    prepared.set_page_size(flags.page_size);
    prepared.set_is_idempotent(true);
    let path = part(&flags.to);
    let work = async {
        let mut pages = RowPages::new(&session, &prepared);
        let first = pages.next().await?;
        let columns = match &first {
            Some(page) => with_types(columns, page.column_specs())?,
            None => columns,
        };
        let mut sink = sink(format, &flags, &path, columns)?;
        write_all(&mut pages, first, &mut *sink).await
    };
    let written = tokio::select! {
        written = work => written,
        _ = tokio::signal::ctrl_c() => Err(ToolError::Interrupted),
    };
    match written {
        Ok(sums) if is_stdout(&flags.to) => sums.say(&flags),
        Ok(sums) => {
            std::fs::rename(&path, &flags.to).map_err(|error| unwritable(&flags.to, &error))?;
            sums.say(&flags);
        }
        Err(error) => {
            if !is_stdout(&flags.to) {
                let _ = std::fs::remove_file(&path);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The file until it is whole.
fn part(path: &Path) -> PathBuf {
    if is_stdout(path) {
        return path.to_path_buf();
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

/// The columns that are exported. Their types come with the rows.
async fn columns(session: &Session, flags: &ExportFlags) -> Result<Vec<ExportColumn>, ToolError> {
    let table = table_schema::columns(session, &flags.table).await?;
    let table =
        table.ok_or_else(|| ToolError::Usage(format!("there is no table {}", flags.table)))?;
    let column = |name: &str, is_key| ExportColumn {
        name: name.to_owned(),
        cql_type: CqlType::Text,
        is_key,
    };
    if flags.columns.is_empty() {
        let all = table.iter().map(|of| column(&of.name, of.is_key));
        return Ok(all.collect());
    }
    let chosen = flags.columns.iter().map(|name| {
        let exact = table.iter().find(|of| of.name == *name);
        let found = exact.or_else(|| table.iter().find(|of| of.name == name.to_lowercase()));
        let found = found.ok_or_else(|| {
            let names: Vec<_> = table.iter().map(|of| of.name.as_str()).collect();
            let names = names.join(", ");
            ToolError::Usage(format!("the table has no column {name}: it has {names}"))
        })?;
        Ok(column(&found.name, found.is_key))
    });
    chosen.collect()
}

fn select_statement(flags: &ExportFlags, columns: &[ExportColumn]) -> String {
    let names: Vec<_> = columns
        .iter()
        .map(|column| Identifier(&column.name).to_string())
        .collect();
    let condition = flags.condition.as_ref();
    let condition = condition
        .map(|condition| format!(" WHERE {condition}"))
        .unwrap_or_default();
    format!(
        "SELECT {} FROM {}{condition}",
        names.join(", "),
        flags.table
    )
}

fn with_types(
    mut columns: Vec<ExportColumn>,
    specs: ColumnSpecs<'_, '_>,
) -> Result<Vec<ExportColumn>, ToolError> {
    for (column, spec) in columns.iter_mut().zip(specs.iter()) {
        let found = cql_type(spec.typ());
        column.cql_type = found.map_err(|error| ToolError::Statement(error.0))?;
    }
    Ok(columns)
}

fn sink(
    format: FileFormat,
    flags: &ExportFlags,
    path: &Path,
    columns: Vec<ExportColumn>,
) -> Result<Box<dyn RowSink>, ToolError> {
    if format == FileFormat::Npy {
        let sink = npy::NpySink::new(path, flags.ids.as_deref(), &columns)?;
        return Ok(Box::new(sink));
    }
    let output: Box<dyn Write + Send> = match is_stdout(path) {
        true => Box::new(io::stdout()),
        false => Box::new(File::create(path).map_err(|error| unwritable(path, &error))?),
    };
    let output = BufWriter::with_capacity(BUFFER_BYTES, output);
    Ok(match format {
        FileFormat::Parquet => Box::new(parquet::ParquetSink::new(output, columns)?),
        FileFormat::Csv => Box::new(text::CsvSink::new(output, columns)?),
        _ => Box::new(text::JsonSink::new(output, columns)),
    })
}

/// The pages of a statement's rows.
struct RowPages<'a> {
    session: &'a Session,
    statement: &'a PreparedStatement,
    /// Where the next page begins; `None` after the last.
    next: Option<PagingState>,
}

impl<'a> RowPages<'a> {
    fn new(session: &'a Session, statement: &'a PreparedStatement) -> RowPages<'a> {
        RowPages {
            session,
            statement,
            next: Some(PagingState::start()),
        }
    }

    async fn next(&mut self) -> Result<Option<QueryRowsResult>, ToolError> {
        let Some(state) = self.next.take() else {
            return Ok(None);
        };
        let page = self.session.execute_single_page(self.statement, (), state);
        let (page, state) = page.await.map_err(|error| {
            ToolError::Statement(format!(
                "{}: {}",
                self.statement.get_statement(),
                server_error::message(&error)
            ))
        })?;
        if let ControlFlow::Continue(state) = state.into_paging_control_flow() {
            self.next = Some(state);
        }
        let page = page.into_rows_result();
        page.map(Some)
            .map_err(|error| ToolError::Statement(error.to_string()))
    }
}

/// The rows of an export, and its time.
struct ExportSums {
    rows: u64,
    left_out: u64,
    started: Instant,
}

impl ExportSums {
    fn say(&self, flags: &ExportFlags) {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut text = format!(
            "exported {} rows of {} in {seconds:.1} s ({:.0} rows/s)",
            self.rows,
            flags.table,
            self.rows as f64 / seconds.max(0.001)
        );
        if self.left_out > 0 {
            text += &format!("; {} rows without a vector are left out", self.left_out);
        }
        let _ = writeln!(io::stderr(), "{text}");
    }
}

async fn write_all(
    pages: &mut RowPages<'_>,
    first: Option<QueryRowsResult>,
    sink: &mut dyn RowSink,
) -> Result<ExportSums, ToolError> {
    let style = ProgressStyle::with_template("{spinner} {pos} rows, {per_sec}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut sums = ExportSums {
        rows: 0,
        left_out: 0,
        started: Instant::now(),
    };
    let mut page = first;
    while let Some(rows) = page {
        let written = write_page(&rows, sink)?;
        sums.rows += written;
        bar.inc(written);
        page = pages.next().await?;
    }
    sink.finish()?;
    bar.finish_and_clear();
    sums.left_out = sink.left_out();
    sums.rows -= sums.left_out;
    Ok(sums)
}

fn write_page(page: &QueryRowsResult, sink: &mut dyn RowSink) -> Result<u64, ToolError> {
    let wrong = |error: &dyn ToString| {
        ToolError::Statement(format!(
            "the server's answer can't be read: {}",
            error.to_string()
        ))
    };
    let rows = page
        .rows::<ColumnIterator<'_, '_>>()
        .map_err(|error| wrong(&error))?;
    let mut count = 0;
    let mut values = Vec::new();
    for row in rows {
        values.clear();
        for column in row.map_err(|error| wrong(&error))? {
            let column = column.map_err(|error| wrong(&error))?;
            values.push(column.slice.map(|slice| slice.as_slice()));
        }
        sink.row(&values)?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: ExportFlags,
    }

    #[test]
    fn the_command_is_parsed_and_becomes_a_statement() {
        let words = ["export", "ks.t", "--to", "t.csv", "--where", "a = 1"];
        let flags = Program::try_parse_from(words)
            .unwrap_or_else(|error| panic!("{error}"))
            .flags;
        let column = ExportColumn {
            name: "Part".to_owned(),
            cql_type: CqlType::Text,
            is_key: true,
        };
        let statement = select_statement(&flags, &[column]);
        assert_eq!(statement, "SELECT \"Part\" FROM ks.t WHERE a = 1");
        assert_eq!(part(&flags.to), PathBuf::from("t.csv.part"));
        assert!(Program::try_parse_from(["export", "ks.t"]).is_err());
        assert!(Program::try_parse_from(["export", "t", "--to", "a.csv"]).is_err());
    }
}
