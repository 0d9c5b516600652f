//! `annulus import`: rows of files into a table.
//!
//! A thread reads the files and converts their rows ([`feed`]), as the types of the table's columns
//! want them ([`convert`]); where there is no table, the first rows decide what it is ([`infer`],
//! [`plan`]). Rows are written many at once ([`writer`]), and a record says how far the import is
//! ([`log`]), so that one that was stopped goes on. Memory has a bound whatever the files are: a
//! batch, a page or a row of each step.

mod convert;
mod embedded_texts;
mod feed;
mod file_value;
mod infer;
mod log;
mod plan;
mod progress;
mod rows;
mod source;
mod writer;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use embeddings::{EmbedderLimits, EmbedderOptions, TextEmbedder};
use scylla::client::session::Session;
use tokio::sync::mpsc;
use value::identifier::Identifier;

use crate::server_error::of_statement;
use crate::table_name::QualifiedTable;
use crate::table_schema::{self, TableColumn};
use crate::{CqlFlags, ToolError};
use embedded_texts::EmbeddedColumn;
use feed::{FeedBatch, FeedJob, FeedMeter, SampledFile};
use log::{ImportIdentity, ImportLog, LogPaths};
use plan::{ColumnOrigin, InsertPlan, PlanOptions, TableDefinition};
use progress::ImportProgress;
use source::SourceOptions;
use writer::InsertWriter;

pub use source::FileFormat;

/// The batches that the reading thread goes ahead.
const BATCHES_AHEAD: usize = 4;

/// Examples of the command, for its help.
pub const EXAMPLES: &str = "Examples:
  annulus import docs.parquet --table shop.docs --create     # the table, too, by the file's columns
  annulus import a.csv b.csv --table shop.docs --create --key sku
  annulus import vectors.npy --ids ids.npy --table shop.docs
  zcat docs.jsonl.gz | annulus import - --format jsonl --table shop.docs
  annulus import docs.csv --table shop.docs --create --embed text:embedding \\
      --embeddings-url http://127.0.0.1:8080/v1/embeddings

Rows that do not fit are written to KEYSPACE.TABLE.rejected.jsonl, with the reasons. An import that was
stopped goes on when the same command runs again.";

/// The flags of `annulus import`. Its `--key` is that of the table, so the one of a certificate has
/// only its other name, `--cert-key`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("key_path", |arg| arg.visible_alias(None::<&'static str>)))]
pub struct ImportFlags {
    /// Files to import: Parquet, CSV, JSON lines or npy, of the same columns; - is the standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Table that gets the rows
    #[arg(long, value_name = "KEYSPACE.TABLE")]
    table: QualifiedTable,

    /// Make the table, and its keyspace, if it is not there: columns by the file's first rows
    #[arg(long)]
    create: bool,

    /// Format of the files, where their names and first bytes don't say it
    #[arg(long, value_enum)]
    format: Option<FileFormat>,

    /// Columns of the key of a table that is made, the first one the partition key; without it the
    /// column `id`, or else one that is made of rows' numbers
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    key: Vec<String>,

    /// Type of a column of a table that is made, such as code:text
    #[arg(long = "type", value_name = "COLUMN:TYPE", value_parser = pair)]
    types: Vec<(String, String)>,

    /// Columns of the file to import; without it all
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    columns: Vec<String>,

