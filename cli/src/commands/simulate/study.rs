//! What becomes of each strategy when the machine is not as it was told: one table a strategy.
//!
//! All studies start from one machine, near the point that the published headline implies: t_c 1 s
//! (625 ms of preparation, a step of 375 ms), t_s 2 s, no background workers.

use super::engine;
use crate::report::table::Grid;
use crate::surface::progress::Progress;
use crate::surface::units::signed_percent;
use meetpoint_sim::Outcome;
use meetpoint_sim::scenario::{
    Device, Distribution, Fault, FaultKind, Holders, Scenario, Serve, Span, StrategyName, When,
};
use serde::Serialize;

/// The machine of all studies, as a scenario file would have it.
const MACHINE: &str = r#"
batches = 1000
stall_timeout = "60s"
[host]
preparation = "625ms"
[[devices]]
preparation = "2s"
[accelerator]
step = "375ms"
"#;

/// Seeds over which chance is averaged.
const SEEDS: u64 = 8;
/// σ of the logarithm in the study of jitter.
const SIGMA: f64 = 0.3;

/// Which study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Study {
    /// The device's true time is 0.5 to 4 times what the scheduler was told.
    Misprofiled,
    /// The device takes twice as long from the middle of the epoch on.
    Slowdown,
    /// Every time is drawn from a lognormal law with sigma 0.3.
    Jitter,
    /// 2, 4 and 8 accelerators that step together, with and without a common decision.
    Ranks,
    /// All of them.
    All,
}

/// A strategy under one condition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    /// Its name.
    pub strategy: &'static str,
    /// Which study.
    pub study: Study,
    /// What is not as it was told.
    pub condition: String,
    /// T over that of `host-only` under the same condition and seed; the mean over seeds.
    pub time_ratio: f64,
    /// The worst of the seeds.
    pub time_ratio_worst: f64,
    /// Share of the batches that devices prepared.
    pub device_share: f64,
    /// Stalls seen.
    pub stalls: u64,
    /// Batches begun at a device and done again by the host.
    pub redone: u64,
}

/// One condition: a machine, and with what it is compared.
struct Case {
    study: Study,
    condition: String,
    scenario: Scenario,
    seeds: u64,
}

/// The strategies that are studied; `host-only` is what they are compared with.
pub(crate) const STRATEGIES: [StrategyName; 7] = [
    StrategyName::DeviceOnly,
    StrategyName::Mte,
    StrategyName::Wrr,
    StrategyName::WrrFrozen,
    StrategyName::MteFeedback,
    StrategyName::Windowed,
    StrategyName::Auto,
];

/// Runs a study under every strategy; rows are sorted by strategy.
pub(crate) fn run(study: Study, batches: u32) -> anyhow::Result<Vec<Row>> {
    let cases = cases(study, batches);
    let total = (cases.len() * STRATEGIES.len()) as u64;
    let mut bar = Progress::new("simulating", "scenarios", total);
    let mut alone = Vec::new();
    for case in &cases {
        let mut of_seeds = Vec::new();
        for seed in 0..case.seeds {
            of_seeds.push(engine::run(&host_only(&case.scenario), seed)?.total_ns as f64);
        }
        alone.push(of_seeds);
    }
    let mut rows = Vec::new();
    for strategy in STRATEGIES {
        for (case, alone) in cases.iter().zip(&alone) {
            rows.push(row(case, strategy, alone)?);
            bar.set(rows.len() as u64, total);
        }
    }
    Ok(rows)
}

fn row(case: &Case, strategy: StrategyName, alone: &[f64]) -> anyhow::Result<Row> {
    let scenario = Scenario { strategy, ..case.scenario.clone() };
    let mut outcomes: Vec<(Outcome, f64)> = Vec::new();
    for (seed, alone) in (0..case.seeds).zip(alone) {
        outcomes.push((engine::run(&scenario, seed)?, *alone));
    }
    let ratios = || outcomes.iter().map(|(outcome, alone)| outcome.total_ns as f64 / alone);
    let mean = |sum: f64| sum / outcomes.len().max(1) as f64;
    let first = |of: &dyn Fn(&Outcome) -> u64| outcomes.first().map_or(0, |(first, _)| of(first));
    Ok(Row {
        strategy: strategy.name(),
        study: case.study,
        condition: case.condition.clone(),
        time_ratio: mean(ratios().sum()),
        time_ratio_worst: ratios().fold(0.0, f64::max),
        device_share: mean(outcomes.iter().map(|(outcome, _)| outcome.device_share()).sum()),
        stalls: first(&|outcome| outcome.sum(|rank| rank.stalls.into())),
        redone: first(&|outcome| outcome.sum(|rank| rank.redone.into())),
    })
}

fn host_only(scenario: &Scenario) -> Scenario {
    let strategy = StrategyName::HostOnly;
    Scenario { strategy, devices: Vec::new(), ..scenario.clone() }
}

fn machine(batches: u32) -> Scenario {
    let mut scenario = Scenario::from_toml(MACHINE).expect("a test reads it");
    scenario.batches = batches;
    scenario
}

fn times(time: Span, factor: f64) -> Span {
    Span((time.0 as f64 * factor).round() as u64)
}

