//! The effect of devices on the host batches of a rank, as ranks exchange it in their proposals.
//!
//! Measurements are totals since the beginning of the epoch, with wrapping arithmetic. So a rank
//! may repeat a proposal at any time, the totals of ranks can be added in any order, and each rank
//! takes the difference to the totals of the previous agreement.

/// Number and times of host batches since the beginning of the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Total {
    pub(crate) count: u32,
    pub(crate) sum_ns: u64,
    /// Sum of the squares of the times in microseconds.
    pub(crate) squares: u64,
}

impl Total {
    pub(crate) fn add(&mut self, took_ns: u64) {
        let us = took_ns / 1_000;
        let one = Self { count: 1, sum_ns: took_ns, squares: us.wrapping_mul(us) };
        *self = self.combine(one);
    }

    fn combine(self, other: Self) -> Self {
        Self {
            count: self.count.wrapping_add(other.count),
            sum_ns: self.sum_ns.wrapping_add(other.sum_ns),
            squares: self.squares.wrapping_add(other.squares),
        }
    }

    /// What was added since an earlier total.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count.wrapping_sub(earlier.count),
            sum_ns: self.sum_ns.wrapping_sub(earlier.sum_ns),
            squares: self.squares.wrapping_sub(earlier.squares),
        }
    }
}

/// The measurements of a rank under `auto`, or those of several ranks combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Effects {
    /// Host batches while devices had no work, while they worked, and those of the latter that
    /// began under the current window.
    pub(crate) alone: Total,
    pub(crate) beside: Total,
    pub(crate) level: Total,
    /// Maximum number of unpublished batches of the devices of a rank.
    pub(crate) claimed: u32,
    /// Maximum number of host batches in preparation.
    pub(crate) working: u32,
    /// Minimum of the nanoseconds by which a step on a device batch is shorter.
    pub(crate) shorter_ns: i64,
    /// From earlier epochs: maximum time of a host batch without devices; 0 if no rank knows it.
    pub(crate) prior_ns: u64,
    /// From earlier epochs: minimum window; 0 if a rank does not know it, as in the next fields.
    pub(crate) window: u32,
    /// From earlier epochs: minimum of [`Learned::turn`](crate::Learned::turn).
    pub(crate) turn: u32,
    /// From earlier epochs: minimum of [`Learned::rest`](crate::Learned::rest).
    pub(crate) rest: u32,
    /// From earlier epochs: minimum of [`Learned::patience`](crate::Learned::patience).
    pub(crate) patience: u32,
    /// Maximum window after a first batch of a device that caused no loss.
    pub(crate) opened: u32,
    /// Whether some rank demands that devices are withdrawn, because they cause it a loss.
    pub(crate) loses: bool,
    /// Whether some rank refuses that withdrawn devices resume with the same window.
    pub(crate) refuses: bool,
}

impl Effects {
    /// Number of words of its encoding, apart from the flags.
    pub(crate) const WORDS: usize = 13;

    /// Nothing measured, and nothing known.
    pub(crate) const NONE: Self = Self {
        alone: Total { count: 0, sum_ns: 0, squares: 0 },
        beside: Total { count: 0, sum_ns: 0, squares: 0 },
        level: Total { count: 0, sum_ns: 0, squares: 0 },
        claimed: 0,
        working: 0,
        shorter_ns: 0,
        prior_ns: 0,
        window: 0,
        turn: 0,
        rest: 0,
        patience: 0,
        opened: 0,
        loses: false,
        refuses: false,
    };

    /// Combines the measurements of different ranks. Associative and commutative.
    pub(crate) fn combine(self, other: Self) -> Self {
        Self {
            alone: self.alone.combine(other.alone),
            beside: self.beside.combine(other.beside),
            level: self.level.combine(other.level),
            claimed: self.claimed.max(other.claimed),
            working: self.working.max(other.working),
            shorter_ns: self.shorter_ns.min(other.shorter_ns),
            prior_ns: self.prior_ns.max(other.prior_ns),
            window: self.window.min(other.window),
            turn: self.turn.min(other.turn),
            rest: self.rest.min(other.rest),
            patience: self.patience.min(other.patience),
            opened: self.opened.max(other.opened),
            loses: self.loses || other.loses,
            refuses: self.refuses || other.refuses,
        }
    }

    /// Encodes all but the flags.
    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        [
            pair(self.alone.count, self.beside.count),
            pair(self.level.count, self.claimed),
            pair(self.working, self.opened),
            pair(self.rest, self.patience),
            pair(self.turn, self.window),
            self.alone.sum_ns,
            self.alone.squares,
            self.beside.sum_ns,
            self.beside.squares,
            self.level.sum_ns,
            self.level.squares,
            self.shorter_ns.cast_unsigned(),
            self.prior_ns,
        ]
    }

    /// The inverse of [`Effects::to_words`], with the flags.
    pub(crate) fn from_words(words: &[u64], [loses, refuses]: [bool; 2]) -> Self {
        let high = |at: usize| (words[at] >> 32) as u32;
        let low = |at: usize| (words[at] & u64::from(u32::MAX)) as u32;
        let total = |count, at: usize| Total { count, sum_ns: words[at], squares: words[at + 1] };
        Self {
            alone: total(high(0), 5),
            beside: total(low(0), 7),
            level: total(high(1), 9),
            claimed: low(1),
            working: high(2),
            opened: low(2),
            rest: high(3),
            patience: low(3),
            window: low(4),
            turn: high(4),
            shorter_ns: words[11].cast_signed(),
            prior_ns: words[12],
            loses,
            refuses,
        }
    }
}
