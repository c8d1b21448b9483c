//! Which share of the pictures of a batch a GPU prepares: fixed, or found by measurement.

use std::str::FromStr;

/// How the share is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum ShareChoice {
    /// By measurement, so that the GPU and the thread end a batch at the same time.
    #[default]
    Measured,
    /// A fixed share, from 0 (none) to 1 (all).
    Fixed(f64),
}

/// Neither `auto` nor a number from 0 to 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{got:?} is not a share: expected auto or a number from 0 to 1")]
pub struct NotAShare {
    /// What it is instead.
    pub got: String,
}

impl FromStr for ShareChoice {
    type Err = NotAShare;

    fn from_str(text: &str) -> Result<Self, NotAShare> {
        if text == "auto" {
            return Ok(Self::Measured);
        }
        let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
        share.map(Self::Fixed).ok_or_else(|| NotAShare { got: text.to_owned() })
    }
}

/// The share before anything is measured.
const BEGINNING: f64 = 0.5;

/// How far a measurement moves the share towards what it suggests.
const STEP: f64 = 0.5;

/// Times of a batch, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchTimes {
    /// Samples that the GPU prepared.
    pub(super) on_gpu: usize,
    /// Samples that the thread prepared meanwhile.
    pub(super) on_cpu: usize,
    /// Time of the GPU from the start of its work until its end.
    pub(super) gpu_ns: u64,
    /// Time that the thread spent on its own samples.
    pub(super) cpu_ns: u64,
}

/// The share of one thread, adapted after each batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    choice: ShareChoice,
    share: f64,
    /// Nanoseconds of this thread for a sample, as last measured.
    cpu_ns_each: Option<f64>,
}

impl Share {
    pub(super) fn new(choice: ShareChoice) -> Self {
        let share = match choice {
            ShareChoice::Measured => BEGINNING,
            ShareChoice::Fixed(share) => share,
        };
        Self { choice, share, cpu_ns_each: None }
    }

    /// The share now.
    pub(super) fn now(&self) -> f64 {
        self.share
    }

    /// Samples of a batch that are offered to the GPU: the first ones.
    pub(super) fn of(&self, samples: usize) -> usize {
        let share = self.share * samples as f64;
        match self.choice {
            ShareChoice::Fixed(_) => share.round() as usize,
            // With a slow GPU, one sample more may take longer than the thread saves. One at least
            // goes there, or nothing more would be measured.
            ShareChoice::Measured => (share as usize).max(1).min(samples),
        }
    }

    /// Learns from a batch the share with which the GPU and the thread end at the same time.
    pub(super) fn learn(&mut self, times: BatchTimes) {
        let samples = times.on_gpu + times.on_cpu;
        if self.choice != ShareChoice::Measured || times.on_gpu == 0 || samples == 0 {
            return;
        }
        if times.on_cpu > 0 {
            self.cpu_ns_each = Some(times.cpu_ns as f64 / times.on_cpu as f64);
        }
        let Some(cpu_ns_each) = self.cpu_ns_each else {
            // All went to the GPU from the first batch on: measure the thread.
            self.share = BEGINNING;
            return;
        };
        let gpu_ns_each = times.gpu_ns as f64 / times.on_gpu as f64;
        let suggested = cpu_ns_each / (cpu_ns_each + gpu_ns_each);
        self.share += STEP * (suggested - self.share);
        self.share = self.share.clamp(1.0 / samples as f64, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchTimes, Share, ShareChoice};
    use proptest::prelude::*;

    /// A batch on a GPU and a thread with fixed costs, as the thread measures it: after each sample
    /// of its own it asks whether the GPU has finished, and at the end it waits.
    fn batch(share: Share, samples: usize, gpu: u64, fixed: u64, cpu: u64) -> BatchTimes {
        let on_gpu = share.of(samples);
        let on_cpu = samples - on_gpu;
        let (busy, cpu_ns) = (fixed + gpu * on_gpu as u64, cpu * on_cpu as u64);
        let has_finished = busy <= cpu_ns;
        let gpu_ns = if has_finished { busy / cpu * cpu + cpu / 2 } else { busy };
        BatchTimes { on_gpu, on_cpu, gpu_ns, cpu_ns }
    }

    proptest! {
        #[test]
        fn the_share_converges(gpu in 1_000..200_000_u64, cpu in 50_000..2_000_000_u64) {
            let mut share = Share::new(ShareChoice::Measured);
            let samples = 256;
            for _ in 0..60 {
                share.learn(batch(share, samples, gpu, 0, cpu));
            }
            let best = cpu as f64 / (cpu + gpu) as f64;
            prop_assert!((share.now() - best).abs() < 0.01, "{} instead of {best}", share.now());
        }

        #[test]
        fn a_batch_takes_no_longer_than_on_the_thread_alone(
            gpu in 1_000..5_000_000_u64, fixed in 0..20_000_000_u64, cpu in 50_000..2_000_000_u64,
        ) {
            let mut share = Share::new(ShareChoice::Measured);
            let samples = 256;
            for _ in 0..60 {
                share.learn(batch(share, samples, gpu, fixed, cpu));
            }
            let times = batch(share, samples, gpu, fixed, cpu);
            let alone = cpu * samples as u64;
            // One sample is always on the GPU, whose fixed cost the thread may have to wait for.
            let bound = alone.max(fixed + gpu);
            prop_assert!(times.gpu_ns.max(times.cpu_ns) <= bound + bound / 20);
        }
    }

    #[test]
    fn a_fixed_share_stays() {
        let mut share = Share::new(ShareChoice::Fixed(0.25));
        for _ in 0..3 {
            share.learn(batch(share, 8, 1, 0, 1_000));
            assert_eq!(share.of(8), 2);
        }
        assert_eq!("0.25".parse(), Ok(ShareChoice::Fixed(0.25)));
        assert_eq!("auto".parse(), Ok(ShareChoice::Measured));
        for wrong in ["", "1.5", "-0.1", "NaN", "half"] {
            assert!(wrong.parse::<ShareChoice>().is_err(), "{wrong}");
        }
    }
}
