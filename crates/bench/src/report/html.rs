//! Writes results as one HTML page that needs no other file.

use std::fmt::Write as _;

use super::canvas::escape;
use super::charts::charts;
use super::measurement::{Measurement, ResultRecord, RunEnvironment};

const STYLE: &str = include_str!("style.css");

/// Makes the page of some results.
pub fn page(records: &[ResultRecord]) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>annulus bench</title>\
         <style>{STYLE}</style><h1>annulus bench</h1>"
    );
    for record in records {
        if let ResultRecord::Environment(environment) = record {
            write_environment(&mut html, environment);
        }
    }
    html.push_str("<div class=\"charts\">");
    for chart in charts(records) {
        if let Some(svg) = chart.svg() {
            let title = escape(&chart.title);
            html.push_str(&format!(
                "<figure><figcaption>{title}</figcaption>{svg}</figure>"
            ));
        }
    }
    html.push_str("</div>");
    write_table(&mut html, &super::charts::measurements(records));
    html.push_str("</html>\n");
    html
}

fn write_environment(html: &mut String, environment: &RunEnvironment) {
    let RunEnvironment {
        time,
        version,
        command,
        cpu,
        cores,
        system,
        load,
    } = environment;
    let mut line = format!("{time}, annulus {version}, {cores} cores of {cpu}, {system}");
    if !load.is_empty() {
        let means: Vec<String> = load.iter().map(|mean| format!("{mean:.2}")).collect();
        line.push_str(&format!(", load {}", means.join(" ")));
    }
    let (line, command) = (escape(&line), escape(command));
    html.push_str(&format!("<p>{line}<br><code>{command}</code></p>"));
}

fn write_table(html: &mut String, measurements: &[&Measurement]) {
    html.push_str(
        "<div class=\"table\"><table><tr><th>what<th>at once<th>asked /s<th>answered /s<th>mean ms<th>P50<th>P90<th>P99<th>P99.9<th>max\
         <th>pacer late ms, P50, P99, max<th>recall<th>failed<th>client cores<th>remarks</tr>",
    );
    for measurement in measurements {
        let asked = measurement.rate_asked_per_s;
        let latency = measurement.latency_ms;
        let late = measurement.pacer_lateness_ms;
        let late = late.map_or(String::new(), |late| {
            format!("{:.3}, {:.3}, {:.3}", late.p50, late.p99, late.max)
        });
        let mut remarks = measurement.warnings();
        let figures = measurement.figures.iter();
        remarks.extend(figures.map(|(name, value)| format!("{name}: {value:.3}")));
        write!(
            html,
            "<tr><td>{}, {}<td>{}<td>{}<td>{:.0}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{}<td>{}<td>{}\
             <td>{:.2}<td>{}</tr>",
            escape(&measurement.operation),
            escape(&measurement.series),
            measurement.concurrency,
            asked.map_or(String::new(), |rate| format!("{rate:.0}")),
            measurement.rate_per_s,
            latency.mean,
            latency.p50,
            latency.p90,
            latency.p99,
            latency.p999,
            latency.max,
            late,
            measurement.recall.map_or(String::new(), |recall| format!("{recall:.4}")),
            measurement.failed(),
            measurement.client_cpu_cores,
            escape(&remarks.join("; ")),
        )
        .expect("a string takes any text");
    }
    html.push_str("</table></div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::measurement::LatencyMs;

    fn search(series: &str, concurrency: usize) -> ResultRecord {
        let latency_ms = LatencyMs {
            p50: 1.0,
            p99: 2.0,
            ..LatencyMs::default()
        };
        ResultRecord::Measurement(Box::new(Measurement {
            operation: "search".to_owned(),
            series: series.to_owned(),
            concurrency,
            operations: 100,
            rate_per_s: 10.0 * concurrency as f64,
            latency_ms,
            recall: Some(0.99),
            ..Measurement::default()
        }))
    }

    #[test]
    fn a_page_has_its_charts_and_rows_and_nothing_from_elsewhere() {
        let records = [search("a", 4), search("a", 1), search("<b>", 1)];
        let page = page(&records);
        // There is no chart over time, as nothing was measured over time.
        assert_eq!(page.matches("<svg").count(), 4);
        assert_eq!(page.matches("<tr>").count(), 4);
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(!page.contains("src=") && !page.contains("href="));
        assert!(!page.contains("load"));
    }

    #[test]
    fn the_pacers_lateness_has_a_column() {
        let late = LatencyMs {
            p50: 0.25,
            p99: 0.5,
            max: 4.25,
            ..LatencyMs::default()
        };
        let record = ResultRecord::Measurement(Box::new(Measurement {
            pacer_lateness_ms: Some(late),
            ..Measurement::default()
        }));
        let page = page(&[record]);
        assert!(page.contains("<td>0.250, 0.500, 4.250<td>"), "{page}");
        assert_eq!(page.matches("<th>").count(), page.matches("<td>").count());
    }

    #[test]
    fn the_machine_is_told_of_with_its_load() {
        let environment = ResultRecord::Environment(RunEnvironment {
            time: "2026-01-01T00:00:00Z".to_owned(),
            version: "1".to_owned(),
            command: "annulus bench <x>".to_owned(),
            cpu: "Xeon".to_owned(),
            cores: 2,
            system: "linux 6".to_owned(),
            load: vec![1.5, 2.0, 0.0],
        });
        let page = page(&[environment]);
        assert!(page.contains("2 cores of Xeon, linux 6, load 1.50 2.00 0.00"));
        assert!(page.contains("bench &lt;x&gt;"));
    }
}
