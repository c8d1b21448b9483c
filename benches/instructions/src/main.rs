//! Does a piece of work a number of times, so that a profiler can count its instructions.
//!
//!     instructions list             the pieces of work, and the instruction set in use
//!     instructions WORK TIMES       prints how many units were done
#![expect(clippy::print_stdout, reason = "a program for scripts/instructions.py")]

use anyhow::{Context, bail};
use meetpoint_instructions::{drive, samples, small};
use meetpoint_scheduler::{AnyStrategy, Auto, Goal, HostOnly, Mte, Order, Split, Tail, Wrr};

/// Strategies whose decisions are counted.
const STRATEGIES: [(&str, AnyStrategy); 4] = [
    ("decision-host-only", AnyStrategy::HostOnly(HostOnly)),
    ("decision-mte", AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Descending })),
    ("decision-wrr", AnyStrategy::Wrr(Wrr)),
    ("decision-auto", AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any })),
];
/// Batches of an epoch for each time.
const BATCHES: u32 = 1_000;

/// Work with samples: its name and function.
type Work = (&'static str, fn(u64) -> anyhow::Result<()>);

const SAMPLES: [Work; 5] = [
    ("photograph-whole", |times| samples::decode(times).map(drop)),
    ("photograph-sample", samples::prepare),
    ("read-sample", samples::read),
    ("small-batch", small::prepare),
    ("cached-batch", small::cached),
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [list] if list == "list" => {
            println!("{}", samples::decode(1)?);
            STRATEGIES.iter().for_each(|(name, _)| println!("{name}"));
            SAMPLES.iter().for_each(|(name, _)| println!("{name}"));
        }
        [work, times] => {
            let times: u64 = times.parse().context("the number of times is a whole number")?;
            println!("{}", units(work, times)?);
        }
        _ => bail!("give `list`, or a piece of work and a number of times"),
    }
    Ok(())
}

/// Does the work and returns how many units it was.
fn units(work: &str, times: u64) -> anyhow::Result<u64> {
    if let Some((_, strategy)) = STRATEGIES.iter().find(|(name, _)| *name == work) {
        let batches = u32::try_from(times).context("too many times")? * BATCHES;
        return Ok(drive::work_through(*strategy, batches)?.calls);
    }
    match SAMPLES.iter().find(|(name, _)| *name == work) {
        Some((_, function)) => function(times).map(|()| times),
        None => bail!("there is no work {work:?}; `list` prints what there is"),
    }
}
