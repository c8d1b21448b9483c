//! Hill climbing with rollback on the mean time of a batch.
//!
//! A change is tried when the consumer waits for batches, measured, and kept only if a batch then
//! takes measurably less time. The time lost in trials is bounded by [`LOSS_SHARE_MAX`] of the
//! elapsed time, so that a loader where nothing helps is hardly slower than an untuned one.

use super::window::{WINDOW_MIN, Window};
use super::{Budget, Concurrency, Interval, Tuned, TuningChange, Verdict};
use crate::types::Time;

/// Nothing is tried while the consumer waits for a smaller share of the time.
const WAITED_SHARE_MIN: f64 = 0.05;

/// A change is kept if a batch takes at most this share of the time that it took before.
const KEPT_RATIO_MAX: f64 = 0.97;

/// A trial ends early if a batch takes more than this share of the time that it took before.
const ABORTED_RATIO: f64 = 1.1;

/// A difference counts if it exceeds its standard error by this factor. Workers are removed only on
/// strong evidence, because a mistake would never be compensated.
const ERRORS_MIN: f64 = 3.0;
const ERRORS_MIN_TO_REMOVE: f64 = 5.0;

/// Maximum share of the elapsed time that trials may lose.
const LOSS_SHARE_MAX: f64 = 0.005;

/// Assumed loss of a trial, as a share of its time, if it uses only idle cores or more memory.
const CHEAP_LOSS: f64 = 0.02;

/// The same if it removes workers, or if all cores are in use.
const COSTLY_LOSS: f64 = 0.25;

/// More batches ahead do not help if workers are busy for a larger share of their time.
const BUSY_SHARE_MAX: f64 = 0.9;

/// Idle cores that another worker needs in order to count as cheap.
const IDLE_CORES_MIN: f64 = 0.5;

/// Batches for which a change is not tried again after its first failure; doubles with each one.
const BACKOFF_BATCHES: u64 = 128;

/// Maximum number of these doublings.
const BACKOFF_DOUBLINGS_MAX: u32 = 10;

/// Minimum number of batches of an interval, and minimum time: clocks and wake-ups cost
/// microseconds.
const INTERVAL_BATCHES_MIN: u32 = 4;
const INTERVAL_NS_MIN: Time = 5_000_000;

/// The state of a tuner.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Batches that were prepared under the previous concurrency are still being consumed.
    Settling { batches_left: u32 },
    /// The concurrency does not change.
    Watching(Window),
    /// A change is being measured.
    Trying {
        tried: TuningChange,
        before: Concurrency,
        reference: Window,
        batches_left: u32,
        window: Window,
    },
}

/// Chooses numbers of workers and of batches ahead from measured intervals.
///
/// ```
/// use meetpoint_scheduler::{Budget, Concurrency, Interval, Tuner, Verdict};
///
/// let budget = Budget { cores: 2, ahead_max: 16 };
/// let mut tuner = Tuner::new(Concurrency { workers: 1, ahead: 2 }, budget);
/// // The consumer waits for all of the time, and one of two cores is idle.
/// let slow = Interval {
///     batches: 8,
///     duration_ns: 80_000_000,
///     wait_ns: 80_000_000,
///     busy_ns: 80_000_000,
///     cpu_ns: 80_000_000,
/// };
/// let tried = (0..40).find_map(|_| tuner.observe(&slow)).unwrap();
/// assert!(matches!(tried.verdict, Verdict::Tried { waited_share } if waited_share == 1.0));
/// assert_eq!(tuner.concurrency(), Concurrency { workers: 2, ahead: 4 });
/// // Nothing was gained by it.
/// let undone = (0..40).find_map(|_| tuner.observe(&slow)).unwrap();
/// assert!(matches!(undone.verdict, Verdict::RolledBack { .. }));
/// assert_eq!(tuner.concurrency(), Concurrency { workers: 1, ahead: 2 });
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tuner {
    budget: Budget,
    start: Concurrency,
    concurrency: Concurrency,
    state: State,
    /// Batches seen so far.
    batches: u64,
    /// By [`TuningChange::number`]: failures in a row, and the number of batches before which it
    /// is not tried again.
    failures: [u32; TuningChange::ALL.len()],
    blocked_until: [u64; TuningChange::ALL.len()],
    /// Elapsed time, and time that trials lost, as far as known.
    elapsed_ns: f64,
    lost_ns: f64,
    /// Time and batches under the current concurrency, excluding trials of others.
    paced: (f64, f64),
    /// Speed relative to the first concurrency, according to the changes that were kept.
    speedup: f64,
    /// Time saved by these changes.
    saved_ns: f64,
}

impl Tuner {
    /// Begins with a concurrency regardless of the budget, because the user requested it.
    pub fn new(start: Concurrency, budget: Budget) -> Self {
        let start = Concurrency { workers: start.workers.max(1), ahead: start.ahead.max(1) };
        Self {
            budget,
            start,
            concurrency: start,
            state: State::Settling { batches_left: start.ahead },
            batches: 0,
            failures: [0; TuningChange::ALL.len()],
            blocked_until: [0; TuningChange::ALL.len()],
            elapsed_ns: 0.0,
            lost_ns: 0.0,
            paced: (0.0, 0.0),
            speedup: 1.0,
            saved_ns: 0.0,
        }
    }