    /// Character between the cells of CSV, or `tab`
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter)]
    delimiter: Option<u8>,

    /// Keys of an npy file's rows: an npy file of whole numbers, or a text with one a line; without
    /// it keys count from 0
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,

    /// Column for an npy file's vectors
    #[arg(long, value_name = "COLUMN", default_value = "vector")]
    vector_column: String,

    /// Rejected rows that an import may have; one more ends it
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_errors: u64,

    /// File for rejected rows; without it KEYSPACE.TABLE.rejected.jsonl in the working directory
    #[arg(long, value_name = "FILE")]
    rejected: Option<PathBuf>,

    /// File with how far the import is; without it KEYSPACE.TABLE.import.json in the working
    /// directory
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Begin with the first row, even if the same import was stopped later
    #[arg(long)]
    restart: bool,

    /// Inserts in flight
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: u16,

    /// Column of texts, and the column for their embeddings
    #[arg(long, value_name = "TEXT:EMBEDDING", value_parser = pair, requires = "embeddings_url")]
    embed: Option<(String, String)>,

    /// Server that makes embeddings, of OpenAI's form
    #[arg(long, value_name = "URL", requires = "embed")]
    embeddings_url: Option<String>,

    /// Model that the server is to use
    #[arg(long, value_name = "NAME", default_value = EmbedderOptions::MODEL)]
    embeddings_model: String,

    /// File with the key of the server's API
    #[arg(long, value_name = "FILE")]
    embeddings_key_file: Option<PathBuf>,

    /// Authorities that sign the server's certificate, PEM; without it those of the system
    #[arg(long, value_name = "FILE")]
    embeddings_ca: Option<PathBuf>,

    /// Make a vector index on a column after the import
    #[arg(long, value_name = "COLUMN")]
    index_vector: Vec<String>,

    /// Make a full-text index on a column after the import
    #[arg(long, value_name = "COLUMN")]
    index_text: Vec<String>,

    #[command(flatten)]
    connection: CqlFlags,
}

/// Reads `a:b`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((first, second)) if !first.is_empty() && !second.is_empty() => {
            Ok((first.to_owned(), second.to_owned()))
        }
        _ => Err("write two names with a colon between them".to_owned()),
    }
}

/// Reads a character of one byte.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if matches!(text, "tab" | "\\t") => Ok(b'\t'),
        [only] if !matches!(only, b'"' | b'\n' | b'\r') => Ok(*only),
        _ => Err("write one character, such as ; or tab".to_owned()),
    }
}

impl ImportFlags {
    fn source_options(&self) -> SourceOptions {
        SourceOptions {
            format: self.format,
            delimiter: self.delimiter,
            ids: self.ids.clone(),
            vector_column: self.vector_column.clone(),
            id_column: self.key.first().cloned().unwrap_or_else(|| "id".to_owned()),
        }
    }

    fn plan_options(&self) -> PlanOptions {
        PlanOptions {
            columns: self.columns.clone(),
            key: self.key.clone(),
            types: self.types.clone(),
            embed: self.embed.clone(),
        }
    }

    fn embeddings(&self) -> Result<Option<Arc<TextEmbedder>>, ToolError> {
        let Some(url) = &self.embeddings_url else {
            return Ok(None);
        };
        let client = TextEmbedder::new(&EmbedderOptions {
            url: url.clone(),
            model: self.embeddings_model.clone(),
            key_file: self.embeddings_key_file.clone(),
            authorities: self.embeddings_ca.clone(),
            limits: EmbedderLimits::OF_AN_IMPORT,
        });
        Ok(Some(Arc::new(client?)))
    }

    /// The files of the record and of rejected rows.
    fn paths(&self) -> LogPaths {
        let QualifiedTable { keyspace, table } = &self.table;
        let name = format!("{keyspace}.{table}").replace('/', "_");
        let usual = |end: &str| PathBuf::from(format!("{name}.{end}"));
        LogPaths {
            state: self.state.clone().unwrap_or_else(|| usual("import.json")),
            rejects: self
                .rejected
                .clone()
                .unwrap_or_else(|| usual("rejected.jsonl")),
        }
    }
}

