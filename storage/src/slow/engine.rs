//! Slows an engine down to the speed of a given device.

use super::{Achieved, CommandTimes, Direction, Lead, Pace, Pacer, WaitDecision};
use crate::engine::WAIT_MAX;
use crate::slots::Slots;
use crate::{
    Access, AlignedBuffer, Completion, Counters, Engine, EngineNote, Error, FileId, Limits,
    RefusedRequest, Request, RequestKind,
};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Delays the completions of another engine until a device of the given pace would have finished.
///
/// It cannot speed an engine up: if the storage is slower than the pace, [`Meter::achieved`] shows
/// it.
pub struct SlowEngine {
    inner: Box<dyn Engine>,
    since: Instant,
    pacer: Pacer,
    lead: Lead,
    commands: Slots<Command>,
    /// Requests that the inner engine has finished and the emulated device has not.
    held: Vec<(Completion, Command)>,
    scratch: Vec<Completion>,
    meter: Meter,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Command {
    token: u64,
    direction: Direction,
    bytes: u64,
    times: CommandTimes,
}

/// Reports the pace that a [`SlowEngine`] has achieved, also while another thread owns the engine.
/// A command that has finished when it is first polled counts as on time, because its time of
/// completion is not known.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    achieved: Arc<Mutex<Achieved>>,
}

impl Meter {
    /// The pace achieved so far.
    pub fn achieved(&self) -> Achieved {
        *self.achieved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlowEngine {
    /// Slows `inner` down to `pace`.
    pub fn new(inner: Box<dyn Engine>, pace: Pace) -> Self {
        Self {
            inner,
            since: Instant::now(),
            pacer: Pacer::new(pace),
            lead: Lead::default(),
            commands: Slots::default(),
            held: Vec::new(),
            scratch: Vec::new(),
            meter: Meter::default(),
        }
    }

    /// A handle that reports the achieved pace.
    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Collects the completions of the inner engine, for which it waits at most `nap`.
    fn collect(&mut self, nap: Duration) -> Result<(), Error> {
        if self.inner.in_flight() == 0 {
            if !nap.is_zero() {
                std::thread::sleep(nap);
            }
            return Ok(());
        }
        self.inner.wait(nap, &mut self.scratch)?;
        for completion in self.scratch.drain(..) {
            let command = self.commands.remove(completion.token);
            self.held.push((completion, command));
        }
        Ok(())
    }

    /// The held command that is due first.
    fn first_held(&self) -> Option<usize> {
        let held = self.held.iter().enumerate();
        held.min_by_key(|(_, (_, command))| command.times.due).map(|(place, _)| place)
    }

    /// Appends the commands that are due to `out`. Only the first may advance the device's time,
    /// after a sleep or ahead of the clock; the others are those that are due by then. If none is
    /// due, `Err` is the time to sleep, or `None` if none is held.
    fn hand_out(
        &mut self,
        slept: bool,
        waited: bool,
        out: &mut Vec<Completion>,
    ) -> Result<usize, Option<Duration>> {
        let clock = self.since.elapsed();
        let mut count = 0;
        while let Some(place) = self.first_held() {
            let due = self.held[place].1.times.due;
            if count == 0 {
                if let WaitDecision::SleepUntil(until) = self.lead.reach(clock, due, slept) {
                    return Err(Some(until.saturating_sub(clock)));
                }
            } else if self.lead.device_time(clock) < due {
                break;
            }
            let (mut completion, command) = self.held.swap_remove(place);
            completion.token = command.token;
            // A command that is due at the first poll counts as on time.
            let over = if waited { self.lead.device_time(clock).max(due) } else { due };
            let mut achieved = self.meter.achieved.lock().unwrap_or_else(PoisonError::into_inner);
            achieved.enter(command.direction, command.bytes, command.times, over);
            drop(achieved);
            out.push(completion);
            count += 1;
        }
        if count == 0 { Err(None) } else { Ok(count) }
    }
}

impl Engine for SlowEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        self.inner.open(path, access)
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        self.inner.adopt(file, name)
    }

    fn close(&mut self, file: FileId) {
        self.inner.close(file);
    }

    fn is_direct(&self, file: FileId) -> bool {
        self.inner.is_direct(file)
    }

    fn file_bytes(&self, file: FileId) -> Result<u64, Error> {
        self.inner.file_bytes(file)
    }

