//! The tables of the notes on DDLP, each figure compared with our formula and our simulation.
//!
//! The figures of the notes are from another simulator, for N = 5000, with four digits.

use super::constants::{Constants, MTE, mte_with, optimal_split};
use crate::Error;
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::signed_percent;
use meetpoint_scheduler::{AnyStrategy, Wrr};
use serde::Serialize;

/// N of the notes' simulations.
const BATCHES: u32 = 5_000;
/// Background workers of the second table. More workers with the same combined period p give the
/// same times, except at the beginning of an epoch, where the first batch takes w·p.
const WORKERS: u32 = 1;
/// Maximum relative difference of a figure from the notes' and from the closed form.
const AGREES_WITHIN: f64 = 0.001;

/// t_c, t_g, t_s, and the notes' simulated and computed savings of MTE and WRR, and MTE* simulated.
const SERIAL: [([f64; 3], [f64; 5]); 6] = [
    ([0.25, 0.10, 1.0], [0.1200, 0.1200, 0.1303, 0.1304, 0.1303]),
    ([1.0, 0.375, 2.0], [0.2084, 0.2083, 0.2379, 0.2381, 0.2380]),
    ([1.0, 0.494, 2.15], [0.1606, 0.1606, 0.1905, 0.1905, 0.1905]),
    ([0.5, 0.4, 1.0], [0.0667, 0.0667, 0.0909, 0.0909, 0.0909]),
    ([1.0, 0.2, 3.0], [0.2000, 0.2000, 0.2104, 0.2105, 0.2104]),
    ([1.0, 0.05, 8.0], [0.1056, 0.1056, 0.1056, 0.1061, 0.1060]),
];

/// p, t_t, t_s, and the notes' simulated and computed WRR time a batch, and MTE's computed one.
const BACKGROUND: [([f64; 3], f64, f64, Option<f64>); 5] = [
    ([1.0, 0.3, 4.0], 0.8002, 0.8000, Some(0.8600)),
    ([1.0, 0.9, 4.0], 0.9003, 0.9000, Some(0.9800)),
    ([1.0, 0.3, 2.0], 0.6668, 0.6667, Some(0.7667)),
    ([0.5, 0.3, 2.0], 0.4001, 0.4000, Some(0.4600)),
    ([1.0, 1.2, 4.0], 1.2002, 1.2000, None),
];

/// One figure: of the notes, by our formula, and simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `saving` (1 - T/T0 without workers) or `time per batch` (with them).
    pub quantity: &'static str,
    /// The constants, such as `t_c 1, t_g 0.375, t_s 2`.
    pub constants: String,
    /// `mte`, `wrr` or `mte, best split`.
    pub strategy: &'static str,
    /// The notes' simulation.
    pub notes_simulated: Option<f64>,
    /// The notes' formula.
    pub notes_formula: Option<f64>,
    /// Our closed form; `None` if none applies.
    pub formula: Option<f64>,
    /// Our simulation.
    pub simulated: f64,
    /// Whether ours is within 0.1 % of T of both of theirs and of our own formula.
    pub agrees: bool,
}

/// Both tables.
pub fn rows() -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (times, notes) in SERIAL {
        rows.extend(serial(times, notes)?);
    }
    for (times, simulated, formula, mte) in BACKGROUND {
        rows.extend(background(times, simulated, formula, mte)?);
    }
    Ok(rows)
}

fn serial([t_c, t_g, t_s]: [f64; 3], notes: [f64; 5]) -> Result<Vec<Row>, Error> {
    let constants = Constants::serial(t_c, t_g, t_s, BATCHES);
    let alone = f64::from(BATCHES) * constants.t_c_ns();
    let saving = |total_ns: f64| 1.0 - total_ns / alone;
    let best = mte_with(optimal_split(&constants));
    let [mte_simulated, mte_formula, wrr_simulated, wrr_formula, best_simulated] = notes;
    let all = [
        ("mte", MTE, Some(mte_simulated), Some(mte_formula)),
        ("wrr", AnyStrategy::Wrr(Wrr), Some(wrr_simulated), Some(wrr_formula)),
        ("mte, best split", best, Some(best_simulated), None),
    ];
    all.into_iter()
        .map(|(strategy, decides, notes_simulated, notes_formula)| {
            let simulated = saving(constants.simulate(decides)?.total_ns);
            let formula = constants.closed_form(decides).ok().map(saving);
            let near = |other: f64| (other - simulated).abs() <= AGREES_WITHIN;
            let others = [notes_simulated, notes_formula, formula];
            Ok(Row {
                quantity: "saving",
                constants: format!("t_c {t_c}, t_g {t_g}, t_s {t_s}"),
                strategy,
                notes_simulated,
                notes_formula,
                formula,
                simulated,
                agrees: others.into_iter().flatten().all(near),
            })
        })
        .collect()
}

