//! Which faults occur at which batch.

use meetpoint_link::Fault;
use std::time::Duration;

/// The faults of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct BatchFaults {
    pub(crate) die: bool,
    pub(crate) drop_link: bool,
    /// The inner `None` means without end.
    pub(crate) stall: Option<Option<Duration>>,
    pub(crate) slow: Option<f64>,
    pub(crate) corrupt: bool,
    pub(crate) tear: bool,
    pub(crate) spool_full: bool,
}

impl BatchFaults {
    /// The faults of the `n`-th batch that is begun.
    pub(crate) fn at(faults: &[Fault], n: u64) -> Self {
        let mut plan = Self::default();
        for fault in faults {
            match *fault {
                Fault::DieAt(at) => plan.die |= at == n,
                Fault::DropLinkAt(at) => plan.drop_link |= at == n,
                Fault::StallAt { n: at, duration } if at == n => plan.stall = Some(duration),
                Fault::SlowAt { n: at, factor } if at == n => plan.slow = Some(factor),
                Fault::StallAt { .. } | Fault::SlowAt { .. } => {}
                Fault::CorruptAt(at) => plan.corrupt |= at == n,
                Fault::TearAt(at) => plan.tear |= at == n,
                Fault::SpoolFullAt(at) => plan.spool_full |= at <= n,
            }
        }
        plan
    }

    /// Whether any fault occurs half-way through the batch.
    pub(crate) fn has_trap(&self) -> bool {
        self.die || self.drop_link || self.stall.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_strike_at_their_batch_and_a_full_spool_from_it_on() {
        let faults: Vec<Fault> = ["corrupt@2", "stall@2", "slow@3:x2", "enospc@3"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        assert_eq!(BatchFaults::at(&faults, 1), BatchFaults::default());
        let second = BatchFaults { corrupt: true, stall: Some(None), ..BatchFaults::default() };
        assert_eq!(BatchFaults::at(&faults, 2), second);
        assert!(second.has_trap());
        let third = BatchFaults { slow: Some(2.0), spool_full: true, ..BatchFaults::default() };
        assert_eq!(BatchFaults::at(&faults, 3), third);
        assert_eq!(
            BatchFaults::at(&faults, 4),
            BatchFaults { spool_full: true, ..BatchFaults::default() }
        );
    }
}
