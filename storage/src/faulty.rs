//! Injects faults into an engine: short reads, EIO, EAGAIN, ENOSPC and delays, by a given plan.

use crate::engine::{Completion, WAIT_MAX};
use crate::slots::Slots;
use crate::transfer::action;
use crate::{
    Access, AlignedBuffer, Counters, Engine, EngineNote, Error, FileId, Limits, RefusedRequest,
    Request, RequestKind,
};
use meetpoint_format::split_mix::SplitMix64;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The fault of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A read ends after a given number of bytes, as if the file did: [`Error::ShortRead`].
    ShortRead {
        /// Bytes that are read; fewer than requested.
        bytes: usize,
    },
    /// The device fails: EIO. A write leaves the file as it was.
    Broken,
    /// The kernel has no free resources, even after retries: EAGAIN.
    Busy,
    /// A write finds no space: ENOSPC. The file stays as it was.
    NoSpace,
    /// The request succeeds, but not before this time has passed.
    Slow(Duration),
}

impl Fault {
    fn fits(self, kind: RequestKind) -> bool {
        match self {
            Self::ShortRead { .. } => kind == RequestKind::Read,
            Self::NoSpace => kind == RequestKind::Write,
            Self::Broken | Self::Busy | Self::Slow(_) => true,
        }
    }
}

/// Which requests fail, and how. Requests of each kind are counted from zero, in the order of
/// submission.
#[derive(Debug, Clone)]
pub struct FaultPlan(FaultSchedule);

#[derive(Debug, Clone)]
enum FaultSchedule {
    /// By kind and number.
    Listed(BTreeMap<(u8, u64), Fault>),
    /// Random faults that apply to the kind of request.
    Seeded { seed: u64, per_mille: u32 },
}

impl FaultPlan {
    /// A plan without faults, to which [`FaultPlan::and`] adds some.
    pub fn none() -> Self {
        Self(FaultSchedule::Listed(BTreeMap::new()))
    }

    /// Lets `per_mille` of a thousand requests fail, each with a random fault that applies to it.
    /// The same seed gives the same faults.
    pub fn seeded(seed: u64, per_mille: u32) -> Self {
        Self(FaultSchedule::Seeded { seed, per_mille })
    }

    /// Also lets the `nth` request of a kind fail.
    ///
    /// # Panics
    /// If the plan is a seeded one, or the fault does not apply to requests of that kind.
    #[must_use]
    pub fn and(mut self, kind: RequestKind, nth: u64, fault: Fault) -> Self {
        assert!(fault.fits(kind), "a {kind:?} cannot fail with {fault:?}");
        match &mut self.0 {
            FaultSchedule::Listed(list) => list.insert((kind as u8, nth), fault),
            FaultSchedule::Seeded { .. } => panic!("a seeded plan takes no list"),
        };
        self
    }

    /// The fault of the `nth` request of a kind, which transfers `bytes`.
    fn fault(&self, kind: RequestKind, nth: u64, bytes: usize) -> Option<Fault> {
        let (seed, per_mille) = match &self.0 {
            FaultSchedule::Listed(list) => return list.get(&(kind as u8, nth)).copied(),
            FaultSchedule::Seeded { seed, per_mille } => (*seed, u64::from(*per_mille)),
        };
        let mut random = SplitMix64::new(seed ^ SplitMix64::new(nth * 4 + kind as u64).next_u64());
        (random.below(1000) < per_mille).then(|| match (random.below(4), kind) {
            (0, RequestKind::Read) => {
                Fault::ShortRead { bytes: random.below(bytes.max(1) as u64) as usize }
            }
            (0, RequestKind::Write) => Fault::NoSpace,
            (1, _) => Fault::Busy,
            (2, _) => Fault::Slow(Duration::from_micros(random.below(2000))),
            (_, _) => Fault::Broken,
        })
    }
}

/// Lets requests to another engine fail according to a plan. A request that fails never reaches
/// that engine.
pub struct FaultyEngine {
    inner: Box<dyn Engine>,
    plan: FaultPlan,
    /// Submitted requests, by kind.
    taken: [u64; 3],
    /// Names of files, for errors.
    paths: HashMap<FileId, PathBuf>,
    /// Requests in the inner engine: the caller's token, and the earliest time of completion.
    inside: Slots<(u64, Option<Instant>)>,
    /// Completions of the inner engine, and the earliest time at which each may be returned.
    held: Vec<(Completion, Option<Instant>)>,
    scratch: Vec<Completion>,
    errors: u64,
}

impl FaultyEngine {
    /// Lets `inner` fail according to `plan`.
    pub fn new(inner: Box<dyn Engine>, plan: FaultPlan) -> Self {
        Self {
            inner,
            plan,
            taken: [0; 3],
            paths: HashMap::new(),
            inside: Slots::default(),
            held: Vec::new(),
            scratch: Vec::new(),
            errors: 0,
        }
    }