    /// The concurrency in use.
    pub fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    /// The concurrency at the start.
    pub fn start(&self) -> Concurrency {
        self.start
    }

    /// The resources that it may use.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Maximum number of workers that it ever uses.
    fn workers_max(&self) -> u32 {
        self.budget.cores.max(self.start.workers)
    }

    /// Maximum number of batches ahead that it ever uses.
    pub fn ahead_max(&self) -> u32 {
        self.budget.ahead_max.max(self.start.ahead)
    }

    /// Whether the measurements since the last interval suffice for another.
    pub fn is_due(&self, batches: u32, duration_ns: Time) -> bool {
        let least = self.concurrency.workers.saturating_mul(2).max(INTERVAL_BATCHES_MIN);
        batches >= least && duration_ns >= INTERVAL_NS_MIN
    }

    /// An epoch begins: its first batches are not representative of its pace. A running trial
    /// restarts.
    pub fn epoch_began(&mut self) {
        let batches_left = self.concurrency.ahead;
        match &mut self.state {
            State::Trying { batches_left: left, window, .. } => {
                *left = batches_left;
                *window = Window::default();
            }
            State::Settling { .. } | State::Watching(_) => {
                self.state = State::Settling { batches_left };
            }
        }
    }

    /// Records an interval, and returns the change; `None` if there is none.
    pub fn observe(&mut self, interval: &Interval) -> Option<Tuned> {
        let interval = Interval {
            batches: interval.batches.max(1),
            duration_ns: interval.duration_ns.max(1),
            ..*interval
        };
        self.batches += u64::from(interval.batches);
        self.elapsed_ns += interval.duration_ns as f64;
        match std::mem::replace(&mut self.state, State::Watching(Window::default())) {
            State::Settling { batches_left } => {
                self.state = settling(batches_left.saturating_sub(interval.batches));
                None
            }
            State::Watching(mut window) => {
                self.saved_ns += interval.duration_ns as f64 * (self.speedup - 1.0);
                self.paced.0 += interval.duration_ns as f64;
                self.paced.1 += f64::from(interval.batches);
                window.push(interval);
                let tried = window.is_enough().then(|| self.choose(&window)).flatten();
                match tried {
                    Some((tried, to)) => Some(self.try_out(tried, to, window)),
                    None => {
                        self.state = State::Watching(window);
                        None
                    }
                }
            }
            State::Trying { tried, before, reference, batches_left, mut window } => {
                // Not from the reference alone, because a change is tried when that was slow.
                let expected = f64::from(interval.batches) * self.paced.0 / self.paced.1.max(1.0);
                self.lost_ns += interval.duration_ns as f64 - expected;
                if batches_left == 0 {
                    window.push(interval);
                }
                if let Some(verdict) = judge(tried, &reference, &window) {
                    return Some(self.conclude(tried, before, verdict, window));
                }
                let batches_left = batches_left.saturating_sub(interval.batches);
                self.state = State::Trying { tried, before, reference, batches_left, window };
                None
            }
        }
    }

    /// The change of the running trial could not be applied. It is undone, and not tried again.
    pub fn refuse(&mut self) -> Option<Tuned> {
        let State::Trying { tried, before, .. } = self.state else { return None };
        self.blocked_until[tried.number()] = u64::MAX;
        self.state = settling(before.ahead);
        self.concurrency = before;
        Some(Tuned { tried, verdict: Verdict::Refused, before, now: before })
    }

    /// The change to try, if one is allowed now.
    fn choose(&self, window: &Window) -> Option<(TuningChange, Concurrency)> {
        if window.waited_share() < WAITED_SHARE_MIN {
            return None;
        }
        let workers = f64::from(self.concurrency.workers);
        let busy_share = window.workers_busy() / workers;
        let more_ahead = (busy_share < BUSY_SHARE_MAX).then_some(TuningChange::RaiseAhead);
        // Idle workers are helped by more batches ahead, not by more workers.
        let idle_cores = f64::from(self.budget.cores) - window.cores_used();
        let candidates = match busy_share < BUSY_SHARE_MAX {
            true => [more_ahead, Some(TuningChange::AddWorkers), Some(TuningChange::RemoveWorkers)],
            false => [Some(TuningChange::AddWorkers), Some(TuningChange::RemoveWorkers), None],
        };
        let candidates = candidates.into_iter().flatten();
        let mut possible = candidates.filter_map(|tried| Some((tried, self.result(tried)?)));
        possible.find(|&(tried, to)| {
            let is_cheap = match tried {
                TuningChange::AddWorkers => idle_cores >= IDLE_CORES_MIN,
                TuningChange::RaiseAhead => true,
                TuningChange::RemoveWorkers => false,
            };
            self.batches >= self.blocked_until[tried.number()]
                && self.can_afford(to, is_cheap, window)
        })
    }

