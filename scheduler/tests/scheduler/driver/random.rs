//! Seeded random numbers, so that a scenario is a number.

use meetpoint_format::split_mix::SplitMix64;

#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(crate) fn between(&mut self, least: u64, end: u64) -> u64 {
        least + self.below(end - least)
    }

    pub(crate) fn small(&mut self, least: u32, end: u32) -> u32 {
        self.between(least.into(), end.into()) as u32
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Half to one and a half of it; one time in sixteen eight times as long.
    pub(crate) fn around(&mut self, mean: u64) -> u64 {
        let time = mean / 2 + self.below(mean + 1);
        if self.below(16) == 0 { time * 8 } else { time }
    }

    pub(crate) fn shuffled<const N: usize>(&mut self, mut items: [u8; N]) -> [u8; N] {
        for last in (1..N).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
        items
    }
}