fn background(
    [p, t_t, t_s]: [f64; 3],
    notes_simulated: f64,
    notes_formula: f64,
    mte: Option<f64>,
) -> Result<Vec<Row>, Error> {
    let constants = Constants::background(p, t_t, t_s, WORKERS, BATCHES);
    let unit = |total_ns: f64| total_ns / f64::from(BATCHES) / super::constants::UNIT_NS;
    let all = [
        ("wrr", AnyStrategy::Wrr(Wrr), Some(notes_simulated), Some(notes_formula)),
        ("mte", MTE, None, mte),
    ];
    // The notes have no figure of MTE if the accelerator is the bottleneck.
    all.into_iter()
        .filter(|(_, _, simulated, formula)| simulated.is_some() || formula.is_some())
        .map(|(strategy, decides, notes_simulated, notes_formula)| {
            let simulated = unit(constants.simulate(decides)?.total_ns);
            let formula = constants.closed_form(decides).ok().map(unit);
            let near = |other: f64| (other / simulated - 1.0).abs() <= AGREES_WITHIN;
            let others = [notes_simulated, notes_formula, formula];
            Ok(Row {
                quantity: "time per batch",
                constants: format!("p {p}, t_t {t_t}, t_s {t_s}"),
                strategy,
                notes_simulated,
                notes_formula,
                formula,
                simulated,
                agrees: others.into_iter().flatten().all(near),
            })
        })
        .collect()
}

/// The rows of one quantity as a table.
fn grid(rows: &[Row], quantity: &str) -> Grid {
    let head = [
        "constants",
        "strategy",
        "notes: sim",
        "notes: formula",
        "formula",
        "simulated",
        "off",
        "",
    ];
    let mut grid = Grid::new(&head, 2..7);
    let shown =
        |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.4}"));
    for row in rows.iter().filter(|row| row.quantity == quantity) {
        let off = row.formula.map(|formula| off_in_time(row, formula));
        grid.rows.push(vec![
            row.constants.clone(),
            row.strategy.to_owned(),
            shown(row.notes_simulated),
            shown(row.notes_formula),
            shown(row.formula),
            shown(Some(row.simulated)),
            off.map_or_else(|| "–".into(), |off| format!("{:+.3} %", off * 100.0)),
            if row.agrees { "agrees".into() } else { "DIFFERS".into() },
        ]);
    }
    grid
}

/// Deviation of the simulated epoch's time from the formula's.
fn off_in_time(row: &Row, formula: f64) -> f64 {
    match row.quantity {
        "saving" => (1.0 - row.simulated) / (1.0 - formula) - 1.0,
        _ => row.simulated / formula - 1.0,
    }
}

/// Both tables for a terminal.
pub fn text(rows: &[Row], style: Style) -> String {
    let agree = rows.iter().filter(|row| row.agrees).count();
    format!(
        "Without workers (w = 0): saving 1 - T/T0 over the host alone, N = {BATCHES}\n{}\n\
         With a background worker of period p: time of a batch, T/N\n{}\n\
         {agree} of {} figures within {} of the notes' and of the closed form; off: simulated \
         time over the formula's\n",
        grid(rows, "saving").text(style),
        grid(rows, "time per batch").text(style),
        rows.len(),
        signed_percent(AGREES_WITHIN).trim_start_matches('+'),
    )
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn every_figure_of_the_notes_is_regenerated() {
        let rows = rows().unwrap();
        assert_eq!(rows.len(), 6 * 3 + 5 + 4);
        for row in rows {
            assert!(row.agrees, "{row:?}");
        }
    }
}
