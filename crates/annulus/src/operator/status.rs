//! `annulus status`: the state of a running service.

use clap::Args;
use serde::Serialize;
use store_api::types::{ClockStatus, IndexInfo, Info, NodeStatus, TableSize};

use super::indexes::{memory_table, table};
use super::recall::notes;
use super::text_table::aligned;
use super::{ServiceArguments, block_on};

#[derive(Args, Debug)]
pub struct StatusArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    /// Show the tables of the database too: bytes on the disk, rows (estimated) and indexes
    #[arg(long)]
    tables: bool,
}

#[derive(Serialize)]
struct ServiceReport {
    status: NodeStatus,
    info: Info,
    clock: ClockStatus,
    indexes: Vec<IndexInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tables: Option<Vec<TableSize>>,
}

/// Runs `annulus status`.
pub fn run(arguments: StatusArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    block_on(async {
        let client = asking.client().await?;
        let explained = |error| asking.explain(error);
        let answer = ServiceReport {
            status: client.node_status().await.map_err(explained)?,
            info: client.info().await.map_err(explained)?,
            clock: client.clock().await.map_err(explained)?,
            indexes: client.indexes().await.map_err(explained)?,
            tables: match arguments.tables {
                true => Some(client.tables().await.map_err(explained)?),
                false => None,
            },
        };
        asking.print(&answer, shown)
    })
}

fn shown(answer: &ServiceReport) -> String {
    let ServiceReport {
        status,
        info,
        clock,
        indexes,
        tables,
    } = answer;
    let state = match status {
        NodeStatus::Initializing => "starting",
        NodeStatus::ConnectingToDb => "without a session to the database",
        NodeStatus::Bootstrapping => "building the indexes that it found first",
        NodeStatus::Serving => "serving",
    };
    let clock = match clock.lead_ms {
        0 => "the time of rows and logs is that of the machine".to_owned(),
        lead_ms => format!(
            "the machine's clock is {}.{:03} s behind the time of rows and logs, as it was set back: run NTP",
            lead_ms / 1_000,
            lead_ms % 1_000
        ),
    };
    let indexes = match &**indexes {
        [] => String::new(),
        indexes => {
            let memory = match memory_table(indexes) {
                memory if memory.is_empty() => memory,
                memory => format!("\n{memory}"),
            };
            let notes = match indexes.iter().map(notes).collect::<String>() {
                notes if notes.is_empty() || memory.is_empty() => notes,
                notes => format!("\n{notes}"),
            };
            format!("\n{}{memory}{notes}", table(indexes))
        }
    };
    let tables = tables.as_deref().map(table_lines).unwrap_or_default();
    format!(
        "state    {state}\nprogram  {} {}\nclock    {clock}\n{indexes}{tables}",
        info.service, info.version
    )
}

/// A line for each table: its bytes on the disk, its rows, and its indexes.
fn table_lines(tables: &[TableSize]) -> String {
    let lines = tables.iter().map(|size| {
        [
            format!("{}.{}", size.keyspace, size.table),
            size.disk_bytes.to_string(),
            size.rows_estimate.to_string(),
            size.index_disk_bytes.to_string(),
            size.indexes.join(", "),
        ]
    });
    let heading = ["TABLE", "BYTES", "ROWS (ABOUT)", "INDEX BYTES", "INDEXES"];
    format!("\n{}", aligned(heading, &lines.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_told() {
        let answer = |lead_ms| {
            shown(&ServiceReport {
                status: NodeStatus::Serving,
                info: Info {
                    service: "annulus".to_owned(),
                    version: "1".to_owned(),
                    engine: String::new(),
                },
                clock: ClockStatus { lead_ms },
                indexes: Vec::new(),
                tables: None,
            })
        };
        assert!(answer(0).starts_with("state    serving\nprogram  annulus 1\n"));
        assert!(!answer(0).contains("behind"));
        assert!(answer(12_034).contains("12.034 s behind"));
    }

    #[test]
    fn tables_have_a_line_each() {
        let tables = [TableSize {
            keyspace: "shop".to_owned(),
            table: "products".to_owned(),
            disk_bytes: 4096,
            rows_estimate: 12,
            index_disk_bytes: 0,
            indexes: vec!["products_v".to_owned(), "by_name".to_owned()],
        }];
        assert_eq!(
            table_lines(&tables),
            "\nTABLE          BYTES  ROWS (ABOUT)  INDEX BYTES  INDEXES\n\
             shop.products  4096   12            0            products_v, by_name\n"
        );
    }
}
