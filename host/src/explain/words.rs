//! An explanation in sentences, for terminals, pages and Python.

use super::{Advice, Basis, Ceiling, Explanation, Stage};

impl Stage {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::HostRead => "reading at the host",
            Self::HostCompute => "decoding and augmenting at the host",
            Self::Device => "the device's preparation",
            Self::HandOver => "the transfer from the device's spool",
            Self::Transform => "the batch transform",
            Self::Step => "the training step itself",
        }
    }
}

impl Advice {
    /// As a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FasterReads => {
                "Most of the time goes to reads: a faster drive, more reads in flight (more \
                 workers), or a device that reads the data where it is stored would help."
            }
            Self::UseWorkers => {
                "Batches are prepared in the consumer's own thread: workers would prepare them \
                 during training."
            }
            Self::MoreWorkers => "More workers would help: some cores are idle.",
            Self::AddDevice => {
                "All cores are in use: a device that takes a share, a dataset in coefficient \
                 form, or an offline prefix of the recipe would help."
            }
            Self::PrepareOffline => {
                "All cores are in use: a dataset in coefficient form, or an offline prefix of \
                 the recipe would help."
            }
            Self::SmallerDeviceShare => {
                "The consumer waits for the device: a strategy that gives it less work (wrr, \
                 mte-feedback, auto) or a faster device would help."
            }
            Self::LargerSpool => {
                "Batches of the device wait in its spool: a larger spool quota, or a spool in \
                 memory instead of a file, would help."
            }
            Self::TransformInRecipe => {
                "The function runs in the thread of the training loop: workers and devices could \
                 prepare the same in advance as operations of the recipe."
            }
        }
    }
}

impl Explanation {
    /// Everything except the ceilings of the stages, one sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let percent = self.waited_share * 100.0;
        let (gain, source) = match self.measured_gain {
            Some(gain) => (Some(gain), "measured: a replay of ready batches"),
            None => (self.modelled_gain, "modelled: the steps as they were measured"),
        };
        if self.is_loading {
            sentences.push(format!(
                "Loading is the bottleneck: the consumer waited for batches for {percent:.0} % of \
                 the time, mostly for {}.",
                self.stage.name()
            ));
            sentences.push(match gain {
                Some(gain) => format!(
                    "With every batch ready in time the epoch would be {gain:.2} times as fast \
                     ({source})."
                ),
                None => {
                    "The steps take no time: the epoch takes exactly as long as loading.".into()
                }
            });
        } else {
            let share = if self.transform.is_some() { "most of the rest" } else { "the rest" };
            sentences.push(format!(
                "Loading is not the bottleneck: the consumer waited for batches for \
                 {percent:.1} % of the time; {share} went to {}.",
                self.stage.name()
            ));
            let gain = gain.unwrap_or(1.0);
            sentences.push(format!(
                "Faster loading would make the epoch at most {gain:.2} times as fast ({source})."
            ));
        }
        if let Some(transform) = self.transform {
            sentences.push(format!(
                "The batch transform takes {:.2} ms per batch, {:.1} % of the time, in the thread \
                 that consumes batches.",
                transform.seconds_per_batch * 1e3,
                transform.share * 100.0
            ));
        }
        sentences.extend(self.advice.map(|advice| advice.sentence().to_owned()));
        if let Some(contention) = self.contention {
            sentences.push(format!(
                "A step takes {:.2} ms while batches are prepared and {:.2} ms otherwise: both \
                 share cores or memory.",
                contention.step_seconds * 1e3,
                contention.replayed_step_seconds * 1e3
            ));
        }
        if let Some(cache) = &self.cache {
            sentences.push(cache.to_string());
        }
        sentences.extend(self.store.iter().map(ToString::to_string));
        sentences.extend(self.delivery.iter().map(ToString::to_string));
        if let Some(gpu) = &self.gpu {
            sentences.push(gpu.to_string());
        }
        sentences.extend(self.gpu_meters.iter().map(ToString::to_string));
        if let Some(tuning) = &self.tuning {
            sentences.push(tuning.to_string());
        }
        sentences.push(format!("The first batch was ready after {:.3} s.", self.startup_seconds));
        sentences
    }

    /// The ceiling of each stage, one sentence each.
    pub fn ceiling_sentences(&self) -> impl Iterator<Item = String> {
        self.ceilings.iter().map(|ceiling| {
            let (rate, figure) = match ceiling.measured_batches_per_second {
                Some(rate) => (rate, "measured"),
                None => (ceiling.modelled_batches_per_second.unwrap_or_default(), "modelled"),
            };
            format!(
                "Ceiling of {}: {rate:.1} batches/s ({figure}: {}); {:.3} s of the epoch.",
                ceiling.stage.name(),
                self.basis(ceiling),
                ceiling.seconds
            )
        })
    }

    /// Where the rate of a ceiling comes from.
    fn basis(&self, ceiling: &Ceiling) -> String {
        let workers = match self.workers {
            0 => "the consumer's own thread".to_owned(),
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        match (ceiling.basis, ceiling.stage) {
            (Basis::Workers, Stage::HostRead) => {
                format!("{workers}, by the mean time that a batch waited for reads")
            }
            (Basis::Workers, _) => format!("{workers}, by the mean time to compute a batch"),
            (Basis::Devices, _) => "the mean time of a batch at each device".to_owned(),
            (Basis::FetchThread, _) => "one thread that fetches and checks slots".to_owned(),
            (Basis::Transform, _) => "the function's own time".to_owned(),
            (Basis::Replay, _) => "a replay of ready batches".to_owned(),
            (Basis::Steps, _) => "the steps of this epoch".to_owned(),
        }
    }
}
