//! The jobs of a round, and their sizes.

use super::jobs::{
    BLUR_BYTES, Blur, NEIGHBOURS_BYTES, NOISE_BYTES, Neighbours, NoiseJob, PASS_BYTES, Pass,
    STATISTIC_BYTES, SUM_BYTES, Statistic, SumJob, WARP_BYTES, WarpJob,
};

/// Number of lists of jobs in a round.
pub(super) const LISTS: usize = 8;

/// The jobs of a round, by the kernel that executes them. The jobs of a list run before those of
/// the next list.
#[derive(Debug, Default)]
pub(super) struct Round {
    pub(super) first_passes: Vec<Pass>,
    pub(super) last_passes: Vec<Pass>,
    pub(super) statistics: Vec<Statistic>,
    pub(super) sharpened: Vec<Neighbours>,
    pub(super) blurs: Vec<Blur>,
    pub(super) warps: Vec<WarpJob>,
    pub(super) noises: Vec<NoiseJob>,
    pub(super) sums: Vec<SumJob>,
}

impl Round {
    /// Length of each list.
    pub(super) fn lengths(&self) -> [usize; LISTS] {
        let Self { first_passes, last_passes, statistics, sharpened, blurs, warps, noises, sums } =
            self;
        [
            first_passes.len(),
            last_passes.len(),
            statistics.len(),
            sharpened.len(),
            blurs.len(),
            warps.len(),
            noises.len(),
            sums.len(),
        ]
    }

    /// Shortens each list to its length in `lengths`.
    pub(super) fn truncate(&mut self, lengths: [usize; LISTS]) {
        let [first, last, statistics, sharpened, blurs, warps, noises, sums] = lengths;
        self.first_passes.truncate(first);
        self.last_passes.truncate(last);
        self.statistics.truncate(statistics);
        self.sharpened.truncate(sharpened);
        self.blurs.truncate(blurs);
        self.warps.truncate(warps);
        self.noises.truncate(noises);
        self.sums.truncate(sums);
    }

    /// Bytes of the jobs after the first `lengths` jobs of each list, including the job index that
    /// is stored for each block.
    pub(super) fn bytes_from(&self, lengths: [usize; LISTS]) -> usize {
        fn of<J>(jobs: &[J], bytes: usize, blocks: impl Fn(&J) -> u32) -> usize {
            jobs.iter().map(|job| bytes + 4 * blocks(job) as usize).sum()
        }
        let [first, last, statistics, sharpened, blurs, warps, noises, sums] = lengths;
        of(&self.first_passes[first..], PASS_BYTES, Pass::first_blocks)
            + of(&self.last_passes[last..], PASS_BYTES, Pass::last_blocks)
            + of(&self.statistics[statistics..], STATISTIC_BYTES, Statistic::blocks)
            + of(&self.sharpened[sharpened..], NEIGHBOURS_BYTES, Neighbours::blocks)
            + of(&self.blurs[blurs..], BLUR_BYTES, Blur::blocks)
            + of(&self.warps[warps..], WARP_BYTES, WarpJob::blocks)
            + of(&self.noises[noises..], NOISE_BYTES, NoiseJob::blocks)
            + of(&self.sums[sums..], SUM_BYTES, SumJob::blocks)
    }

    pub(super) fn clear(&mut self) {
        self.first_passes.clear();
        self.last_passes.clear();
        self.statistics.clear();
        self.sharpened.clear();
        self.blurs.clear();
        self.warps.clear();
        self.noises.clear();
        self.sums.clear();
    }
}