    fn submit(&mut self, mut request: Request) -> Result<(), Box<RefusedRequest>> {
        let depth = self.limits().depth;
        if self.in_flight() >= depth {
            return Err(Box::new(RefusedRequest { request, error: Error::QueueFull { depth } }));
        }
        let token = request.token;
        let (direction, bytes) = match request.kind {
            RequestKind::Read => (Direction::Read, request.bytes as u64),
            RequestKind::Write => (Direction::Write, request.bytes as u64),
            RequestKind::Sync => (Direction::Write, 0),
        };
        let now = self.lead.device_time(self.since.elapsed());
        let idle = CommandTimes { begin: now, end: now, due: now };
        let number = self.commands.insert(Command { token, direction, bytes, times: idle });
        request.token = number;
        if let Err(mut refused) = self.inner.submit(request) {
            self.commands.remove(number);
            refused.request.token = token;
            return Err(refused);
        }
        self.commands.get_mut(number).times = self.pacer.command(now, direction, bytes);
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        let (mut nap, mut slept, mut waited) = (Duration::ZERO, false, false);
        loop {
            self.collect(nap)?;
            let until = match self.hand_out(slept, waited, out) {
                Ok(count) => return Ok(count),
                Err(until) => until,
            };
            let remaining = deadline.saturating_duration_since(Instant::now());
            if self.in_flight() == 0 || remaining.is_zero() {
                return Ok(0);
            }
            nap = until.map_or(remaining, |until| until.min(remaining));
            slept = until.is_some();
            waited = true;
        }
    }

    fn in_flight(&self) -> usize {
        self.commands.len() + self.held.len()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn buffer(&mut self, bytes: usize) -> AlignedBuffer {
        self.inner.buffer(bytes)
    }

    fn notes(&self) -> &[EngineNote] {
        self.inner.notes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryEngine, MemoryFiles, Order};

    fn slow(pace: Pace) -> (SlowEngine, FileId) {
        let files = MemoryFiles::default();
        files.put("part", vec![7; 1 << 20]);
        let memory = MemoryEngine::new(files, 8, false, Order::Submission);
        let mut engine = SlowEngine::new(Box::new(memory), pace);
        let file = engine.open(Path::new("part"), Access::Read).unwrap();
        (engine, file)
    }

    fn read(engine: &mut SlowEngine, file: FileId, token: u64, bytes: usize) {
        let buffer = engine.buffer(bytes);
        let kind = RequestKind::Read;
        engine.submit(Request { token, file, kind, offset: 0, bytes, buffer }).unwrap();
    }

    /// Reads until `commands` have completed, `depth` at a time.
    fn keep_reading(
        engine: &mut SlowEngine,
        file: FileId,
        bytes: usize,
        commands: u64,
        depth: u64,
    ) {
        let (mut given, mut over, mut out) = (0, 0, Vec::new());
        while over < commands {
            while given < commands && given - over < depth {
                read(engine, file, given, bytes);
                given += 1;
            }
            over += engine.wait(Duration::from_secs(60), &mut out).unwrap() as u64;
            out.clear();
        }
    }

    #[test]
    fn a_command_of_a_slow_device_is_not_over_before_its_time() {
        let (mut engine, file) =
            slow(Pace { latency: Duration::from_secs(600), ..Pace::default() });
        read(&mut engine, file, 5, 4096);
        let mut out = Vec::new();
        assert_eq!(engine.wait(Duration::ZERO, &mut out).unwrap(), 0);
        assert_eq!(engine.wait(Duration::from_millis(1), &mut out).unwrap(), 0);
        assert_eq!((engine.in_flight(), out.len()), (1, 0));
    }

    #[test]
    fn many_commands_never_take_less_than_the_device_would() {
        let pace = Pace {
            latency: Duration::from_micros(50),
            read_bytes_per_second: Some(1 << 30),
            ..Pace::default()
        };
        for (depth, bytes, commands) in [(1, 4096, 200), (8, 64 << 10, 200)] {
            let (mut engine, file) = slow(pace);
            let start = Instant::now();
            keep_reading(&mut engine, file, bytes, commands, depth);
            let took = start.elapsed() + super::super::LEAD_MAX;
            let moving =
                Duration::from_secs_f64((bytes as u64 * commands) as f64 / (1 << 30) as f64);
            let waiting = if depth == 1 { pace.latency * commands as u32 } else { pace.latency };
            assert!(took >= moving + waiting, "{took:?} for {moving:?} and {waiting:?}");
            let read = engine.meter().achieved().read;
            assert_eq!((read.commands, read.bytes), (commands, commands * bytes as u64));
            assert!(read.bytes_per_second().unwrap() <= (1 << 30) as f64 * 1.001);
            assert!(read.latency_mean().unwrap() >= pace.latency);
        }
    }

    #[test]
    fn delayed_requests_count_as_in_flight() {
        let (mut engine, file) =
            slow(Pace { latency: Duration::from_secs(600), ..Pace::default() });
        for token in 0..8 {
            read(&mut engine, file, token, 4096);
        }
        let mut out = Vec::new();
        assert_eq!(engine.wait(Duration::ZERO, &mut out).unwrap(), 0);
        let buffer = AlignedBuffer::zeroed(4096);
        let kind = RequestKind::Read;
        let request = Request { token: 77, file, kind, offset: 0, bytes: 1, buffer };
        let refused = engine.submit(request).unwrap_err();
        assert!(matches!(refused.error, Error::QueueFull { depth: 8 }));
        assert_eq!(refused.request.token, 77);
    }
}