    /// The concurrency after a change; `None` if it is beyond the budget.
    fn result(&self, tried: TuningChange) -> Option<Concurrency> {
        let Concurrency { workers, ahead } = self.concurrency;
        let step = (workers / 4).max(1);
        let to = match tried {
            TuningChange::AddWorkers => {
                let workers = workers.saturating_add(step).min(self.workers_max());
                let each = self.start.ahead.div_ceil(self.start.workers);
                let asked = workers.saturating_mul(each).min(self.ahead_max());
                Concurrency { workers, ahead: ahead.max(asked) }
            }
            TuningChange::RemoveWorkers if workers > self.budget.cores => Concurrency {
                workers: workers.saturating_sub(step).max(self.budget.cores.max(1)),
                ahead,
            },
            TuningChange::RemoveWorkers => self.concurrency,
            TuningChange::RaiseAhead => {
                let more = ahead.saturating_mul(2).max(workers.saturating_mul(2));
                Concurrency { workers, ahead: more.min(self.ahead_max()) }
            }
        };
        let is_change = match tried {
            TuningChange::AddWorkers => to.workers > workers,
            TuningChange::RemoveWorkers => to.workers < workers,
            TuningChange::RaiseAhead => to.ahead > ahead,
        };
        is_change.then_some(to)
    }

    /// Whether the time that a trial may lose is within [`LOSS_SHARE_MAX`] of the elapsed time, or
    /// covered by earlier gains.
    fn can_afford(&self, to: Concurrency, is_cheap: bool, window: &Window) -> bool {
        let interval = to.workers.saturating_mul(2).max(INTERVAL_BATCHES_MIN);
        let batches = f64::from(to.ahead) + WINDOW_MIN as f64 * f64::from(interval);
        let share = if is_cheap { CHEAP_LOSS } else { COSTLY_LOSS };
        let allowed = LOSS_SHARE_MAX * self.elapsed_ns + self.saved_ns / 2.0;
        self.lost_ns.max(0.0) + share * batches * window.batch_ns() <= allowed
    }

    fn try_out(&mut self, tried: TuningChange, to: Concurrency, reference: Window) -> Tuned {
        let (before, waited_share) = (self.concurrency, reference.waited_share());
        let batches_left = to.ahead;
        let window = Window::default();
        self.state = State::Trying { tried, before, reference, batches_left, window };
        self.concurrency = to;
        Tuned { tried, verdict: Verdict::Tried { waited_share }, before, now: to }
    }

    fn conclude(
        &mut self,
        tried: TuningChange,
        before: Concurrency,
        verdict: Verdict,
        window: Window,
    ) -> Tuned {
        let number = tried.number();
        match verdict {
            Verdict::Kept { time_ratio } => {
                self.failures[number] = 0;
                self.speedup /= time_ratio;
                self.paced = (0.0, 0.0);
                self.state = State::Watching(window);
            }
            Verdict::RolledBack { .. } | Verdict::Tried { .. } | Verdict::Refused => {
                let doublings = self.failures[number].min(BACKOFF_DOUBLINGS_MAX);
                self.blocked_until[number] = self.batches + (BACKOFF_BATCHES << doublings);
                self.failures[number] += 1;
                self.state = settling(before.ahead);
                self.concurrency = before;
            }
        }
        Tuned { tried, verdict, before, now: self.concurrency }
    }
}

fn settling(batches_left: u32) -> State {
    match batches_left {
        0 => State::Watching(Window::default()),
        batches_left => State::Settling { batches_left },
    }
}

/// The result of a trial; `None` while it continues.
fn judge(tried: TuningChange, reference: &Window, window: &Window) -> Option<Verdict> {
    if window.is_empty() {
        return None;
    }
    let (before, after) = (reference.batch_ns(), window.batch_ns());
    let time_ratio = after / before;
    let rolled_back = Some(Verdict::RolledBack { time_ratio });
    if !window.is_enough() {
        let is_slower = after - before > ERRORS_MIN * reference.expected_error(window);
        return rolled_back.filter(|_| time_ratio > ABORTED_RATIO && is_slower);
    }
    let error = reference.batch_ns_error().hypot(window.batch_ns_error());
    let errors_min = match tried {
        TuningChange::AddWorkers | TuningChange::RaiseAhead => ERRORS_MIN,
        TuningChange::RemoveWorkers => ERRORS_MIN_TO_REMOVE,
    };
    if time_ratio > KEPT_RATIO_MAX {
        return rolled_back;
    }
    if before - after > errors_min * error {
        return Some(Verdict::Kept { time_ratio });
    }
    if !window.is_full() {
        // It seems to help, so more intervals are measured.
        return None;
    }
    match tried {
        // It helps against rare slow batches, which make the errors large, and costs only memory.
        TuningChange::RaiseAhead => Some(Verdict::Kept { time_ratio }),
        TuningChange::AddWorkers | TuningChange::RemoveWorkers => rolled_back,
    }
}
