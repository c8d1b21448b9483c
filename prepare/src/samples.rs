//! Reads stored samples, in any order, through a storage engine: adjacent samples are read
//! together, many reads are in flight, and each sample is compared with its checksum.

use crate::buffers::BufferPool;
use crate::contents::OpenContents;
use crate::read_limits::{BYTES_AHEAD_MAX, READ_TIMEOUT, READS_MAX, ReadPatience};
use crate::{Dataset, Error};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_storage::{Access, AlignedBuffer, Completion, Engine, FileId, Request, RequestKind};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum bytes of adjacent samples in one read; a single sample may be longer.
pub const READ_BYTES_MAX: u64 = 1 << 20;
/// How long one wait lasts.
const WAIT_SLICE: Duration = Duration::from_millis(100);

/// How to handle a damaged sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// Stop with its error.
    #[default]
    Fail,
    /// Skip it, and count it.
    Skip,
}

/// Statistics of the reads.
#[derive(Debug, Default)]
pub struct ReadStats {
    /// Samples passed on.
    pub samples: u64,
    /// Bytes of these samples.
    pub bytes: u64,
    /// Reads that were submitted to the engine.
    pub reads: u64,
    /// Skipped samples, with the reason.
    pub skipped: Vec<(u64, Error)>,
}

/// Reads samples of a dataset. Belongs to one thread.
///
/// ```
/// use meetpoint_prepare::{Dataset, OnDamage, SampleReader};
/// use meetpoint_storage::{EngineKind, open_engine};
/// use std::sync::Arc;
///
/// let dataset = Arc::new(Dataset::open("../datasets/tests/golden/version-3".as_ref())?);
/// let engine = open_engine(EngineKind::Auto, 8)?.engine;
/// let mut reader = SampleReader::new(dataset, engine, OnDamage::Fail)?;
/// let mut lengths = Vec::new();
/// let stats = reader.read(&mut [5, 0, 3].into_iter(), &mut |sample, location, bytes| {
///     assert_eq!(bytes.len() as u64, location.bytes);
///     lengths.push((sample, bytes.len()));
///     Ok(())
/// })?;
/// assert_eq!(stats.samples, 3);
/// assert!(lengths.iter().map(|(sample, _)| *sample).eq([5, 0, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SampleReader {
    dataset: Arc<Dataset>,
    engine: Box<dyn Engine>,
    files: Vec<FileId>,
    contents: Vec<OpenContents>,
    pool: BufferPool,
    on_damage: OnDamage,
    /// Number of the call, the upper half of each token: identifies late reads of earlier calls.
    call: u32,
}

/// Adjacent samples that are read together.
struct Group {
    samples: Vec<(u64, SampleLocation)>,
    /// The result of the read, once it has completed: the buffer, and the offset of the range in
    /// it.
    arrived: Option<Result<(AlignedBuffer, usize), Error>>,
}

impl Group {
    fn offset(&self) -> u64 {
        self.samples[0].1.offset
    }

    fn bytes(&self) -> u64 {
        let last = &self.samples[self.samples.len() - 1].1;
        last.offset + last.bytes - self.offset()
    }

    /// Whether a sample begins where this group ends, and fits into it.
    fn takes(&self, location: &SampleLocation) -> bool {
        let first = &self.samples[0].1;
        let same_file = first.part == location.part && first.file == location.file;
        let end = self.offset() + self.bytes();
        same_file && location.offset == end && self.bytes() + location.bytes <= READ_BYTES_MAX
    }
}

/// Progress within one call.
struct ReadProgress<'a> {
    samples: &'a mut dyn Iterator<Item = u64>,
    /// A sample that did not fit into the previous group.
    left: Option<(u64, SampleLocation)>,
    /// Groups in the order in which they were submitted; `first` is the number of the first.
    groups: VecDeque<Group>,
    first: u32,
    bytes_ahead: u64,
    stats: ReadStats,
}

/// The function that receives each sample: its index, location and bytes.
pub type Each<'a> = &'a mut dyn FnMut(u64, &SampleLocation, &[u8]) -> Result<(), Error>;