/// Runs `annulus import`.
///
/// # Errors
/// If the flags, a file or the server can't be used, too many rows are rejected, or the user
/// interrupts.
pub async fn run(flags: ImportFlags) -> Result<(), ToolError> {
    let embeddings = flags.embeddings()?;
    let mut first = SampledFile::open(&flags.files[0], &flags.source_options())?;
    let session = flags.connection.connect().await?;
    let table = match table_schema::columns(&session, &flags.table).await? {
        Some(table) => table,
        None if flags.create => create(&session, &flags, &mut first, embeddings.as_deref()).await?,
        None => {
            return Err(ToolError::Usage(format!(
                "there is no table {}: --create makes it",
                flags.table
            )));
        }
    };
    let columns = plan::origins(first.columns(), &table, &flags.plan_options())?;
    let origins: Vec<_> = columns.iter().map(|(_, origin)| *origin).collect();
    let statement = InsertPlan::insert_statement(&flags.table, &columns);
    let identity = format!("{statement} {origins:?} {}", flags.embeddings_model);
    let identity = ImportIdentity::new(identity, &flags.files);
    let plan = InsertPlan::prepare(&session, &flags.table, columns).await?;
    let embedded = embedded_column(&plan)?.zip(embeddings);
    let mut log = ImportLog::open(flags.paths(), identity, flags.restart)?;
    let meter = Arc::new(FeedMeter::default());
    let mut progress = ImportProgress::new(meter.clone(), log.rows());
    if log.rows() > 0 {
        progress.say(&format!(
            "going on after row {} (--restart begins with the first)",
            log.rows()
        ));
    }
    let job = FeedJob {
        first: Some(first),
        files: flags.files.clone(),
        options: flags.source_options(),
        columns: plan.columns.clone(),
        skip: log.rows(),
        meter,
    };
    let writer = InsertWriter {
        session: &session,
        plan: &plan,
        in_flight_max: flags.in_flight.into(),
        errors_max: flags.max_errors,
    };
    let written = read_and_write(job, embedded, &writer, &mut log, &mut progress).await;
    if let Err(error) = written {
        log.store();
        progress.clear();
        if log.can_go_on() {
            let done = log.rows();
            progress.say(&format!(
                "{done} rows are done; the same command goes on from there"
            ));
        }
        return Err(error);
    }
    log.finish()?;
    progress.sum_up(&flags.table.to_string(), &log);
    make_indexes(&session, &flags, &table, &progress).await
}

/// Reads in a thread of its own, as files and pipes block, and writes here.
async fn read_and_write(
    job: FeedJob,
    embedded: Option<(EmbeddedColumn, Arc<TextEmbedder>)>,
    writer: &InsertWriter<'_>,
    log: &mut ImportLog,
    progress: &mut ImportProgress,
) -> Result<(), ToolError> {
    let (sender, receiver) = mpsc::channel::<FeedBatch>(BATCHES_AHEAD);
    let thread = std::thread::Builder::new().name("import-reader".to_owned());
    let thread = thread.spawn(move || job.run(&sender));
    let thread = thread.map_err(|error| ToolError::File(format!("starting a thread: {error}")))?;
    let batches = match embedded {
        None => receiver,
        Some((column, client)) => embedded_texts::stage(client, column, receiver),
    };
    writer.write(batches, log, progress).await?;
    // All senders are dropped, so the thread has ended.
    thread.join().map_err(|_| {
        let why = "a file is damaged, or of a form that can't be read: the rows before are written";
        ToolError::File(why.to_owned())
    })
}

/// Makes the table that the first rows of a file need, and its keyspace.
async fn create(
    session: &Session,
    flags: &ImportFlags,
    first: &mut SampledFile,
    embeddings: Option<&TextEmbedder>,
) -> Result<Vec<TableColumn>, ToolError> {
    let profiles = first.sample()?;
    let options = flags.plan_options();
    let embedding = match (options.embedded_text(first.columns())?, embeddings) {
        (Some(text), Some(client)) => {
            let text = first.first_text(text).ok_or_else(|| {
                ToolError::Usage("--embed: the first rows have no text in that column".to_owned())
            })?;
            client.embed(&[text]).await?.first().map(Vec::len)
        }
        _ => None,
    };
    let table = TableDefinition::new(first.columns(), &profiles, embedding, &options)?;
    let keyspace = &flags.table.keyspace;
    if !table_schema::has_keyspace(session, keyspace).await? {
        let statement = format!(
            "CREATE KEYSPACE IF NOT EXISTS {} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}}",
            Identifier(keyspace)
        );
        execute(session, &statement).await?;
    }
    execute(session, &table.create_statement(&flags.table)).await?;
    let columns = table_schema::columns(session, &flags.table).await?;
    columns.ok_or_else(|| {
        let table = &flags.table;
        ToolError::Statement(format!("{table} was made, and the server does not list it"))
    })
}

/// Executes a statement, and shows it.
async fn execute(session: &Session, statement: &str) -> Result<(), ToolError> {
    let done = session.query_unpaged(statement, ()).await;
    done.map_err(|error| of_statement(statement, &error))?;
    let _ = writeln!(io::stderr(), "{statement};");
    Ok(())
}

