//! `wrr`, weighted round robin: each step takes a device batch if one is ready, else a host batch.
//! The weights 1/t_c : 1/t_s follow from that.
//!
//! A device has a few batches ahead. Towards the end it is granted a batch only if the epoch then
//! ends no later than if all the others prepared it. With q batches outstanding at the device, e
//! already spent on the first, u untouched, h claimed by or returned to the host, r ready, in slots
//! or outstanding at devices, and R batches per nanosecond from the other devices:
//!
//! ```text
//! (q+1)·t_s - e + t_g  ≤  ((u+h)·t_c + r·t_g) / (1 + R·(t_c-t_g))
//! ```
//!
//! Left: the device finishes the batch, and it is consumed. Right: the host prepares and the
//! accelerator consumes everything left, including this batch, while the other devices continue.
//! With workers in the background, the host's batches cost the accelerator no time: max(·) instead
//! of the sum.
//!
//! If each device holds separate batches, the host takes from the device that would finish last.

use crate::board::{Board, RATE_NS};
use crate::closed_forms::{self, Inputs, NotApplicable, Prediction};
use crate::terms::Terms;
use crate::tournament::{NONE, Tournament};
use crate::types::{BatchIndex, DeviceId, Time};

use super::guarantees::Order;
use super::plan::{Consumption, Grant, Next, Plan, StallAction};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// Maximum number of outstanding batches while too little was measured to predict the end.
const GRANT_UNMEASURED: u32 = 2;

/// Consumes any ready batch, device batches first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wrr;

impl Strategy for Wrr {
    const NAME: StrategyName = StrategyName::Wrr;
    const SUMMARY: &'static str =
        "each step takes a device batch if one is ready, otherwise a host batch";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::None;
    const OPTIONS: &'static [StrategyOption<Self>] = &[];

    fn order(&self) -> Order {
        Order::Any
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        closed_forms::round_robin(inputs)
    }
}

impl EpochPlanner for Wrr {
    type Plan = WrrPlan;