impl SampleReader {
    /// Opens the parts with `engine`. Reads are kept in flight up to the engine's depth.
    pub fn new(
        dataset: Arc<Dataset>,
        engine: Box<dyn Engine>,
        on_damage: OnDamage,
    ) -> Result<Self, Error> {
        let mut engine = dataset.engine(engine);
        let files = (0..dataset.manifest().parts.len())
            .map(|part| engine.open(&dataset.part_path(part), Access::Read))
            .collect::<Result<_, _>>()?;
        let contents = (0..dataset.folders()).map(|_| OpenContents::default()).collect();
        let pool = Default::default();
        Ok(Self { dataset, engine, files, contents, pool, on_damage, call: 0 })
    }

    /// Reads samples and passes each to `each`, in the given order.
    pub fn read(
        &mut self,
        samples: &mut dyn Iterator<Item = u64>,
        each: Each<'_>,
    ) -> Result<ReadStats, Error> {
        self.call = self.call.wrapping_add(1);
        let mut progress = ReadProgress {
            samples,
            left: None,
            groups: VecDeque::new(),
            first: 0,
            bytes_ahead: 0,
            stats: ReadStats::default(),
        };
        let outcome = self.run(&mut progress, each);
        self.drain();
        outcome.map(|()| progress.stats)
    }

    fn run(&mut self, progress: &mut ReadProgress<'_>, each: Each<'_>) -> Result<(), Error> {
        let mut completions = Vec::new();
        let mut patience = ReadPatience::new(self.dataset.is_remote());
        loop {
            self.read_ahead(progress)?;
            let Some(first) = progress.groups.front() else { return Ok(()) };
            if first.arrived.is_none() {
                let started = Instant::now();
                self.engine.wait(WAIT_SLICE, &mut completions)?;
                if completions.is_empty() && patience.is_exhausted_by(started.elapsed(), WAIT_SLICE)
                {
                    let path = self.dataset.path().to_path_buf();
                    return Err(Error::ReadTimeout { path, seconds: patience.limit.as_secs() });
                }
                for completion in completions.drain(..) {
                    patience.renew();
                    self.arrive(completion, progress);
                }
            }
            while progress.groups.front().is_some_and(|group| group.arrived.is_some()) {
                let group = progress.groups.pop_front().expect("there is one");
                progress.first = progress.first.wrapping_add(1);
                progress.bytes_ahead -= group.bytes();
                self.hand_out(group, progress, each)?;
            }
        }
    }

    /// Submits reads until the engine is full, the limit of bytes is reached, or there are no more
    /// samples.
    fn read_ahead(&mut self, progress: &mut ReadProgress<'_>) -> Result<(), Error> {
        let depth = self.engine.limits().depth.min(READS_MAX);
        while self.engine.in_flight() < depth && progress.bytes_ahead < BYTES_AHEAD_MAX {
            let Some(group) = self.next_group(progress)? else { return Ok(()) };
            let location = &group.samples[0].1;
            let opened = match (&location.file, self.dataset.contents(location.part)) {
                (Some(file), Some((folder, contents))) => {
                    self.contents[folder].file(file, contents, &mut *self.engine)
                }
                _ => Ok(self.files[location.part]),
            };
            let file = match opened {
                Ok(file) => file,
                Err(error) => {
                    // Reported once the samples before it were passed on.
                    let (sample, location) = &group.samples[0];
                    let error = self.dataset.in_place(*sample, location, error);
                    progress.bytes_ahead += group.bytes();
                    progress.groups.push_back(Group { arrived: Some(Err(error)), ..group });
                    continue;
                }
            };
            let bytes = usize::try_from(group.bytes()).expect("at most IMAGE_BYTES_MAX");
            let number = progress.first.wrapping_add(progress.groups.len() as u32);
            let request = Request {
                token: u64::from(self.call) << 32 | u64::from(number),
                file,
                kind: RequestKind::Read,
                offset: group.offset(),
                bytes,
                buffer: self.pool.take(&mut *self.engine, bytes),
            };
            self.engine.submit(request).map_err(|refused| refused.error)?;
            progress.stats.reads += 1;
            progress.bytes_ahead += bytes as u64;
            progress.groups.push_back(group);
        }
        Ok(())
    }

