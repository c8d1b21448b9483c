//! `windowed`: divides the epoch into windows of W batches, each of which is prepared from both
//! ends and consumed in order. W limits the spool.
//!
//! ```text
//! window k                      window k+1
//! │ host ──►      ◄── device │  │               ◄── device │
//! ```
//!
//! A device is granted the highest untouched batch of the host's window if it is expected to finish
//! it before consumption reaches it, otherwise that of the next window. So it is never idle while
//! the host approaches it. With several ranks the meeting point is agreed on in advance: see
//! [`AgreedWindows`].

use crate::board::Board;
use crate::closed_forms::{self, Inputs, NotApplicable, Prediction};
use crate::error::{Error, at_least_one};
use crate::ledger::State;
use crate::ranks::Proposal;
use crate::terms::Terms;
use crate::types::{BatchIndex, DeviceId, Source};

use super::guarantees::Order;
use super::option::{AcceptedValues, OptionSpec, Value, WholeRange};
use super::ordered::{AgreedWindows, GRANT_UNMEASURED, OrderProgress, Ordered, Pattern, Rule};
use super::plan::{Consumption, Grant, StallAction};
use super::strategy::{DeviceUse, EpochPlanner, RecordKind, Strategy, StrategyOption};
use crate::strategy_name::StrategyName;

/// Maximum open windows: that of consumption, that of the host, and the next.
const OPEN: usize = 4;

/// Default number of batches in a window.
const WINDOW_DEFAULT: u32 = 16;

/// Maximum number of batches in a window.
const WINDOW_MAX: u32 = 1 << 20;

/// Windows, each prepared from both ends and consumed in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windowed {
    /// W, at least 1.
    pub window: u32,
}

impl Default for Windowed {
    fn default() -> Self {
        Self { window: WINDOW_DEFAULT }
    }
}

impl Strategy for Windowed {
    const NAME: StrategyName = StrategyName::Windowed;
    const SUMMARY: &'static str =
        "the epoch is divided into windows; each is prepared from both ends and consumed in order";
    const DEVICES: DeviceUse = DeviceUse::Required;
    const RECORD: RecordKind = RecordKind::None;
    const OPTIONS: &'static [StrategyOption<Self>] = &[StrategyOption {
        spec: OptionSpec {
            name: "window",
            summary: "batches in a window",
            takes: AcceptedValues {
                whole: Some(WholeRange::within(1, WINDOW_MAX, "batches")),
                ..AcceptedValues::NOTHING
            },
        },
        get: |windowed| Value::Whole(windowed.window),
        set: |windowed, value| match value {
            Value::Whole(window) => {
                windowed.window = window;
                true
            }
            Value::Word(_) | Value::Share(_) => false,
        },
    }];

    fn order(&self) -> Order {
        Order::Baseline
    }

    fn closed_form(&self, inputs: &Inputs) -> Result<Prediction, NotApplicable> {
        closed_forms::round_robin(&Inputs { background: false, ..*inputs })
    }

    fn check(&self, _: &Terms) -> Result<(), Error> {
        at_least_one("window", self.window)
    }
}

impl EpochPlanner for Windowed {
    type Plan = Ordered<Windows>;

