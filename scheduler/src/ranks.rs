//! The agreement of ranks before each step, so that all take the same kind of source (C5).

use crate::effects::Effects;
use crate::learned::CommonTimes;

/// The proposal of one rank for a step, or of several ranks combined. Send it to all ranks, combine
/// it with theirs in any order, and pass the result to [`crate::Epoch::agreed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proposal {
    /// Lowest and highest step (number of batches consumed) of the combined ranks; they must be
    /// equal.
    pub(crate) step: [u32; 2],
    /// Whether every rank has a device batch ready that may be consumed next.
    pub(crate) device_ready: bool,
    /// Whether every rank would end the host's part now.
    pub(crate) switch: bool,
    /// Whether every rank knows its share.
    pub(crate) share_known: bool,
    /// Smallest share of the devices.
    pub(crate) share: u32,
    /// Largest number of batches that the devices of a rank have claimed.
    pub(crate) device_claimed: u32,
    /// Largest number of batches that a host has claimed.
    pub(crate) host_claimed: u32,
    /// Minimum over ranks of the number of batches that their devices have published or could
    /// publish.
    pub(crate) device_total: u32,
    /// Longest times: t_c, t_g, t_s of all devices together.
    pub(crate) times_ns: [u64; 3],
    /// Longest time that a rank waited for its devices: since the previous agreement, and for this
    /// one.
    pub(crate) waited_ns: [u64; 2],
    /// Whether some rank abandons its devices, in which case all do.
    pub(crate) without_devices: bool,
    /// The times of the ranks, under `auto`, which select the next epoch's strategy.
    pub(crate) known: CommonTimes,
    /// The effect of the devices on the host batches of the ranks, under `auto`.
    pub(crate) effects: Effects,
}

/// The agreement of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Agreement(pub(crate) Proposal);

/// Number of words without the effects.
const OWN_WORDS: usize = 14;

impl Proposal {
    /// Number of words of its encoding.
    pub const WORDS: usize = OWN_WORDS + Effects::WORDS;

    /// Combines the proposals of different ranks. Associative and commutative. A proposal must not
    /// be combined with itself, because measurements are added.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        let longest = |at: usize| self.times_ns[at].max(other.times_ns[at]);
        Self {
            step: [self.step[0].min(other.step[0]), self.step[1].max(other.step[1])],
            device_ready: self.device_ready && other.device_ready,
            switch: self.switch && other.switch,
            share_known: self.share_known && other.share_known,
            share: self.share.min(other.share),
            device_claimed: self.device_claimed.max(other.device_claimed),
            host_claimed: self.host_claimed.max(other.host_claimed),
            device_total: self.device_total.min(other.device_total),
            times_ns: [longest(0), longest(1), longest(2)],
            waited_ns: [0, 1].map(|at: usize| self.waited_ns[at].max(other.waited_ns[at])),
            without_devices: self.without_devices || other.without_devices,
            known: self.known.combine(other.known),
            effects: self.effects.combine(other.effects),
        }
    }

    /// The agreement, once the proposals of all ranks are combined.
    pub fn agreement(self) -> Agreement {
        Agreement(self)
    }

    /// Encodes for a transport.
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let flags = u32::from(self.device_ready)
            | u32::from(self.switch) << 1
            | u32::from(self.share_known) << 2
            | u32::from(self.without_devices) << 3
            | u32::from(self.known.background) << 4
            | u32::from(self.effects.loses) << 5
            | u32::from(self.effects.refuses) << 6;
        let [t_c, t_g, t_s] = self.times_ns;
        let own: [u64; OWN_WORDS] = [
            pair(self.step[0], self.step[1]),
            pair(flags, self.share),
            pair(self.host_claimed, self.device_total),
            t_c,
            t_g,
            t_s,
            self.device_claimed.into(),
            self.waited_ns[0],
            self.waited_ns[1],
            self.known.host_ns,
            self.known.ready_ns,
            self.known.device_ns,
            self.known.preparation_ns,
            self.known.spool_slots.into(),
        ];
        let effects = self.effects.to_words();
        std::array::from_fn(|at| own.get(at).copied().unwrap_or_else(|| effects[at - OWN_WORDS]))
    }

    /// The inverse of [`Proposal::to_words`].
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        let high = |at: usize| (words[at] >> 32) as u32;
        let low = |at: usize| (words[at] & u64::from(u32::MAX)) as u32;
        Self {
            step: [high(0), low(0)],
            device_ready: high(1) & 1 != 0,
            switch: high(1) & 2 != 0,
            share_known: high(1) & 4 != 0,
            share: low(1),
            device_claimed: low(6),
            host_claimed: high(2),
            device_total: low(2),
            times_ns: [words[3], words[4], words[5]],
            waited_ns: [words[7], words[8]],
            without_devices: high(1) & 8 != 0,
            known: CommonTimes {
                host_ns: words[9],
                ready_ns: words[10],
                device_ns: words[11],
                preparation_ns: words[12],
                spool_slots: low(13),
                background: high(1) & 16 != 0,
            },
            effects: Effects::from_words(
                &words[OWN_WORDS..],
                [high(1) & 32 != 0, high(1) & 64 != 0],
            ),
        }
    }
}

impl Agreement {
    /// Encodes for a transport; decode with [`Proposal::from_words`] and [`Proposal::agreement`].
    pub fn to_words(self) -> [u64; Proposal::WORDS] {
        self.0.to_words()
    }
}

impl From<Proposal> for Agreement {
    fn from(proposal: Proposal) -> Self {
        proposal.agreement()
    }
}