    /// Fails a request without passing it on.
    fn fail(&mut self, mut request: Request, fault: Fault) {
        let path = self.paths[&request.file].clone();
        let (offset, bytes) = (request.offset, request.bytes);
        let failed = |code| Error::Io {
            action: action(request.kind),
            path: path.clone(),
            offset,
            bytes: if request.kind == RequestKind::Sync { 0 } else { bytes },
            source: io::Error::from_raw_os_error(code),
        };
        let error = match fault {
            Fault::ShortRead { bytes: there } => {
                // A caller that uses the buffer regardless must not find the expected bytes.
                request.buffer.as_mut_slice().fill(0xdb);
                let got = there.min(bytes.saturating_sub(1));
                Error::ShortRead { path, offset, wanted: bytes, got }
            }
            Fault::Broken => failed(libc::EIO),
            Fault::Busy => failed(libc::EAGAIN),
            Fault::NoSpace => failed(libc::ENOSPC),
            Fault::Slow(_) => unreachable!("a slow request is let through"),
        };
        self.errors += 1;
        let Request { token, buffer, .. } = request;
        self.held.push((Completion { token, buffer, start: 0, result: Err(error) }, None));
    }

    /// Passes a request on.
    fn pass(
        &mut self,
        mut request: Request,
        not_before: Option<Instant>,
    ) -> Result<(), Box<RefusedRequest>> {
        let token = request.token;
        let number = self.inside.insert((token, not_before));
        request.token = number;
        self.inner.submit(request).map_err(|mut refused| {
            self.inside.remove(number);
            refused.request.token = token;
            refused
        })
    }

    /// Returns the completions whose time has come.
    fn hand_out(&mut self, out: &mut Vec<Completion>) -> usize {
        let now = Instant::now();
        let free =
            |(_, from): &mut (Completion, Option<Instant>)| from.is_none_or(|from| from <= now);
        let before = out.len();
        out.extend(self.held.extract_if(.., free).map(|(completion, _)| completion));
        out.len() - before
    }
}

impl Engine for FaultyEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn open(&mut self, path: &Path, access: Access) -> Result<FileId, Error> {
        let file = self.inner.open(path, access)?;
        self.paths.insert(file, path.to_path_buf());
        Ok(file)
    }

    fn adopt(&mut self, file: File, name: &str) -> Result<FileId, Error> {
        let file = self.inner.adopt(file, name)?;
        self.paths.insert(file, name.into());
        Ok(file)
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

    fn submit(&mut self, request: Request) -> Result<(), Box<RefusedRequest>> {
        let depth = self.limits().depth;
        if self.in_flight() >= depth {
            return Err(Box::new(RefusedRequest { request, error: Error::QueueFull { depth } }));
        }
        let kind = request.kind;
        let nth = self.taken[kind as usize];
        let known = self.paths.contains_key(&request.file);
        match self.plan.fault(kind, nth, request.bytes).filter(|_| known) {
            None => self.pass(request, None)?,
            Some(Fault::Slow(time)) => self.pass(request, Some(Instant::now() + time))?,
            Some(fault) => self.fail(request, fault),
        }
        self.taken[kind as usize] += 1;
        Ok(())
    }

    fn wait(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<usize, Error> {
        let deadline = Instant::now() + timeout.min(WAIT_MAX);
        let mut nap = Duration::ZERO;
        loop {
            if self.inner.in_flight() > 0 {
                self.inner.wait(nap, &mut self.scratch)?;
            } else if !nap.is_zero() {
                std::thread::sleep(nap);
            }
            for mut completion in self.scratch.drain(..) {
                let (token, not_before) = self.inside.remove(completion.token);
                completion.token = token;
                self.held.push((completion, not_before));
            }
            let count = self.hand_out(out);
            let now = Instant::now();
            let remaining = deadline.saturating_duration_since(now);
            if count > 0 || self.in_flight() == 0 || remaining.is_zero() {
                return Ok(count);
            }
            let next = self.held.iter().filter_map(|(_, from)| *from).min();
            nap = next.map_or(remaining, |from| remaining.min(from.saturating_duration_since(now)));
        }
    }

    fn in_flight(&self) -> usize {
        self.inside.len() + self.held.len()
    }

    fn counters(&self) -> Counters {
        let inner = self.inner.counters();
        Counters { errors: inner.errors + self.errors, ..inner }
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

    fn drawn(seed: u64) -> Vec<Option<Fault>> {
        let plan = FaultPlan::seeded(seed, 300);
        let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Sync];
        let requests = (0..1000).flat_map(|nth| kinds.map(|kind| (kind, nth)));
        requests.map(|(kind, nth)| plan.fault(kind, nth, 5000)).collect()
    }

    #[test]
    fn a_seeded_schedule_is_the_same_for_the_same_seed_and_has_its_rate() {
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let faults = drawn(1).into_iter().flatten().count();
        assert!((800..1000).contains(&faults), "{faults} of 3000 at 300 per mille");
    }

    #[test]
    fn a_seeded_plan_draws_only_what_fits_and_everything_that_does() {
        let kinds = [RequestKind::Read, RequestKind::Write, RequestKind::Sync];
        let mut seen = std::collections::BTreeSet::new();
        for (place, fault) in drawn(7).into_iter().enumerate() {
            if let Some(fault) = fault {
                assert!(fault.fits(kinds[place % 3]), "{:?} with {fault:?}", kinds[place % 3]);
                seen.insert(format!("{fault:?}").split([' ', '(']).next().map(str::to_owned));
            }
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
    }

    #[test]
    #[should_panic(expected = "a Read cannot fail with NoSpace")]
    fn a_plan_that_cannot_happen_is_refused() {
        let _ = FaultPlan::none().and(RequestKind::Read, 0, Fault::NoSpace);
    }
}
