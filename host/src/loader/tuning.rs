//! Takes measurements for the tuner while batches are consumed, and applies its decisions.

use super::Loader;
use crate::clock::{monotonic_ns, process_cpu_ns};
use crate::config::{LoaderConfig, Tune};
use crate::driver::Driver;
use crate::limits::Limits;
use crate::stats::{EventKind, TuningUse};
use meetpoint_diagnose::Diagnose;
use meetpoint_scheduler::{Budget, Concurrency, Interval, Tuned, Tuner, Verdict};
use std::sync::Arc;

/// The tuner of a loader, and the measurements of its current interval.
#[derive(Debug)]
pub(super) struct Tuning {
    tuner: Tuner,
    /// Workers that were started; unused ones are parked.
    workers_started: u32,
    /// Consumed batches of the epoch, and its number of batches.
    consumed: u32,
    batches: u32,
    since: Reading,
    /// The use of the tuner in this epoch.
    used: TuningUse,
}

/// Measurements at one time. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    consumed: u32,
    at_ns: u64,
    cpu_ns: u64,
    wait_ns: u64,
    busy_ns: u64,
}

impl Tuning {
    /// The tuner of a configuration, if it has one.
    pub(super) fn new(config: &LoaderConfig, limits: &Limits) -> Option<Self> {
        match config.tune {
            Tune::Off => return None,
            Tune::Auto => {}
        }
        let workers = config.workers_at_start();
        let start = Concurrency { workers, ahead: limits.host_ahead };
        let budget = Budget { cores: config.cores_to_use(), ahead_max: limits.host_ahead_max };
        let tuner = Tuner::new(start, budget);
        let used = TuningUse::new(tuner.concurrency(), budget);
        let since = Reading::default();
        Some(Self { tuner, workers_started: workers, consumed: 0, batches: 0, since, used })
    }

    /// The current numbers of workers and of batches ahead.
    pub(super) fn concurrency(&self) -> Concurrency {
        self.tuner.concurrency()
    }

    /// An epoch, or the rest of one, begins with this number of batches.
    pub(super) fn epoch_began(&mut self, batches: u32) {
        self.tuner.epoch_began();
        (self.consumed, self.batches) = (0, batches);
        self.since =
            Reading { at_ns: monotonic_ns(), cpu_ns: process_cpu_ns(), ..Reading::default() };
        self.used = TuningUse::new(self.tuner.concurrency(), self.tuner.budget());
    }

    /// The use of the tuner in this epoch.
    pub(super) fn used(&self) -> TuningUse {
        TuningUse { end: self.tuner.concurrency(), ..self.used }
    }

    /// The interval that ends now, if it is long enough.
    fn interval(&mut self, driver: &Driver) -> Option<Interval> {
        self.consumed += 1;
        // Towards the end, workers run out of work: the consumed batches were prepared before.
        if self.consumed.saturating_add(self.tuner.concurrency().ahead) >= self.batches {
            return None;
        }
        let (at_ns, before) = (monotonic_ns(), self.since);
        let batches = self.consumed - before.consumed;
        let duration_ns = at_ns.saturating_sub(before.at_ns);
        if !self.tuner.is_due(batches, duration_ns) {
            return None;
        }
        let (wait_ns, busy_ns) = driver.ask(|run| (run.meters.host_wait_ns, run.meters.busy_ns))?;
        let cpu_ns = process_cpu_ns();
        self.since = Reading { consumed: self.consumed, at_ns, cpu_ns, wait_ns, busy_ns };
        Some(Interval {
            batches,
            duration_ns,
            wait_ns: wait_ns.saturating_sub(before.wait_ns),
            busy_ns: busy_ns.saturating_sub(before.busy_ns),
            cpu_ns: cpu_ns.saturating_sub(before.cpu_ns),
        })
    }

    fn count(&mut self, tuned: &Tuned) {
        match tuned.verdict {
            Verdict::Tried { .. } => self.used.tried += 1,
            Verdict::Kept { .. } => self.used.kept += 1,
            Verdict::RolledBack { .. } => self.used.rolled_back += 1,
            Verdict::Refused => self.used.refused += 1,
        }
    }
}

impl Loader {
    /// Called when a batch is handed to the consumer: measures, and changes workers and batches
    /// ahead if the tuner decides to.
    pub(super) fn tune(&mut self) {
        let driver = Arc::clone(&self.driver);
        let Some(tuning) = &mut self.tuning else { return };
        let Some(interval) = tuning.interval(&driver) else { return };
        self.follow(&driver, &interval);
    }

    /// Applies the tuner's decision after an interval.
    fn follow(&mut self, driver: &Driver, interval: &Interval) {
        let Some(tuning) = &mut self.tuning else { return };
        let Some(tuned) = tuning.tuner.observe(interval) else { return };
        tuning.count(&tuned);
        driver.note(EventKind::Tuned { tuned });
        self.start_more(driver, tuned.now.workers);
        if let Some(tuning) = &self.tuning {
            driver.set_concurrency(tuning.concurrency());
        }
    }