fn embedded_column(plan: &InsertPlan) -> Result<Option<EmbeddedColumn>, ToolError> {
    let is_embedded = |origin| matches!(origin, ColumnOrigin::Embedding(_));
    let mut columns = plan.columns.iter();
    let Some(position) = columns.position(|column| is_embedded(column.origin)) else {
        return Ok(None);
    };
    let column = &plan.columns[position];
    match column.cql_type.float_vector_dimensions() {
        Some(dimensions) => Ok(Some(EmbeddedColumn {
            position,
            dimensions: dimensions.into(),
        })),
        None => Err(ToolError::Usage(format!(
            "--embed: the column {} is a {}, not a vector of floats",
            column.name, column.cql_type
        ))),
    }
}

/// The statement that makes an index on a column.
fn index_statement(table: &QualifiedTable, column: &str, class: &str) -> String {
    let name = format!("{}_{column}", table.table);
    let letters = name
        .chars()
        .map(|letter| match letter.is_ascii_alphanumeric() {
            true => letter,
            false => '_',
        });
    let name: String = letters.collect();
    let (name, column) = (Identifier(&name), Identifier(column));
    format!("CREATE CUSTOM INDEX IF NOT EXISTS {name} ON {table} ({column}) USING '{class}'")
}

/// Makes the indexes that the flags name, or says how they are made where the import made the
/// table.
async fn make_indexes(
    session: &Session,
    flags: &ImportFlags,
    table: &[TableColumn],
    progress: &ImportProgress,
) -> Result<(), ToolError> {
    let statement = |column: &String, class| {
        let column = plan::column_name(column);
        index_statement(&flags.table, &column, class)
    };
    let vectors = flags
        .index_vector
        .iter()
        .map(|column| statement(column, "vector_index"));
    let texts = flags
        .index_text
        .iter()
        .map(|column| statement(column, "fulltext_index"));
    let wanted: Vec<String> = vectors.chain(texts).collect();
    for statement in &wanted {
        execute(session, statement).await?;
    }
    let searchable = table
        .iter()
        .find(|column| column.type_text.starts_with("vector<float"));
    if let (true, true, Some(column)) = (flags.create, wanted.is_empty(), searchable) {
        let statement = index_statement(&flags.table, &column.name, "vector_index");
        progress.say(&format!("to search it by vectors: {statement};"));
        let mut texts = table.iter();
        let text = texts.find(|column| !column.is_key && column.type_text == "text");
        if let Some(text) = text {
            let statement = index_statement(&flags.table, &text.name, "fulltext_index");
            progress.say(&format!("to search it by words: {statement};"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: ImportFlags,
    }

    fn parsed(line: &str) -> Option<ImportFlags> {
        let words = std::iter::once("import").chain(line.split_whitespace());
        Program::try_parse_from(words)
            .ok()
            .map(|program| program.flags)
    }

    #[test]
    fn the_command_is_parsed() {
        let line = "a.csv b.csv --table KS.t --key a,b --type a:map<text,int> --delimiter tab";
        let flags = parsed(line).unwrap();
        assert_eq!(flags.files.len(), 2);
        assert_eq!(flags.table.to_string(), "ks.t");
        assert_eq!(flags.key, ["a", "b"]);
        assert_eq!(flags.types, [("a".to_owned(), "map<text,int>".to_owned())]);
        assert_eq!((flags.delimiter, flags.max_errors), (Some(b'\t'), 1000));
        assert_eq!(flags.paths().rejects, PathBuf::from("ks.t.rejected.jsonl"));
        for line in [
            "--table ks.t",
            "a.csv",
            "a.csv --table t",
            "a.csv --table ks.t --embed text:v",
            "a.csv --table ks.t --type a",
            "a.csv --table ks.t --delimiter ab",
            "a.csv --table ks.t --in-flight 0",
            "a.csv --table ks.t --cert-key key.pem",
        ] {
            assert!(parsed(line).is_none(), "{line}");
        }
    }

    #[test]
    fn names_of_indexes_need_no_quotes() {
        let table = "ks.docs".parse().unwrap();
        assert_eq!(
            index_statement(&table, "part no", "vector_index"),
            "CREATE CUSTOM INDEX IF NOT EXISTS docs_part_no ON ks.docs (\"part no\") USING 'vector_index'"
        );
    }
}
