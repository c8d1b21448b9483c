//! The order in which batches are consumed, as far as it is fixed: a function of a few integers.
//!
//! A position belongs to the host or to a device. Positions of devices are in the order of
//! production: the j-th of a part with share n is due at (j+1)/n, so that parts of different speeds
//! are merged as they are expected to deliver.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::ledger::Ledger;
use crate::parts::Parts;
use crate::strategies::plan::Position;
use crate::types::BatchIndex;

use super::agreed::AgreedWindows;

/// How positions follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// The host's part as far as it extends; batches that devices have claimed come after it.
    Open,
    /// The host's part ascending, then the devices'.
    Split,
    /// 0, 1, 2, …; batches in the devices' shares are left to the devices.
    Ascending,
    /// 0, 1, 2, …; each batch is prepared by the end that claims it.
    Windows,
    /// The host's part ascending, alternating with the devices' according to a clock of planned
    /// times.
    Frozen(Frozen),
}

/// The numbers that fix the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frozen {
    /// Steps of the host before anything else.
    pub(crate) first: u32,
    pub(crate) host_ns: u64,
    pub(crate) ready_ns: u64,
    /// t_s of all devices together.
    pub(crate) device_ns: u64,
    /// Batches by which devices may run ahead.
    pub(crate) slack: u32,
}

/// The order of an epoch.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) pattern: Pattern,
    /// The share of each part, if the pattern fixes it.
    pub(crate) shares: Vec<u32>,
    pub(crate) total: u32,
    /// The windows that ranks agreed on, with several ranks.
    pub(crate) windows: Option<AgreedWindows>,
}

impl Layout {
    /// Whether the n-th batch of a part is in the devices' share.
    fn shared_out(&self, parts: &Parts, batch: u32) -> bool {
        let (part, n) = parts.locate(BatchIndex(batch));
        n >= parts.part(part).count() - self.shares[part]
    }

    /// When the j-th device batch of a part is due: smaller is earlier.
    pub(crate) fn due(&self, part: usize, j: u32) -> u64 {
        ((u64::from(j) + 1) << 31) / u64::from(self.shares[part].max(1))
    }
}

/// A position in the order that only moves forwards.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    /// Global index from which the host's next position is searched for.
    index: u32,
    host_done: u32,
    device_done: u32,
    /// Planned time.
    clock: u64,
    /// Next device batch of each part: (due, part, j).
    heap: BinaryHeap<Reverse<(u64, u16, u32)>>,
}

impl Cursor {
    pub(crate) fn new(parts: usize) -> Self {
        let heap = BinaryHeap::with_capacity(parts + 1);
        Self { index: 0, host_done: 0, device_done: 0, clock: 0, heap }
    }

    /// The shares are fixed now.
    pub(crate) fn begin(&mut self, layout: &Layout) {
        self.heap.clear();
        for (part, &share) in layout.shares.iter().enumerate() {
            if share > 0 {
                let number = u16::try_from(part).expect("parts are counted by a u16");
                self.heap.push(Reverse((layout.due(part, 0), number, 0)));
            }
        }
    }

    /// The key of the next device position, for comparison with [`Layout::due`].
    pub(crate) fn next_due(&self) -> Option<(u64, u16)> {
        self.heap.peek().map(|Reverse((due, part, _))| (*due, *part))
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Restarts at the index of another cursor.
    pub(crate) fn go_back_to(&mut self, other: &Self) {
        self.index = self.index.min(other.index);
    }

    /// Number of positions passed.
    pub(crate) fn passed(&self) -> u32 {
        self.host_done + self.device_done
    }

    /// The position here; `None` at the end, or where the order is not fixed further.
    pub(crate) fn peek(&mut self, layout: &Layout, ledger: &Ledger) -> Option<Position> {
        let parts = &ledger.parts;
        match layout.pattern {
            Pattern::Open => {
                while self.index < ledger.batches() && ledger.is_device_s(BatchIndex(self.index)) {
                    self.index += 1;
                }
                self.at_index(ledger, false)
            }
            Pattern::Ascending => {
                let here = self.index < ledger.batches();
                let from_device = here && layout.shared_out(parts, self.index);
                self.at_index(ledger, from_device)
            }
            Pattern::Windows => {
                let from_device = ledger.is_device_s(BatchIndex(self.index))
                    || layout.windows.is_some_and(|windows| windows.leave_to_devices(self.index));
                self.at_index(ledger, from_device)
            }
            Pattern::Split => {
                let host = self.host_position(layout, ledger);
                host.or_else(|| self.device_position(parts))
            }
            Pattern::Frozen(frozen) => {
                let host = self.host_position(layout, ledger);
                let device_s = self.device_done < layout.total
                    && (host.is_none()
                        || (self.host_done >= frozen.first
                            && frozen.due(self.device_done) <= self.clock));
                if device_s { self.device_position(parts) } else { host }
            }
        }
    }

    /// The next device position, regardless of the host's.
    pub(crate) fn device_position(&self, parts: &Parts) -> Option<Position> {
        let Reverse((_, part, j)) = *self.heap.peek()?;
        let part = usize::from(part);
        let batch = parts.batch(part, parts.part(part).count() - 1 - j);
        Some(Position { batch, from_device: true })
    }

    fn host_position(&mut self, layout: &Layout, ledger: &Ledger) -> Option<Position> {
        let batches = ledger.batches();
        while self.index < batches && layout.shared_out(&ledger.parts, self.index) {
            self.index += 1;
        }
        self.at_index(ledger, false)
    }

    fn at_index(&self, ledger: &Ledger, from_device: bool) -> Option<Position> {
        let batch = BatchIndex(self.index);
        (self.index < ledger.batches()).then_some(Position { batch, from_device })
    }

    /// Advances past a position that `peek` returned.
    pub(crate) fn advance(&mut self, layout: &Layout, position: Position) {
        let turns = match layout.pattern {
            Pattern::Frozen(frozen) => Some(frozen),
            Pattern::Open | Pattern::Split | Pattern::Ascending | Pattern::Windows => None,
        };
        let by_index = matches!(layout.pattern, Pattern::Ascending | Pattern::Windows);
        if position.from_device {
            if let Some(frozen) = turns {
                let begun = self.clock.max(frozen.due(self.device_done));
                self.clock = begun.saturating_add(frozen.ready_ns);
            }
            self.device_done += 1;
            if by_index {
                self.index += 1;
            } else {
                self.advance_device(layout);
            }
        } else {
            if let Some(frozen) = turns {
                self.clock = self.clock.saturating_add(frozen.host_ns);
            }
            self.host_done += 1;
            self.index += 1;
        }
    }

    /// Advances past the next device position only.
    pub(crate) fn advance_device(&mut self, layout: &Layout) {
        let Some(Reverse((_, part, j))) = self.heap.pop() else { return };
        if j + 1 < layout.shares[usize::from(part)] {
            self.heap.push(Reverse((layout.due(usize::from(part), j + 1), part, j + 1)));
        }
    }
}

impl Frozen {
    /// The planned time of the n-th device batch.
    fn due(&self, n: u32) -> u64 {
        (u64::from(n) + 1 + u64::from(self.slack)).saturating_mul(self.device_ns)
    }

    /// The clock after the host steps before the turns.
    pub(crate) fn start_clock(&self, cursor: &mut Cursor) {
        cursor.clock = u64::from(cursor.host_done).saturating_mul(self.host_ns);
    }
}
