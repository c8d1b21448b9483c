//! Given constants: simulated times compared with the closed forms.

use super::constants::{Constants, MTE};
use crate::Error;
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::{count, seconds, signed_percent};
use meetpoint_scheduler::{AnyStrategy, DeviceOnly, HostOnly, Wrr};
use serde::Serialize;

/// The constants and the result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// `closed-forms`.
    pub kind: &'static str,
    /// N.
    pub batches: u32,
    /// w.
    pub workers: u32,
    /// t_c.
    pub t_c_seconds: f64,
    /// t_g.
    pub t_g_seconds: f64,
    /// t_s.
    pub t_s_seconds: f64,
    /// One row per strategy.
    pub rows: Vec<Row>,
}

/// One strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub strategy: &'static str,
    /// T by the closed form; `None` if none applies.
    pub formula_seconds: Option<f64>,
    /// Why none applies.
    pub no_formula: Option<String>,
    /// T by the simulator.
    pub simulated_seconds: f64,
    /// simulated / formula - 1.
    pub off_ratio: Option<f64>,
    /// 1 - T/T0 over `host-only`, simulated.
    pub saving: f64,
    /// T0/T - 1 over `host-only`, simulated.
    pub throughput_gain: f64,
    /// n_s/N, simulated.
    pub device_share: f64,
}

/// Runs every strategy of the paper.
pub fn run(constants: &Constants) -> Result<Document, Error> {
    let strategies = [
        AnyStrategy::HostOnly(HostOnly),
        AnyStrategy::DeviceOnly(DeviceOnly),
        MTE,
        AnyStrategy::Wrr(Wrr),
    ];
    let alone = constants.simulate(AnyStrategy::HostOnly(HostOnly))?.total_ns;
    let rows = strategies.into_iter().map(|strategy| {
        let run = constants.simulate(strategy)?;
        let formula = constants.closed_form(strategy);
        Ok(Row {
            strategy: strategy.name().as_str(),
            formula_seconds: formula.ok().map(|total| total / 1e9),
            no_formula: formula.err().map(|reason| reason.to_string()),
            simulated_seconds: run.total_ns / 1e9,
            off_ratio: formula.ok().map(|total| run.total_ns / total - 1.0),
            saving: 1.0 - run.total_ns / alone,
            throughput_gain: alone / run.total_ns - 1.0,
            device_share: f64::from(run.device_batches) / f64::from(constants.batches),
        })
    });
    Ok(Document {
        kind: "closed-forms",
        batches: constants.batches,
        workers: constants.workers,
        t_c_seconds: constants.t_c_ns() / 1e9,
        t_g_seconds: constants.t_g_ns() / 1e9,
        t_s_seconds: constants.device_ns / 1e9,
        rows: rows.collect::<Result<_, Error>>()?,
    })
}

/// For a terminal.
pub fn text(document: &Document, style: Style) -> String {
    let head = [
        "strategy",
        "closed form",
        "simulated",
        "off",
        "time saved",
        "throughput",
        "device's share",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    for row in &document.rows {
        grid.rows.push(vec![
            row.strategy.to_owned(),
            row.formula_seconds.map_or_else(|| "–".into(), seconds),
            seconds(row.simulated_seconds),
            row.off_ratio.map_or_else(|| "–".into(), |off| format!("{:+.3} %", off * 100.0)),
            signed_percent(row.saving),
            signed_percent(row.throughput_gain),
            format!("{:.1} %", row.device_share * 100.0),
        ]);
    }
    let mut text = format!(
        "{}, {}: t_c {}, t_g {}, t_s {} (ratios {:.3} and {:.3})\n{}",
        count(document.batches.into(), "batch"),
        count(document.workers.into(), "background worker"),
        seconds(document.t_c_seconds),
        seconds(document.t_g_seconds),
        seconds(document.t_s_seconds),
        document.t_g_seconds / document.t_c_seconds,
        document.t_s_seconds / document.t_c_seconds,
        grid.text(style)
    );
    for row in &document.rows {
        if let Some(reason) = &row.no_formula {
            text.push_str(&format!("{}: no closed form: {reason}\n", row.strategy));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Constants, Style, run, text};

    #[test]
    fn the_simulator_meets_the_closed_forms_at_the_headlines_point() {
        let document = run(&Constants::serial(1.0, 0.375, 2.0, 5_000)).unwrap();
        for row in &document.rows {
            assert!(row.off_ratio.unwrap().abs() < 0.001, "{row:?}");
        }
        let wrr = document.rows.iter().find(|row| row.strategy == "wrr").unwrap();
        assert!((wrr.saving - 0.2381).abs() < 0.001, "{wrr:?}");
        assert!(text(&document, Style::Plain).contains("wrr"));
    }

    #[test]
    fn a_form_that_does_not_apply_says_why() {
        let document = run(&Constants::serial(1.0, 1.2, 4.0, 500)).unwrap();
        assert!(
            text(&document, Style::Plain).contains("no closed form"),
            "{}",
            text(&document, Style::Plain)
        );
    }
}
