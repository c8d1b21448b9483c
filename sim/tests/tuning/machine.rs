//! A host in virtual time: workers share cores, one drive and the processor with the consumer. The
//! scheduler and the tuner are the ones that ship.

use meetpoint_format::split_mix::mix;
use meetpoint_scheduler::{
    AcceleratorDecision, BatchIndex, Budget, Concurrency, Config, Epoch, Holders, HostDecision,
    HostOnly, Interval, Learned, Tuned, Tuner,
};

/// What preparing and consuming a batch takes. Times are nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pub(crate) cores: u32,
    /// Processor time to prepare a batch.
    pub(crate) compute_ns: u64,
    /// Time of a resource that serves one worker at a time.
    pub(crate) serial_ns: u64,
    /// Time without use of any resource.
    pub(crate) wait_ns: u64,
    /// Time of a step of the consumer.
    pub(crate) step_ns: u64,
    /// Whether a step uses a core.
    pub(crate) is_step_on_cpu: bool,
    /// Share of the speed that each runnable thread beyond the cores takes from all.
    pub(crate) contention: f64,
    /// Times of a batch vary by this share to both sides.
    pub(crate) jitter: f64,
    /// Interval, in batches, of those that take `straggler_ns` more processor time; 0: none.
    pub(crate) straggler_every: u32,
    pub(crate) straggler_ns: u64,
    pub(crate) seed: u64,
    /// Workers that can be started; 0 counts as any number.
    pub(crate) workers_limit: u32,
}

/// The result of a run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) duration_ns: u64,
    pub(crate) order: Vec<u32>,
    pub(crate) concurrency: Concurrency,
    pub(crate) decisions: Vec<Tuned>,
    /// Most workers that were active, and most batches ahead.
    pub(crate) workers_most: u32,
    pub(crate) ahead_most: u32,
}

/// A batch that a worker prepares: what is left of each phase, in this order.
#[derive(Debug, Clone)]
struct Work {
    batch: BatchIndex,
    begun: f64,
    wait: f64,
    serial: f64,
    compute: f64,
}

/// The consumer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Consumer {
    Waiting { since: f64 },
    Stepping { left: f64 },
}

/// What was measured since the last interval.
#[derive(Debug, Default)]
struct Meter {
    since: f64,
    batches: u32,
    wait: f64,
    busy: f64,
    cpu: f64,
}

/// Times below this, in nanoseconds, are rounding errors.
const NOTHING_NS: f64 = 1e-3;

impl Machine {
    /// A run in which the concurrency does not change.
    pub(crate) fn fixed(&self, concurrency: Concurrency, batches: u32) -> Run {
        self.run(concurrency, None, batches)
    }

    /// A run with a tuner.
    pub(crate) fn tuned(&self, start: Concurrency, budget: Budget, batches: u32) -> Run {
        self.run(start, Some(Tuner::new(start, budget)), batches)
    }

    fn run(&self, start: Concurrency, mut tuner: Option<Tuner>, batches: u32) -> Run {
        let ahead_max = tuner.as_ref().map_or(start.ahead, Tuner::ahead_max);
        let mut epoch = Epoch::new(config(batches, ahead_max)).expect("a valid configuration");
        epoch.set_host_ahead(start.ahead);
        let mut concurrency = start;
        let mut run = Run {
            duration_ns: 0,
            order: Vec::new(),
            concurrency,
            decisions: Vec::new(),
            workers_most: concurrency.workers,
            ahead_most: concurrency.ahead,
        };
        let mut now = 0.0;
        let mut works: Vec<Work> = Vec::new();
        let mut consumer = Consumer::Waiting { since: 0.0 };
        let mut meter = Meter::default();
        epoch.accelerator_ready(0);
        loop {
            while (works.len() as u32) < concurrency.workers
                && let HostDecision::Prepare(batch) = epoch.host(now as u64)
            {
                works.push(self.work(batch, now));
            }
            if let Consumer::Waiting { since } = consumer {
                match epoch.accelerator(now as u64) {
                    AcceleratorDecision::Consume(batch, _) => {
                        run.order.push(batch.0);
                        meter.wait += now - since;
                        meter.batches += 1;
                        let left = self.step_ns as f64 * self.jitter_of(batch.0, 3);
                        consumer = Consumer::Stepping { left };
                        // As in the loader: not while the last batches are consumed.
                        let is_end = run.order.len() as u32 + concurrency.ahead >= batches;
                        if let Some(tuner) = tuner.as_mut().filter(|_| !is_end) {
                            self.observe(tuner, &mut meter, now, &mut run);
                            concurrency = tuner.concurrency();
                            epoch.set_host_ahead(concurrency.ahead);
                            run.workers_most = run.workers_most.max(concurrency.workers);
                            run.ahead_most = run.ahead_most.max(concurrency.ahead);
                        }
                        continue;
                    }
                    AcceleratorDecision::WaitUntil(_) => {}
                    AcceleratorDecision::Agree(_) => unreachable!("there is one rank"),
                    AcceleratorDecision::Done => break,
                }
            }
            now += self.advance(&mut works, &mut consumer, &mut meter);
            let finished = |work: &Work| work.wait + work.serial + work.compute <= NOTHING_NS;
            for done in works.extract_if(.., |work| finished(work)) {
                meter.busy += now - done.begun;
                epoch.host_finished(now as u64, done.batch);
            }
            if let Consumer::Stepping { left } = consumer
                && left <= NOTHING_NS
            {
                consumer = Consumer::Waiting { since: now };
                epoch.accelerator_ready(now as u64);
            }
        }
        epoch.check_invariants();
        Run { duration_ns: now as u64, concurrency, ..run }
    }