fn cases(study: Study, batches: u32) -> Vec<Case> {
    match study {
        Study::Misprofiled => misprofiled(batches),
        Study::Slowdown => slowdown(batches),
        Study::Jitter => jitter(batches),
        Study::Ranks => ranks(batches),
        Study::All => [Study::Misprofiled, Study::Slowdown, Study::Jitter, Study::Ranks]
            .into_iter()
            .flat_map(|study| cases(study, batches))
            .collect(),
    }
}

/// The scheduler is told 2 s; the device takes 0.5 to 4 times that.
fn misprofiled(batches: u32) -> Vec<Case> {
    let case = |factor: f64| {
        let mut scenario = machine(batches);
        let told = Span(scenario.devices[0].preparation.mean_ns() as u64);
        scenario.devices[0].preparation = Distribution::Constant(times(told, factor));
        scenario.profile.device_factor = 1.0 / factor;
        let condition = format!("true t_s {factor} x the profile");
        Case { study: Study::Misprofiled, condition, scenario, seeds: 1 }
    };
    [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0].map(case).into()
}

fn slowdown(batches: u32) -> Vec<Case> {
    let case = |factor: f64| {
        let mut scenario = machine(batches);
        // Half of the time that the epoch takes by the closed form of `wrr` at this machine.
        let middle = f64::from(batches) * 2.0 / (2.0 + 1.0 - 0.375) / 2.0;
        let when = When::Time(Span((middle * 1e9) as u64));
        scenario.devices[0].faults = vec![Fault { kind: FaultKind::Slow(factor), when }];
        let condition = format!("{factor} x as slow from mid-epoch on");
        Case { study: Study::Slowdown, condition, scenario, seeds: 1 }
    };
    [2.0, 4.0].map(case).into()
}

fn jitter(batches: u32) -> Vec<Case> {
    let law = |distribution: &mut Distribution| {
        let mean = Span(distribution.mean_ns().round() as u64);
        *distribution = Distribution::Lognormal { mean, sigma: SIGMA };
    };
    let case = |what: &str, host: bool, device: bool| {
        let mut scenario = machine(batches);
        if host {
            law(&mut scenario.host.preparation);
            law(&mut scenario.accelerator.step);
        }
        if device {
            law(&mut scenario.devices[0].preparation);
        }
        let condition = format!("lognormal jitter {SIGMA}, {what}");
        Case { study: Study::Jitter, condition, scenario, seeds: SEEDS }
    };
    vec![
        case("device", false, true),
        case("host and accelerator", true, false),
        case("everywhere", true, true),
    ]
}

/// As many devices as ranks, so that a rank's share of device work is that of one rank alone.
fn ranks(batches: u32) -> Vec<Case> {
    let mut cases = Vec::new();
    for (serve, devices) in [
        (Serve::AllRanks, "every device for all ranks"),
        (Serve::OwnRanks, "a device for each rank"),
    ] {
        for count in [2, 4, 8] {
            for collective in [true, false] {
                let mut scenario = machine(batches);
                scenario.ranks.count = count;
                scenario.ranks.collective = collective;
                scenario.holders = Holders::Shared;
                scenario.serve = serve;
                let device = &scenario.devices[0];
                let mean = Span(device.preparation.mean_ns() as u64);
                let preparation = Distribution::Lognormal { mean, sigma: SIGMA };
                let device = Device { count, preparation, ..device.clone() };
                scenario.devices = vec![device];
                let decided = if collective { "decided together" } else { "each alone" };
                let condition = format!("G = {count}, {devices}, {decided}");
                cases.push(Case { study: Study::Ranks, condition, scenario, seeds: 3 });
            }
        }
    }
    cases
}

/// The rows of one strategy as a table.
pub(crate) fn grid(rows: &[Row], strategy: &str) -> Grid {
    let head = [
        strategy,
        "T / host alone",
        "worst seed",
        "time saved",
        "throughput",
        "device's share",
        "stalls",
        "done twice",
    ];
    let mut grid = Grid::new(&head, 1..head.len());
    for row in rows.iter().filter(|row| row.strategy == strategy) {
        grid.rows.push(vec![
            row.condition.clone(),
            format!("{:.3}", row.time_ratio),
            format!("{:.3}", row.time_ratio_worst),
            signed_percent(1.0 - row.time_ratio),
            signed_percent(1.0 / row.time_ratio - 1.0),
            format!("{:.1} %", row.device_share * 100.0),
            row.stalls.to_string(),
            row.redone.to_string(),
        ]);
    }
    grid
}

/// All tables for a terminal.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut text = String::from(
        "Simulated: t_c 1 s (preparation 625 ms, step 375 ms), profile t_s 2 s, w = 0; T is \
         compared with that of host-only under the same condition and seed.\n",
    );
    for strategy in STRATEGIES {
        text.push('\n');
        text.push_str(&grid(rows, strategy.name()).text());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Study, cases};

    #[test]
    fn every_case_is_a_scenario_that_can_be_run() {
        let cases = cases(Study::All, 100);
        assert_eq!(cases.len(), 7 + 2 + 3 + 12);
        for case in cases {
            case.scenario.check().unwrap_or_else(|error| panic!("{}: {error}", case.condition));
        }
    }
}