    fn plan(&self, terms: &Terms) -> WrrPlan {
        WrrPlan { latest: Tournament::new(terms.holders.parts()), starved: None }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WrrPlan {
    /// The part that would finish last comes first.
    latest: Tournament,
    /// Number of batches consumed, and the time, when the accelerator was first seen waiting only
    /// for granted batches.
    starved: Option<(u32, Time)>,
}

impl Plan for WrrPlan {
    const CONSUMPTION: Consumption = Consumption::AsReady;

    /// Without workers, a ready host batch was prepared for exactly this step, because no device
    /// batch was ready when it began. It is consumed at once.
    fn next(&mut self, board: &Board) -> Next {
        Next::Any { host_first: !board.terms.background() }
    }

    fn next_fetch(&mut self, board: &mut Board) -> Option<BatchIndex> {
        board.next_published()
    }

    fn device_may_precede(&self, _: &Board, _: BatchIndex) -> bool {
        false
    }

    fn grants_ended(&self, board: &Board, device: DeviceId) -> bool {
        let parts = &board.ledger.parts;
        parts.part(parts.of(device)).untouched() == 0
    }

    fn takes_preloaded(&self, _: &Board, _: BatchIndex) -> bool {
        true
    }

    /// Returned batches first: either end may still take the others.
    fn pick_for_host(&mut self, board: &mut Board) -> Option<BatchIndex> {
        while let Some(part) = board.ledger.parts.next_notice() {
            let key = key(board, part);
            self.latest.set(u16::try_from(part).expect("counted by a u16"), key);
        }
        let part = usize::from(self.latest.first()?.0);
        let of = board.ledger.parts.part(part);
        let n = of.freed_ends().map_or(of.front(), |(lowest, _)| lowest);
        Some(board.ledger.parts.batch(part, n))
    }

    fn grant(&mut self, board: &Board, id: DeviceId) -> Grant {
        let device = board.device(id);
        let ledger = &board.ledger;
        let part = ledger.parts.part(ledger.parts.of(id));
        let run = Grant::from_back(part.highest_run(0, part.count()));
        let (host_ns, device_ns) = (board.host_ns(), device.batch_ns());
        let outstanding = device.claimed.len();
        if host_ns == 0 || device_ns == 0 {
            // The host gets the last one, and at least as many as the device.
            let fair = GRANT_UNMEASURED.min(ledger.untouched() / 2);
            return run.at_most(fair.saturating_sub(outstanding));
        }
        let [t_c, t_s, t_g] = [host_ns, device_ns, board.ready_ns()].map(i128::from);
        let spent = i128::from(device.progress_ns(board.now, device_ns));
        let host_left = ledger.untouched() + ledger.parts.freed() + ledger.host_working();
        let at_devices = i128::from(ledger.device_open());
        let by_host = i128::from(host_left) * t_c;
        let ready = (i128::from(ledger.host_ready()) + at_devices) * t_g;
        // The n-th additional batch adds t_s on the left side and moves one batch from t_c to t_g
        // on the right, so the largest n is a quotient.
        let others = i128::from(board.rate_of_others(id)) * (t_c - t_g).max(0);
        let helped = |time: i128| time * i128::from(RATE_NS) / (i128::from(RATE_NS) + others);
        let left = |n: i128| (i128::from(outstanding) + n) * t_s - spent + t_g;
        let room = helped(by_host + ready) - left(0);
        let each = t_s + helped(t_c - t_g);
        let mut most = if room < t_s {
            0
        } else if each <= 0 {
            i128::from(u32::MAX)
        } else {
            1 + (room - t_s) / each
        };
        if board.terms.background() {
            // Uses the slower of the two: the host's preparation, or all the steps.
            let steps = by_host.max(ready + i128::from(host_left) * t_g.min(t_c));
            let room = helped(steps) - left(0);
            most = most.min(if room < t_s { 0 } else { room / t_s });
        }
        run.at_most(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Only granted batches are left. The accelerator waits while they are expected sooner than the
    /// host could redo them, plus a quarter of that time as the cost of discarding work; a late
    /// device gets another period of the same length.
    fn rescue(&mut self, board: &Board) -> StallAction {
        let ledger = &board.ledger;
        let consumed = ledger.consumed();
        let claimed = ledger.device_claimed();
        if claimed == 0 || consumed + claimed < ledger.batches() {
            self.starved = None;
            return StallAction::Wait;
        }
        let since = match self.starved {
            Some((seen, since)) if seen == consumed => since,
            Some(_) | None => board.now,
        };
        self.starved = Some((consumed, since));
        let redo_ns = board.preparation_ns();
        let holding = board.devices.iter().enumerate().filter(|(_, d)| !d.claimed.is_empty());
        let Some((at, device)) = holding.max_by_key(|(_, device)| device.expected_end()) else {
            return StallAction::Wait;
        };
        if redo_ns == 0 {
            return StallAction::Wait;
        }
        let others = u64::from(device.claimed.len()) - 1;
        let redo_ns = redo_ns.saturating_add(others.saturating_mul(board.host_ns()));
        let expected = device.expected_end().max(since);
        let due = expected.saturating_add(redo_ns);
        if expected - board.now.min(expected) > redo_ns + redo_ns / 4 || board.now >= due {
            let id = u16::try_from(at).expect("devices are counted by a u16");
            return StallAction::TakeBack(DeviceId(id));
        }
        StallAction::WaitUntil(due)
    }
}

/// Smaller is more urgent: returned batches, batches that only the host can prepare, the part that
/// ends last.
fn key(board: &Board, part: usize) -> u64 {
    let of = board.ledger.parts.part(part);
    if of.freed_ends().is_some() {
        0
    } else if of.untouched() == 0 {
        NONE
    } else if !board.usable(part) {
        1
    } else {
        let work_ns = u64::from(of.untouched()).saturating_mul(board.part_ns(part).max(1));
        NONE - 1 - work_ns.min(NONE - 4)
    }
}
