//! Which stored forms a round measures.
//!
//! A form that is certainly worse than the best is left out of the next round and keeps its earlier
//! figures. It must never win by these: a form that may be the best is first measured on the
//! samples of the round.

use crate::decide::Decision;
use crate::results::Measured;
use crate::vocabulary::{Codec, Point};

/// A form that is stored once and measured with every number of threads and every cache.
pub(super) type StoredForm = (Point, Codec);

/// The forms that may still be the best, and nothing offline.
pub(super) fn open_forms(
    legal: &[StoredForm],
    results: &[Measured],
    decision: &Decision,
) -> Vec<StoredForm> {
    let contending = contending(results, decision, |_| true);
    let is_open = |form: &&StoredForm| form.0.is_nothing_offline() || contending.contains(form);
    legal.iter().filter(is_open).cloned().collect()
}

/// The forms that may be the best according to figures from fewer samples than those of the round.
pub(super) fn outdated_forms(
    legal: &[StoredForm],
    results: &[Measured],
    decision: &Decision,
    samples: u64,
) -> Vec<StoredForm> {
    let outdated = contending(results, decision, |measured| measured.samples < samples);
    legal.iter().filter(|form| outdated.contains(form)).cloned().collect()
}

/// The forms of contenders for which `is_meant` holds.
fn contending(
    results: &[Measured],
    decision: &Decision,
    is_meant: impl Fn(&Measured) -> bool,
) -> Vec<StoredForm> {
    let contenders = decision.contenders().into_iter().map(|index| &results[index]);
    let strategies = contenders.filter(|it| is_meant(it)).map(Measured::strategy);
    strategies.map(|strategy| (strategy.point, strategy.codec)).collect()
}

#[cfg(test)]
mod tests {
    use super::{StoredForm, open_forms, outdated_forms};
    use crate::decide::{Goal, decide};
    use crate::results::{CacheDrop, Measured};
    use crate::vocabulary::{Cache, Codec, Form};

    const GOAL: Goal = Goal {
        epochs: 10,
        storage_limit: None,
        memory_limit: None,
        confidence: 0.95,
        allows_loss: false,
    };

    /// A strategy without variance, measured on a given number of samples.
    fn measured(form: Form, per_second: f64, samples: u64) -> Measured {
        Measured {
            form,
            operations: 0,
            operation: String::new(),
            codec: Codec::None,
            threads: 4,
            cache: Cache::Page,
            dataset_samples: 1000,
            dataset_bytes: 100_000,
            samples,
            runs: 3,
            offline_seconds: 0.0,
            offline_error: 0.0,
            process_seconds: 0.0,
            save_seconds: 0.0,
            stored_bytes: 100.0,
            stored_error: 0.0,
            cached_bytes: 100.0,
            cold_per_second: per_second,
            cold_deviation: 0.0,
            per_second,
            per_second_deviation: 0.0,
            sampling_error: 0.0,
            cpu_seconds: 0.01,
            context_switches: 1.5,
            peak_memory_bytes: 1 << 20,
            disk_bytes_per_second: None,
            cache_drop: CacheDrop::Dropped,
            joules: None,
            gpu: None,
            gpu_seconds: None,
            gpu_joules: None,
        }
    }

    fn forms_of(results: &[Measured]) -> Vec<StoredForm> {
        results.iter().map(|it| (it.point(), it.codec)).collect()
    }

    #[test]
    fn a_form_that_was_dropped_is_measured_again_before_its_old_figures_win() {
        let of_round = |files: f64, packed: (f64, u64), compact: f64| {
            [
                measured(Form::Files, files, 64),
                measured(Form::Packed, packed.0, packed.1),
                measured(Form::CoefficientsCompact, compact, 64),
            ]
        };
        // The best form turned out to be slower than the one that was dropped.
        let results = of_round(10.0, (20.0, 32), 15.0);
        let legal = forms_of(&results);
        let decision = decide(&results, &GOAL).unwrap();
        assert_eq!(decision.best().index, 1);
        assert_eq!(outdated_forms(&legal, &results, &decision, 64), [legal[1].clone()]);
        // Measured on the samples of the round, it is as fast as before, or slower.
        for (packed, best) in [(20.0, 1), (12.0, 2)] {
            let results = of_round(10.0, (packed, 64), 15.0);
            let decision = decide(&results, &GOAL).unwrap();
            assert_eq!(outdated_forms(&legal, &results, &decision, 64), []);
            let open = [legal[0].clone(), legal[best].clone()];
            assert_eq!(open_forms(&legal, &results, &decision), open);
        }
        // Earlier figures that do not win are not measured again.
        let results = of_round(10.0, (12.0, 32), 15.0);
        let decision = decide(&results, &GOAL).unwrap();
        assert_eq!(outdated_forms(&legal, &results, &decision, 64), []);
    }
}