    /// Starts the missing workers. If one cannot be started, the tuner undoes its change.
    fn start_more(&mut self, driver: &Driver, workers: u32) {
        let started = self.tuning.as_ref().map_or(workers, |tuning| tuning.workers_started);
        for number in started..workers {
            let result = self.start_worker(number);
            let Some(tuning) = &mut self.tuning else { return };
            match result {
                Ok(()) => tuning.workers_started = number + 1,
                Err(error) => {
                    let (cause, detail) = (error.cause().to_owned(), error.to_string());
                    driver.note(EventKind::WorkerNotStarted { cause, detail });
                    if let Some(tuned) = tuning.tuner.refuse() {
                        tuning.count(&tuned);
                        driver.note(EventKind::Tuned { tuned });
                    }
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_format::recipe::Recipe;
    use meetpoint_prepare::{
        CpuPreparers, Error as PrepareError, Job, Preparer, PreparerFactory, Resources,
    };
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Creates up to a number of preparers, and refuses more.
    #[derive(Debug)]
    struct LimitedFactory(AtomicU32);

    impl PreparerFactory for LimitedFactory {
        fn preparer(
            &self,
            job: &Job,
            resources: Resources,
        ) -> Result<Box<dyn Preparer>, PrepareError> {
            let left = self
                .0
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map_err(|_| PrepareError::NoFixedShape)?;
            CpuPreparers::default().preparer(job, resources)
        }
    }

    /// A loader that may use four cores; `preparers` of its workers can be started.
    fn loader(preparers: u32) -> Loader {
        let recipe = "operation = [{name = 'decode'}, {name = 'center_crop', size = 8}]";
        let recipe = Arc::new(Recipe::from_toml(recipe).unwrap());
        let mut config = LoaderConfig::new("../datasets/tests/golden/version-3", recipe, 1);
        config.tune = Tune::Auto;
        config.preparers = Arc::new(LimitedFactory(AtomicU32::new(preparers)));
        let mut loader = Loader::open(config).unwrap();
        let start = loader.tuning.as_ref().unwrap().tuner.start();
        assert_eq!(start, Concurrency { workers: 1, ahead: 2 });
        let budget = Budget { cores: 4, ahead_max: loader.limits.host_ahead_max };
        let tuning = loader.tuning.as_mut().unwrap();
        tuning.tuner = Tuner::new(start, budget);
        loader
    }

    /// Intervals in which the consumer waits all the time, until something changes.
    fn follow_until_changed(loader: &mut Loader, batch_ns: u64) -> Concurrency {
        let driver = Arc::clone(&loader.driver);
        let before = loader.tuning.as_ref().unwrap().concurrency();
        for _ in 0..200 {
            let duration_ns = 8 * batch_ns;
            let [wait_ns, busy_ns, cpu_ns] = [duration_ns; 3];
            let interval = Interval { batches: 8, duration_ns, wait_ns, busy_ns, cpu_ns };
            loader.follow(&driver, &interval);
            let concurrency = loader.tuning.as_ref().unwrap().concurrency();
            let is_refused = loader.tuning.as_ref().unwrap().used.refused > 0;
            if concurrency != before || is_refused {
                return concurrency;
            }
        }
        before
    }

    fn epoch_is_whole(loader: &mut Loader, epoch: u32) -> TuningUse {
        let mut epoch = loader.start_epoch(epoch).unwrap();
        let mut batches = Vec::new();
        while let Some(batch) = epoch.next_batch().unwrap() {
            batches.push(batch.index());
        }
        assert_eq!(batches, [0, 1, 2, 3, 4, 5]);
        epoch.finish().tuning.unwrap()
    }

    #[test]
    fn a_worker_is_started_parked_and_used_again() {
        let mut loader = loader(9);
        let two = Concurrency { workers: 2, ahead: 4 };
        assert_eq!(follow_until_changed(&mut loader, 10_000_000), two);
        assert_eq!(loader.threads.len(), 2);
        assert_eq!(epoch_is_whole(&mut loader, 0).start, two);
        // A batch takes as long as before: the worker is parked, and the epoch completes without
        // it.
        assert_eq!(
            follow_until_changed(&mut loader, 10_000_000),
            Concurrency { workers: 1, ahead: 2 }
        );
        assert_eq!(epoch_is_whole(&mut loader, 1).end.workers, 1);
        assert_eq!(follow_until_changed(&mut loader, 10_000_000), two);
        assert_eq!(loader.threads.len(), 2, "the one that was parked");
        epoch_is_whole(&mut loader, 2);
    }

    #[test]
    fn where_a_worker_cannot_be_started_the_loader_goes_on_with_those_that_it_has() {
        let mut loader = loader(1);
        let one = Concurrency { workers: 1, ahead: 2 };
        assert_eq!(follow_until_changed(&mut loader, 10_000_000), one);
        let tuning = loader.tuning.as_ref().unwrap();
        assert_eq!((tuning.used.tried, tuning.used.refused), (1, 1));
        epoch_is_whole(&mut loader, 0);
    }
}