    fn plan(&self, terms: &Terms) -> Ordered<Windows> {
        let mut progress = OrderProgress::new(terms, Pattern::Windows);
        let is_agreed = terms.ranks > 1;
        progress.layout.windows = is_agreed.then(|| AgreedWindows::new(self.window, terms.batches));
        Ordered::on(progress, Windows { window: self.window.max(1), claims: [(0, 0); OPEN] })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Windows {
    window: u32,
    /// Claims of devices in the open windows, by number of the window modulo [`OPEN`].
    claims: [(u32, u32); OPEN],
}

impl Rule for Windows {
    const CONSUMPTION: Consumption = Consumption::InWindows;

    fn start(&mut self, _: &mut OrderProgress, _: &mut Board) {}

    fn is_too_late(&self, progress: &OrderProgress, board: &Board, batch: BatchIndex) -> bool {
        let Some(agreed) = &progress.layout.windows else { return false };
        if !board.grants_allowed {
            return true;
        }
        let parts = &board.ledger.parts;
        let (window, current) = (batch.0 / agreed.window, board.ledger.consumed() / agreed.window);
        let (part, n) = parts.locate(batch);
        let (t_c, t_s) = (board.host_ns(), board.part_ns(part));
        if window > current || t_c == 0 || t_s == 0 {
            return false;
        }
        // Devices begin with the highest.
        let (_, end) = agreed.of_devices(window);
        let (_, top) = parts.part(part).highest_run(n, parts.below(part, end));
        let work = u64::from(board.claimed_of(part)) + u64::from(top.saturating_sub(n));
        work.saturating_mul(t_s) > self.reached_ns(board, window, batch.0)
    }

    fn is_late_with(
        &mut self,
        progress: &mut OrderProgress,
        board: &Board,
        batch: BatchIndex,
    ) -> bool {
        let is_late = progress.layout.windows.is_some_and(|it| it.leave_to_devices(batch.0))
            && board.ledger.parts.is_untouched(batch);
        if is_late {
            // Later batches may be too late as well.
            let OrderProgress { ahead, consume, .. } = progress;
            ahead.go_back_to(consume);
        }
        is_late && progress.give_to_host(batch)
    }

    #[inline]
    fn grant(&self, progress: &OrderProgress, board: &Board, device: DeviceId) -> Grant {
        match &progress.layout.windows {
            Some(agreed) => self.grant_of_agreed(board, device, agreed),
            None => self.grant_alone(board, device),
        }
    }

    #[inline]
    fn granted(&mut self, board: &Board, device: DeviceId, grant: Grant) {
        let part = board.ledger.parts.of(device);
        let window = board.ledger.parts.batch(part, grant.first).0 / self.window;
        let entry = &mut self.claims[window as usize % OPEN];
        if entry.0 != window {
            *entry = (window, 0);
        }
        entry.1 += grant.count();
    }

    fn takes_preloaded(&self, _: &OrderProgress, _: &Board, _: BatchIndex) -> bool {
        true
    }

    /// The next batch is at a device. The accelerator waits while the batch is expected sooner than
    /// the host could redo it, plus a quarter of that time as the cost of discarding work; a late
    /// device gets another period of the same length.
    fn rescue(&mut self, progress: &mut OrderProgress, board: &Board) -> StallAction {
        let Some(position) = progress.consume.peek(&progress.layout, &board.ledger) else {
            return StallAction::Wait;
        };
        let Some(entry) = board.ledger.entry(position.batch) else { return StallAction::Wait };
        let (State::Claimed, Source::Device(id)) = (entry.state, entry.source) else {
            return StallAction::Wait;
        };
        let device = board.device(id);
        let (redo_ns, t_s) = (board.preparation_ns(), device.batch_ns());
        if redo_ns == 0 || t_s == 0 {
            return StallAction::Wait;
        }
        let place = u64::from(device.claimed.place(position.batch)) + 1;
        let expected = device.busy_since.saturating_add(place.saturating_mul(t_s));
        let due = expected.saturating_add(redo_ns);
        if expected.saturating_sub(board.now) > redo_ns + redo_ns / 4 || board.now >= due {
            return StallAction::TakeBack(id);
        }
        StallAction::WaitUntil(due)
    }

    /// The number of batches that this rank's devices can prepare in the window whose share is
    /// agreed on next.
    fn propose(&mut self, progress: &mut OrderProgress, board: &Board, proposal: &mut Proposal) {
        let Some(agreed) = progress.layout.windows else { return };
        if let Some(window) = agreed.due(board.ledger.consumed()) {
            let (begin, end) = agreed.bounds(window);
            // Batches that the host has claimed stay with it; batch 0 always does.
            let host_s = begin.max(progress.ahead.index()).max(1).min(end);
            proposal.share = agreed.can_prepare(board, window).min(end - host_s);
        }
    }

    /// All ranks have agreed on a share.
    fn agreed(&mut self, progress: &mut OrderProgress, board: &mut Board, combined: &Proposal) {
        let Some(agreed) = &mut progress.layout.windows else { return };
        if let Some(window) = agreed.due(board.ledger.consumed()) {
            agreed.agree(window, combined.share);
        }
    }
}

impl Windows {
    fn claims(&self, window: u32) -> u32 {
        let (of, count) = self.claims[window as usize % OPEN];
        if of == window { count } else { 0 }
    }

    /// One batch of the host's window or of the next one.
    fn grant_alone(&self, board: &Board, id: DeviceId) -> Grant {
        let part = board.ledger.parts.of(id);
        let of = board.ledger.parts.part(part);
        let device = board.device(id);
        if of.untouched() == 0 || device.slots() >= self.window {
            return Grant::NOTHING;
        }
        let host_s = board.ledger.parts.batch(part, of.front()).0 / self.window;
        let last = (board.ledger.batches() - 1) / self.window;
        for window in host_s..=(host_s + 1).min(last) {
            let begin = window * self.window;
            let floor = board.ledger.parts.below(part, begin);
            let end = board.ledger.parts.below(part, begin.saturating_add(self.window));
            let (first, end) = of.highest_run(floor, end);
            if first < end
                && self.in_time(board, id, window, board.ledger.parts.batch(part, end - 1).0)
            {
                return Grant { first: end - 1, end, from_back: true };
            }
        }
        Grant::NOTHING
    }

    /// Whether the device is expected to finish a batch before consumption reaches it.
    fn in_time(&self, board: &Board, id: DeviceId, window: u32, batch: u32) -> bool {
        let device = board.device(id);
        let (t_c, t_s) = (board.host_ns(), device.batch_ns());
        if t_c == 0 || t_s == 0 {
            let upper_half = batch % self.window >= self.window / 2;
            return device.claimed.len() < GRANT_UNMEASURED && upper_half;
        }
        let outstanding = u64::from(device.claimed.len()) + 1;
        let done_ns =
            outstanding.saturating_mul(t_s).saturating_sub(device.progress_ns(board.now, t_s));
        done_ns <= self.reached_ns(board, window, batch)
    }

    /// Time until consumption is expected to reach a batch of a window.
    fn reached_ns(&self, board: &Board, window: u32, batch: u32) -> u64 {
        let ledger = &board.ledger;
        // The devices' claims in this window and the next are above it.
        let above = self.claims(window) + self.claims(window + 1);
        let from_devices = u64::from(ledger.device_open().saturating_sub(above));
        let before = u64::from(batch.saturating_sub(ledger.consumed()));
        let from_host = before.saturating_sub(from_devices);
        from_host
            .saturating_mul(board.host_ns())
            .saturating_add(from_devices.min(before).saturating_mul(board.ready_ns()))
    }

    /// One batch of the agreed share of the devices: of the window of consumption, if it is
    /// expected in time, else of the next.
    fn grant_of_agreed(&self, board: &Board, id: DeviceId, agreed: &AgreedWindows) -> Grant {
        let parts = &board.ledger.parts;
        let part = parts.of(id);
        let of = parts.part(part);
        if of.untouched() == 0 || board.device(id).slots() >= agreed.window {
            return Grant::NOTHING;
        }
        let current = board.ledger.consumed() / agreed.window;
        for window in current..=current + 1 {
            let (first, end) = agreed.of_devices(window);
            let (floor, end) = (parts.below(part, first), parts.below(part, end));
            let (first, end) = of.highest_run(floor, end);
            if first >= end {
                continue;
            }
            let batch = parts.batch(part, end - 1).0;
            if window > current || self.in_time(board, id, window, batch) {
                return Grant { first: end - 1, end, from_back: true };
            }
        }
        Grant::NOTHING
    }
}
