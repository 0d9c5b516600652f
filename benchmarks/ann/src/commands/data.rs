//! `bench-ann data`: makes data sets ahead of their use, and describes them.

use std::path::Path;

use crate::data::{SOURCES, open};

#[derive(clap::Args)]
pub struct Arguments {
    /// Data sets [default: all]
    names: Vec<String>,
}

/// Opens or makes the data sets and prints a table of them.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    let all = || {
        SOURCES
            .iter()
            .map(|source| source.name.to_owned())
            .collect()
    };
    let names: Vec<String> = match arguments.names.is_empty() {
        true => all(),
        false => arguments.names.clone(),
    };
    println!("| data set | vectors | dimensions | queries | distance | about |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for name in names {
        let data = open(&name, cache)?;
        let about = data.description();
        println!(
            "| {name} | {} | {} | {} | {:?} | {} |",
            about.vectors,
            about.dimensions,
            about.queries(),
            about.metric,
            about.remark
        );
    }
    Ok(())
}
