//! Drives epochs in virtual time with random delays and faults, and checks every decision.
//!
//! It models the host's threads, the devices, the links between them and, with several ranks, the
//! transport of their proposals. It executes decisions late, twice, wrongly or never, as the
//! scenario defines; the whole sequence is a function of the scenario.

pub(crate) mod device;
pub(crate) mod generate;
pub(crate) mod holders;
pub(crate) mod oracle;
mod random;
mod rank;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use device::Message;
use meetpoint_scheduler::{Config, Epoch, Outcome, Proposal, Source, Summary, Time};
pub(crate) use random::Random;
use rank::Rank;

/// The parameters of a run besides the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    /// Preparing threads; 0: the consumer prepares between steps.
    pub(crate) workers: u32,
    /// Means of random times, in nanoseconds.
    pub(crate) host_ns: u64,
    /// One for each device.
    pub(crate) device_ns: Vec<u64>,
    pub(crate) step_ns: u64,
    pub(crate) fetch_ns: u64,
    /// Whether host, step and fetch times vary.
    pub(crate) jitter: bool,
    /// By how many percent host times vary instead, in both directions.
    pub(crate) varies: u64,
    /// One for each device.
    pub(crate) faults: Vec<Faults>,
    /// Batches that are already published, as (device, batch), if the strategy accepts them.
    pub(crate) kept: Vec<(u16, u32)>,
    /// Devices are granted work this long before the accelerator is first ready.
    pub(crate) run_ahead_ns: u64,
    pub(crate) slowed: Slowed,
}

/// How much longer the host prepares while devices work, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slowed {
    /// For each batch that devices hold, and in total.
    pub(crate) each: u64,
    pub(crate) most: u64,
}

/// How often a device and its link misbehave, as percentages per batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) jitter: bool,
    pub(crate) fails: u64,
    pub(crate) torn: u64,
    pub(crate) duplicated: u64,
    pub(crate) late: u64,
    pub(crate) stalls: u64,
    /// The percentage of stalls with false progress messages.
    pub(crate) lies: u64,
    /// Reports about batches that were never granted.
    pub(crate) nonsense: u64,
    pub(crate) dies_after: Option<u32>,
    /// Whether it has no link when the epoch begins.
    pub(crate) absent: bool,
    /// A device without a link gets another one this long after the loss.
    pub(crate) returns_after_ns: Option<u64>,
    /// After a number of batches it prepares nothing more and says so.
    pub(crate) leaves_after: Option<u32>,
    /// After a number of batches it becomes slower by a factor.
    pub(crate) slows_after: Option<(u32, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Begin,
    HostDone(u32),
    DeviceDue(u16),
    /// A lost device has another link.
    Joined(u16),
    Delivered(u16, Message),
    FetchDone {
        device: u16,
        batch: u32,
        generation: u32,
    },
    StepDone,
    Wake,
}

/// The result of a rank's run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) sequence: Vec<u32>,
    /// Whether each step was on a device batch.
    pub(crate) from_device: Vec<bool>,
    pub(crate) summary: Summary,
    pub(crate) record: Option<meetpoint_scheduler::Record>,
    pub(crate) learned: meetpoint_scheduler::Learned,
    pub(crate) ended_ns: Time,
}

/// Time and event.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    events: BinaryHeap<Reverse<(Time, u64, usize, Event)>>,
    pub(crate) posted: u64,
    pub(crate) now: Time,
}

impl Clock {
    /// Whether anything but time changes.
    fn is_busy(&self) -> bool {
        self.events.iter().any(|Reverse((.., event))| *event != Event::Wake)
    }

    pub(crate) fn post(&mut self, rank: usize, delay: u64, event: Event) {
        self.posted += 1;
        self.events.push(Reverse((self.now + delay, self.posted, rank, event)));
    }
}

/// Runs one epoch of one rank to its end; panics on any violation.
pub(crate) fn run(config: &Config, scenario: &Scenario) -> Run {
    let mut runs = run_ranks(&[(config.clone(), scenario.clone())]);
    runs.pop().expect("one rank has one run")
}

/// Longest time without any activity while batches are left to consume.
const IDLE_NS_MAX: u64 = 1_000_000;

/// Runs one epoch of all ranks.
pub(crate) fn run_ranks(ranks: &[(Config, Scenario)]) -> Vec<Run> {
    let mut clock = Clock::default();
    let batches: u64 = ranks.iter().map(|(config, _)| u64::from(config.batches)).sum();
    let mut ranks: Vec<Rank> = ranks
        .iter()
        .enumerate()
        .map(|(number, (config, scenario))| Rank::new(number, config, scenario, &mut clock))
        .collect();
    let steps_max = 20_000 * ranks.len() as u64 + 500 * batches;
    let mut idle_ns = 0;
    for _ in 0..steps_max {
        agree(&mut ranks, &mut clock);
        if ranks.iter().all(|rank| rank.finished) {
            let now = clock.now;
            return ranks.into_iter().map(|rank| rank.into_run(now)).collect();
        }
        let is_busy = clock.is_busy();
        let Reverse((time, _, rank, event)) = clock.events.pop().expect("an event is pending");
        idle_ns = if is_busy { 0 } else { idle_ns + (time - clock.now) };
        assert!(idle_ns <= IDLE_NS_MAX, "no activity while {:?} wait", waiting(&ranks));
        clock.now = time;
        ranks[rank].happen(event, &mut clock);
        ranks[rank].poll(&mut clock);
    }
    let stuck = ranks.iter().map(|rank| (&rank.sequence, &rank.epoch));
    panic!("no end after {steps_max} steps: {:?}", stuck.collect::<Vec<_>>());
}

/// The ranks that delay the others: what each has consumed, and its state.
fn waiting(ranks: &[Rank]) -> Vec<(usize, &[u32], &Epoch)> {
    let waiting = ranks.iter().filter(|rank| !rank.finished && rank.proposal.is_none());
    waiting.map(|rank| (rank.number, &rank.sequence[..], &rank.epoch)).collect()
}

/// Once every rank has proposed, the proposals are combined, and all ranks continue with the
/// result.
fn agree(ranks: &mut [Rank], clock: &mut Clock) {
    while ranks.iter().all(|rank| rank.proposal.is_some()) {
        let proposals = ranks.iter_mut().filter_map(|rank| rank.proposal.take());
        let carried = proposals.map(|p| Proposal::from_words(p.to_words()));
        let combined = carried.reduce(Proposal::combine).expect("there is a rank");
        for rank in ranks.iter_mut() {
            let outcome = rank.epoch.agreed(clock.now, combined.agreement());
            assert_eq!(outcome, Outcome::Accepted);
            rank.drop_discarded();
            rank.poll(clock);
        }
    }
}

pub(crate) fn is_device(source: Source) -> bool {
    source != Source::Host
}
