//! Prints the tables of `growth` as Markdown.

use super::RECALLS;
use super::fit::QUANTITIES;
use super::size::{AtRecall, Size};

/// The numbers of vectors that the fit extrapolates to.
const BEYOND: [f64; 3] = [1e7, 1e8, 1e9];

/// Prints the measurements, and the fit with its extrapolation.
pub fn print(sizes: &[Size]) {
    measured(sizes);
    components(sizes);
    grown(sizes);
}

fn measured(sizes: &[Size]) {
    let names: Vec<String> = RECALLS
        .iter()
        .map(|recall| {
            format!("recall {recall:.2}: queries a CPU second | a second | distances a query")
        })
        .collect();
    println!(
        "\n| vectors | build, CPU s | build, s | bytes a vector in RAM | {} |",
        names.join(" | ")
    );
    println!("| --: |{}", " --: |".repeat(3 + 3 * RECALLS.len()));
    for size in sizes {
        let searches: Vec<String> = RECALLS
            .iter()
            .map(|&recall| cells(size.at(recall)))
            .collect();
        println!(
            "| {} | {:.1} | {:.1} | {:.0} | {} |",
            thousands(size.vectors as f64),
            size.build.cpu_seconds,
            size.build.wall_seconds,
            size.bytes_in_ram as f64 / size.vectors as f64,
            searches.join(" | ")
        );
    }
    if let Some(size) = sizes.last() {
        println!(
            "\nBuilt by {} threads, searched by one; median (least to most) of the rounds.",
            size.threads
        );
    }
}

fn cells(search: Option<&AtRecall>) -> String {
    let Some(search) = search else {
        return "not reached | | ".into();
    };
    let cpu = search.queries_per_cpu_second;
    let above = search
        .recall_above
        .map_or(String::new(), |recall| format!(", recall {recall:.3}"));
    format!(
        "{} ({} to {}{above}) | {} | {}",
        thousands(cpu.median),
        thousands(cpu.min),
        thousands(cpu.max),
        thousands(search.queries_per_second.median),
        search
            .effort
            .map_or("-".into(), |effort| thousands(effort.distances)),
    )
}

fn components(sizes: &[Size]) {
    let Some(first) = sizes.first() else { return };
    let names: Vec<&str> = first
        .components
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    if names.is_empty() {
        return;
    }
    println!("\n| bytes a vector | {} |", names.join(" | "));
    println!("| --: |{}", " --: |".repeat(names.len()));
    for size in sizes {
        let each = size
            .components
            .iter()
            .map(|(_, bytes)| *bytes as f64 / size.vectors as f64);
        let each: Vec<String> = each.map(|bytes| format!("{bytes:.1}")).collect();
        println!(
            "| {} | {} |",
            thousands(size.vectors as f64),
            each.join(" | ")
        );
    }
}

fn grown(sizes: &[Size]) {
    let names = BEYOND.map(thousands);
    println!("\n| | slope | at {} |", names.join(" | "));
    println!("| --- |{}", " --: |".repeat(1 + BEYOND.len()));
    for quantity in QUANTITIES {
        let Some(slope) = quantity.slope(sizes) else {
            continue;
        };
        let beyond = BEYOND.map(|vectors| match quantity.at(sizes, vectors) {
            Some((from, to)) if thousands(from) == thousands(to) => thousands(to),
            Some((from, to)) => format!("{} to {}", thousands(from), thousands(to)),
            None => "-".into(),
        });
        println!(
            "| {}, {} | {slope:.2} | {} |",
            quantity.name,
            quantity.unit,
            beyond.join(" | ")
        );
    }
    println!(
        "\nThe slope is that of the last three sizes. Beyond what was measured: by a logarithm to by a power, for builds of each \
         vector's share; memory in proportion."
    );
}

/// Writes a number without decimals, in groups of three digits.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        assert_eq!(thousands(0.4), "0");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1_234_567.2), "1,234,567");
    }
}
