//! `report.md`: tables and events, for notes and issue trackers.

use super::Renderer;
use crate::grid::Grid;
use crate::{INVALID, Report, table};

/// Tables in GitHub's Markdown.
pub(super) struct Markdown;

impl Renderer for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn file_name(&self) -> &'static str {
        "report.md"
    }

    fn describe(&self) -> &'static str {
        "tables and events, for notes and issue trackers"
    }

    fn render(&self, report: &Report) -> String {
        let job = &report.job;
        let mut text = format!(
            "# Meetpoint report\n\n{}: {} samples in batches of {}, {} epochs; {}, {} cores.\n",
            escape(&job.dataset),
            job.samples,
            job.batch_size,
            job.epochs,
            escape(&report.machine.processor),
            report.machine.cores
        );
        for (title, grid) in [
            ("Result", table::comparison(report)),
            ("Use of resources", table::usage(report)),
            ("Consistency", table::levels(report)),
            ("Measured profile and prediction", table::profiles(report)),
            ("Devices", table::devices(report)),
            ("Emulated devices: target and achieved", table::speed_limits(report)),
            ("Emulated devices: disturbances", table::emulated_cores(report)),
            ("Ranks", table::ranks(report)),
            ("Repeated and omitted batches", table::uneven(report)),
        ] {
            if !grid.rows.is_empty() {
                text.push_str(&format!("\n## {title}\n\n{}", markdown(&grid)));
            }
        }
        let lines: Vec<String> = lines(report);
        if !lines.is_empty() {
            text.push_str("\n## Events\n\n");
            lines.iter().for_each(|line| text.push_str(&format!("- {}\n", escape(line))));
        }
        text
    }
}

/// Failures, notices, invalid figures and events, a line each.
fn lines(report: &Report) -> Vec<String> {
    let failures = report.failures.iter().map(|it| format!("{} FAILED: {}", it.what, it.error));
    let of_runs = report.runs.iter().flat_map(|run| {
        let lines = run.invalid().into_iter().chain(run.event_lines());
        lines.map(move |line| format!("{}: {line}", run.strategy))
    });
    let is_invalid = report.runs.iter().any(|run| !run.invalid().is_empty());
    let invalid = is_invalid.then(|| format!("INVALID: {INVALID}"));
    failures.chain(report.notice_lines()).chain(of_runs).chain(invalid).collect()
}

/// A table, numbers to the right.
fn markdown(grid: &Grid) -> String {
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = row(&mut grid.head.iter().map(|name| escape(name)));
    let rule = |column| if grid.is_number(column) { "---:" } else { "---" };
    text.push_str(&row(&mut (0..grid.head.len()).map(|column| rule(column).to_owned())));
    for cells in &grid.rows {
        text.push_str(&row(&mut cells.iter().map(|cell| escape(cell))));
    }
    text
}

/// Text in which nothing means anything to Markdown or HTML, on one line.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => escaped.extend(['\\', character]),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn tables_have_the_same_number_of_cells_in_each_row() {
        let text = Markdown.render(&made_up::report(8));
        let mut columns = None;
        for line in text.lines() {
            // Separators that are not escaped.
            let cells = line.replace("\\|", "").matches('|').count();
            match (line.starts_with('|'), columns) {
                (true, None) => columns = Some(cells),
                (true, Some(expected)) => assert_eq!(cells, expected, "{line}"),
                (false, _) => columns = None,
            }
        }
        assert!(text.contains("| --- | ---: |") && text.contains("- wrr: at 1.20 s: "), "{text}");
    }

    #[test]
    fn names_from_outside_cannot_become_markup() {
        let mut report = made_up::report(8);
        report.runs[0].strategy = "a|b\n<img src=x> [link](x) `code`".to_owned();
        let text = Markdown.render(&report);
        assert!(text.contains("a\\|b &lt;img src=x> \\[link\\](x) \\`code\\`"), "{text}");
    }
}