    /// The next samples to read together.
    fn next_group(&mut self, progress: &mut ReadProgress<'_>) -> Result<Option<Group>, Error> {
        let mut group: Option<Group> = None;
        loop {
            let next = match progress.left.take() {
                Some(left) => Some(left),
                None => progress
                    .samples
                    .next()
                    .map(|sample| self.dataset.locate(sample).map(|location| (sample, location)))
                    .transpose()?,
            };
            let Some((sample, location)) = next else { return Ok(group) };
            match &mut group {
                None => {
                    group = Some(Group { samples: vec![(sample, location)], arrived: None });
                }
                Some(group) if group.takes(&location) => group.samples.push((sample, location)),
                Some(_) => {
                    progress.left = Some((sample, location));
                    return Ok(group);
                }
            }
        }
    }

    fn arrive(&mut self, completion: Completion, progress: &mut ReadProgress<'_>) {
        let Completion { token, buffer, start, result } = completion;
        if token >> 32 != u64::from(self.call) {
            return self.pool.give(buffer);
        }
        let number = (token & u64::from(u32::MAX)) as u32;
        let group = &mut progress.groups[number.wrapping_sub(progress.first) as usize];
        group.arrived = Some(match result {
            Ok(_) => Ok((buffer, start)),
            Err(source) => {
                self.pool.give(buffer);
                let (sample, location) = &group.samples[0];
                let (_, row, key) = self.dataset.location_in_words(*sample, location);
                Err(Error::Read { row, key, source })
            }
        });
    }

    /// Passes on the samples of a completed group.
    fn hand_out(
        &mut self,
        mut group: Group,
        progress: &mut ReadProgress<'_>,
        each: Each<'_>,
    ) -> Result<(), Error> {
        let (buffer, start) = match group.arrived.take().expect("it has arrived") {
            Ok(arrived) => arrived,
            Err(error) if self.on_damage == OnDamage::Fail => return Err(error),
            Err(_) => return self.one_by_one(&group, progress, each),
        };
        let base = group.offset();
        for (sample, location) in &group.samples {
            let begin = start + usize::try_from(location.offset - base).expect("in one read");
            let bytes = usize::try_from(location.bytes).expect("in one read");
            let stored = &buffer.as_slice()[begin..begin + bytes];
            let checked = match self.dataset.check_image(*sample, location, stored) {
                Ok(()) => Ok(Cow::Borrowed(stored)),
                Err(error) => self.dataset.read_again(*sample, location, error).map(Cow::Owned),
            };
            self.show(*sample, location, checked, progress, each)?;
        }
        self.pool.give(buffer);
        Ok(())
    }

    /// Reads the samples of a group synchronously one by one after reading them together failed.
    fn one_by_one(
        &self,
        group: &Group,
        progress: &mut ReadProgress<'_>,
        each: Each<'_>,
    ) -> Result<(), Error> {
        for (sample, location) in &group.samples {
            let read = self.dataset.read_located(*sample, location).map(Cow::Owned);
            self.show(*sample, location, read, progress, each)?;
        }
        Ok(())
    }

    /// Passes a sample on, or handles its error.
    fn show(
        &self,
        sample: u64,
        location: &SampleLocation,
        stored: Result<Cow<'_, [u8]>, Error>,
        progress: &mut ReadProgress<'_>,
        each: Each<'_>,
    ) -> Result<(), Error> {
        match stored {
            Ok(stored) => {
                each(sample, location, &stored)?;
                progress.stats.samples += 1;
                progress.stats.bytes += location.bytes;
                Ok(())
            }
            Err(error) if self.on_damage == OnDamage::Skip => {
                progress.stats.skipped.push((sample, error));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Waits for the reads that are still in flight, whose results are not needed any more.
    fn drain(&mut self) {
        let (started, mut ended) = (Instant::now(), Vec::new());
        while self.engine.in_flight() > 0 && started.elapsed() < READ_TIMEOUT {
            if self.engine.wait(WAIT_SLICE, &mut ended).is_err() {
                break;
            }
        }
        ended.into_iter().for_each(|completion| self.pool.give(completion.buffer));
    }
}