    fn observe(&self, tuner: &mut Tuner, meter: &mut Meter, now: f64, run: &mut Run) {
        let duration_ns = (now - meter.since) as u64;
        if !tuner.is_due(meter.batches, duration_ns) {
            return;
        }
        let interval = Interval {
            batches: meter.batches,
            duration_ns,
            wait_ns: meter.wait as u64,
            busy_ns: meter.busy as u64,
            cpu_ns: meter.cpu as u64,
        };
        *meter = Meter { since: now, ..Meter::default() };
        run.decisions.extend(tuner.observe(&interval));
        if self.workers_limit != 0 && tuner.concurrency().workers > self.workers_limit {
            run.decisions.extend(tuner.refuse());
        }
    }

    /// Advances the time to the next end of a phase; returns the elapsed time.
    fn advance(&self, works: &mut [Work], consumer: &mut Consumer, meter: &mut Meter) -> f64 {
        let is_step = self.is_step_on_cpu && matches!(consumer, Consumer::Stepping { .. });
        let computing = |work: &&Work| work.wait <= NOTHING_NS && work.serial <= NOTHING_NS;
        let runnable =
            works.iter().filter(computing).count() as f64 + f64::from(u32::from(is_step));
        let excess = (runnable - f64::from(self.cores)).max(0.0);
        let share = (f64::from(self.cores) / runnable.max(1.0)).min(1.0);
        let speed = share / (1.0 + self.contention * excess);
        let at_drive = works.iter().position(|it| it.wait <= NOTHING_NS && it.serial > NOTHING_NS);
        let mut until = f64::INFINITY;
        for (number, work) in works.iter().enumerate() {
            if work.wait > NOTHING_NS {
                until = until.min(work.wait);
            } else if work.serial > NOTHING_NS {
                let own = if at_drive == Some(number) { work.serial } else { f64::INFINITY };
                until = until.min(own);
            } else {
                until = until.min(work.compute / speed);
            }
        }
        let step_speed = if is_step { speed } else { 1.0 };
        if let Consumer::Stepping { left } = consumer {
            until = until.min(*left / step_speed);
        }
        assert!(until.is_finite(), "something is under way while nothing is ready");
        for (number, work) in works.iter_mut().enumerate() {
            if work.wait > NOTHING_NS {
                work.wait -= until;
            } else if work.serial > NOTHING_NS {
                work.serial -= if at_drive == Some(number) { until } else { 0.0 };
            } else {
                work.compute -= until * speed;
            }
        }
        if let Consumer::Stepping { left } = consumer {
            *left -= until * step_speed;
        }
        meter.cpu += until * runnable.min(f64::from(self.cores));
        until
    }

    fn work(&self, batch: BatchIndex, begun: f64) -> Work {
        let is_straggler = self.straggler_every > 0 && batch.0.is_multiple_of(self.straggler_every);
        let extra = if is_straggler { self.straggler_ns } else { 0 };
        Work {
            batch,
            begun,
            wait: self.wait_ns as f64 * self.jitter_of(batch.0, 0),
            serial: self.serial_ns as f64 * self.jitter_of(batch.0, 1),
            compute: (self.compute_ns + extra) as f64 * self.jitter_of(batch.0, 2),
        }
    }

    /// A factor around 1 that depends on batch and phase alone: tuned and fixed runs see the same.
    fn jitter_of(&self, batch: u32, phase: u64) -> f64 {
        let bits = self.seed ^ (u64::from(batch) << 2 | phase).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let unit = (mix(bits) >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + self.jitter * (2.0 * unit - 1.0)
    }
}

fn config(batches: u32, host_ahead: u32) -> Config {
    Config {
        batches,
        strategy: HostOnly.into(),
        host_ahead,
        fetch_ahead: 1,
        devices: Vec::new(),
        holders: Holders::Shared,
        stall_timeout_ns: 1_000_000_000,
        stalls_max: 3,
        profile_batches: 0,
        learned: Learned::default(),
        replay: None,
        ranks: 1,
        costs: None,
    }
}
