//! Compares the simulator with closed forms, measurements and recorded runs.
//!
//! In reading order: this file (the result and its verdict), [`closed`], [`measured`].

pub mod closed;
pub mod measured;

use crate::simulate::replay;
use meetpoint_report::grid::Style;
use serde::Serialize;

/// The result of each check.
#[derive(Debug, Serialize)]
pub struct Document {
    kind: &'static str,
    closed_forms: Vec<closed::Row>,
    measured: Vec<measured::Row>,
    replayed: Vec<replay::Row>,
    /// A sentence for each check that failed.
    pub failed: Vec<String>,
}

impl Document {
    /// Evaluates the rows; without measured ones, only the closed forms.
    pub fn new(
        closed_forms: Vec<closed::Row>,
        (measured, replayed): (Vec<measured::Row>, Vec<replay::Row>),
    ) -> Self {
        let checks = [
            (
                closed_forms.iter().filter(|row| !row.holds).count(),
                closed_forms.len(),
                "simulated times are more than 0.1 % off their closed form",
            ),
            (
                measured.iter().filter(|row| row.is_off()).count(),
                measured.len(),
                "simulated times are more than 5 % off the measured ones",
            ),
            (
                replayed.iter().filter(|row| row.is_off()).count(),
                replayed.len(),
                "replays are more than 2 % off the recorded time",
            ),
        ];
        let wrong = checks.into_iter().filter(|(wrong, _, _)| *wrong > 0);
        let failed = wrong.map(|(wrong, all, what)| format!("{wrong} of {all} {what}")).collect();
        Self { kind: "validation", closed_forms, measured, replayed, failed }
    }
}

/// For a terminal.
pub fn text(document: &Document, style: Style) -> String {
    let mut text = format!(
        "(a) Simulated against the closed forms: T/(N t_c), to {} % and the ends of an epoch\n{}",
        closed::WITHIN * 100.0,
        closed::grid(&document.closed_forms).text(style)
    );
    let rows = &document.measured;
    if rows.is_empty() {
        return text;
    }
    let (invalid, off, both) = (
        rows.iter().filter(|row| row.is_invalid()).count(),
        rows.iter().filter(|row| row.is_off()).count(),
        rows.iter().filter(|row| row.is_invalid_and_off()).count(),
    );
    text.push_str(&format!(
        "\n(b) Simulated against measured on the emulated device, to {} %; ratios as aimed for \
         (as measured)\n{}{} runs: {} within, {off} off, {invalid} INVALID (of which \
         {both} off as well). Simulated: from the mean times of the run itself; predicted: from \
         the calibration before it.\n",
        measured::WITHIN * 100.0,
        measured::grid(rows).text(style),
        rows.len(),
        rows.len() - invalid - off,
    ));
    text.push_str(&format!(
        "\n(c) Recorded runs, replayed with the times of their own batches, to {} %\n{}",
        replay::WITHIN * 100.0,
        replay::text(&document.replayed, style)
    ));
    text
}
