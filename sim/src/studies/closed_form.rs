//! The checked table of DDLP's formulas, simulated again.

use meetpoint_scheduler::Profile;
use meetpoint_scheduler::closed_forms::{Inputs, predict};

use crate::scenario::{
    Device, Distribution, MteChoice, Scenario, Span, SplitChoice, StrategyName, TailName,
};
use crate::{Error, run};

/// Batches of an epoch of the table.
const BATCHES: u32 = 5_000;

/// Nanoseconds of a unit of the table.
const UNIT_NS: f64 = 1e6;

/// t_c, t_g, t_s without workers.
const SERIAL: [(f64, f64, f64); 6] = [
    (0.25, 0.10, 1.0),
    (1.0, 0.375, 2.0),
    (1.0, 0.494, 2.15),
    (0.5, 0.4, 1.0),
    (1.0, 0.2, 3.0),
    (1.0, 0.05, 8.0),
];

/// p, t_t, t_s with background workers.
const BACKGROUND: [(f64, f64, f64); 5] =
    [(1.0, 0.3, 4.0), (1.0, 0.9, 4.0), (1.0, 0.3, 2.0), (0.5, 0.3, 2.0), (1.0, 1.2, 4.0)];

/// A machine and a strategy: what the formula says, and what the scheduler does.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedFormRow {
    /// Background workers; their period together is `t_p`.
    pub workers: u32,
    /// t_c (or p with workers), t_g (or t_t with workers) and t_s, in units.
    pub times: (f64, f64, f64),
    /// The strategy, as `mte (optimal)`.
    pub strategy: String,
    /// Time of a batch by the formula, in units; `None` where there is none for it.
    pub formula: Option<f64>,
    /// Time of a batch in simulation, in units; `None` where the scheduler refuses.
    pub simulated: Option<f64>,
    /// Time of a batch by the host alone in simulation, in units.
    pub host_only: f64,
    /// Why the scheduler refused.
    pub refused: Option<String>,
}

impl ClosedFormRow {
    /// What it saves against the host alone, by the formula: 0.25 is a quarter.
    pub fn saving_by_formula(&self) -> Option<f64> {
        self.formula.map(|time| 1.0 - time / self.host_only)
    }

    /// What it saves against the host alone in simulation.
    pub fn saving_simulated(&self) -> Option<f64> {
        self.simulated.map(|time| 1.0 - time / self.host_only)
    }
}

/// Every machine of the table under `mte` (both splits) and `wrr`.
///
/// # Errors
///
/// A scenario that cannot be simulated: none of these.
pub fn closed_form_rows() -> Result<Vec<ClosedFormRow>, Error> {
    let mut rows = Vec::new();
    for times in SERIAL {
        let (t_c, t_g, t_s) = times;
        // The step takes half of t_g; the rest is read.
        let train = t_g / 2.0;
        let machine = machine(0, t_c - train, train, t_g - train, t_s);
        let profile = profile(t_c, t_g, t_s);
        add_rows(&mut rows, &machine, 0, times, profile)?;
    }
    for times in BACKGROUND {
        let (p, t_t, t_s) = times;
        let machine = machine(1, p, t_t, 0.0, t_s);
        add_rows(&mut rows, &machine, 1, times, profile(p.max(t_t), t_t, t_s))?;
    }
    Ok(rows)
}

fn add_rows(
    rows: &mut Vec<ClosedFormRow>,
    machine: &Scenario,
    workers: u32,
    times: (f64, f64, f64),
    profile: Profile,
) -> Result<(), Error> {
    let per_batch = |total_ns: f64| total_ns / f64::from(BATCHES) / UNIT_NS;
    let host_only = Scenario { strategy: StrategyName::HostOnly, ..machine.clone() };
    let host_only = per_batch(run(&host_only, 0)?.total_ns as f64);
    for (strategy, split) in [
        (StrategyName::Mte, SplitChoice::EqualFinish),
        (StrategyName::Mte, SplitChoice::Optimal),
        (StrategyName::Wrr, SplitChoice::EqualFinish),
    ] {
        let mte = MteChoice { split, tail: TailName::Descending };
        let scenario = Scenario { strategy, mte, ..machine.clone() };
        let inputs =
            Inputs { batches: BATCHES, background: workers > 0, profile, spool_slots: BATCHES };
        let formula = predict(scenario.scheduler_strategy(), &inputs).ok();
        let (simulated, refused) = match run(&scenario, 0) {
            Ok(outcome) => (Some(per_batch(outcome.total_ns as f64)), None),
            Err(Error::Scheduler(error)) => (None, Some(error.to_string())),
            Err(error) => return Err(error),
        };
        let name = match (strategy, split) {
            (StrategyName::Mte, SplitChoice::Optimal) => "mte (optimal)",
            (StrategyName::Mte, _) => "mte (equal-finish)",
            _ => strategy.name(),
        };
        rows.push(ClosedFormRow {
            workers,
            times,
            strategy: name.to_owned(),
            formula: formula.map(|it| per_batch(it.total_ns)),
            simulated,
            host_only,
            refused,
        });
    }
    Ok(())
}

fn ns(units: f64) -> u64 {
    (units * UNIT_NS).round() as u64
}

fn profile(t_c: f64, t_g: f64, t_s: f64) -> Profile {
    Profile { host_ns: ns(t_c), device_ns: ns(t_s), ready_ns: ns(t_g) }
}

fn machine(workers: u32, preparation: f64, step: f64, direct_read: f64, t_s: f64) -> Scenario {
    let constant = |units| Distribution::constant_ns(ns(units));
    let mut scenario = Scenario::new(BATCHES, constant(preparation), constant(step));
    scenario.host.workers = workers;
    scenario.accelerator.direct_read = Span(ns(direct_read));
    scenario.devices = vec![Device::new(constant(t_s))];
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference's table: savings of mte, wrr and mte with the optimal split, simulated there.
    const SAVINGS: [(f64, f64, f64); 6] = [
        (0.1200, 0.1303, 0.1303),
        (0.2084, 0.2379, 0.2380),
        (0.1606, 0.1905, 0.1905),
        (0.0667, 0.0909, 0.0909),
        (0.2000, 0.2104, 0.2104),
        (0.1056, 0.1056, 0.1060),
    ];

    /// With workers: time of a batch under wrr and mte.
    const TIMES: [(f64, Option<f64>); 5] = [
        (0.8000, Some(0.8600)),
        (0.9000, Some(0.9800)),
        (0.6667, Some(0.7667)),
        (0.4000, Some(0.4600)),
        (1.2000, None),
    ];

    #[test]
    fn the_table_is_that_of_the_reference() {
        let rows = closed_form_rows().unwrap();
        let (serial, background) = rows.split_at(3 * SERIAL.len());
        for (rows, (mte, wrr, optimal)) in serial.chunks(3).zip(SAVINGS) {
            for (row, checked) in rows.iter().zip([mte, optimal, wrr]) {
                let Some(found) = row.saving_simulated() else { continue };
                assert!((found - checked).abs() < 0.001, "{row:?} saves {found}, not {checked}");
                let formula = row.saving_by_formula().unwrap();
                assert!((found - formula).abs() < 0.001, "{row:?}");
            }
        }
        for (rows, (wrr, mte)) in background.chunks(3).zip(TIMES) {
            for (row, checked) in [(&rows[2], Some(wrr)), (&rows[0], mte)] {
                let (Some(found), Some(checked)) = (row.simulated, checked) else { continue };
                assert!((found / checked - 1.0).abs() < 0.001, "{row:?} is not {checked}");
            }
        }
    }
}
