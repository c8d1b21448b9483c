//! Delivers batches to the device, one after another.

use super::batch::DeviceBatch;
use super::conversion::{Conversion, Loaded, Pixels, round_to_bfloat16};
use super::idle::Idle;
use super::limits::{DeliveryError, DeliveryLimits, END_AFTER, HUNG_AFTER};
use super::mixing::Mixing;
use super::pool::{Pool, PoolSlot, Release, Usage};
use super::staging::Staging;
use super::streams::{Consumers, Event, Streams};
use crate::compute::END_AFTER_STOP;
use crate::resident::ResidentPart;
use crate::{DeviceMemory, Error};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of batches whose times are yet to be measured. If there are more, the oldest are
/// not measured.
const UNMEASURED_MAX: usize = 64;

/// A contiguous part of a batch, such as a column.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// The bytes in host memory; undefined at the positions of `resident`.
    pub bytes: &'a [u8],
    /// Tensors of the piece that are already on the device.
    pub resident: Option<ResidentPart<'a>>,
    /// Whether a [`PageLock`](crate::PageLock) covers all of them, so that they are copied
    /// directly.
    pub is_locked: bool,
    /// Where they are written.
    pub target: Target,
    /// Mixes of its tensors with one another, after their conversion.
    pub mixing: Option<Mixing<'a>>,
}

impl<'a> Piece<'a> {
    /// Bytes in host memory that are not page-locked, and tensors that are not mixed.
    pub fn new(bytes: &'a [u8], target: Target) -> Self {
        Self { bytes, resident: None, is_locked: false, target, mixing: None }
    }

    /// The ranges of its bytes that are in host memory.
    fn host_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let (none, bytes) = (self.resident.is_none(), self.bytes.len());
        let others = self.resident.iter().flat_map(move |tensors| tensors.others(bytes));
        others.chain(none.then_some(0..bytes))
    }
}

/// Where a piece is written in the memory of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Copied unchanged to an offset.
    Copied {
        /// Offset of the first byte.
        offset: usize,
    },
    /// Pictures, converted to elements.
    Converted {
        /// Offset of the first element in bytes; a multiple of 16.
        offset: usize,
        /// Index of the conversion.
        conversion: usize,
        /// Pixels of a picture.
        plane: u32,
        /// Pictures.
        samples: u32,
        /// Whether the elements are float32 until they are mixed, and are then rounded to
        /// bfloat16.
        is_rounded: bool,
    },
}

impl Target {
    /// Offset of the first byte or element.
    pub fn offset(&self) -> usize {
        match self {
            Self::Copied { offset } | Self::Converted { offset, .. } => *offset,
        }
    }
}

/// Statistics of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delivered {
    /// Batches whose copy was started.
    pub batches: u64,
    /// Bytes copied to the device.
    pub bytes: u64,
    /// Of `bytes`, those copied directly from their page-locked memory, without staging.
    pub direct_bytes: u64,
    /// Bytes of tensors that were already on the device, not included in `bytes`.
    pub resident_bytes: u64,
    /// Time of the copies on the device, of `measured` batches.
    pub transfer_ns: u64,
    /// Time of the conversions and mixes on the device, of `measured` batches.
    pub convert_ns: u64,
    /// Batches whose times are included.
    pub measured: u64,
    /// Time that the host waited for copies, to reuse or release the memory that they read.
    pub staging_wait_ns: u64,
    /// Time that the host waited for memory of the device.
    pub memory_wait_ns: u64,
    /// Time that the consumer's stream was idle while it waited for a batch, of `idle_measured`
    /// batches.
    pub idle_ns: u64,
    /// Batches for which the idle time is known. It is known only if the consumer's stream is.
    pub idle_measured: u64,
    /// Page-locked memory.
    pub pinned_bytes: u64,
    /// Device memory allocated by the delivery.
    pub device_bytes: u64,
    /// Peak of `device_bytes`.
    pub device_bytes_max: u64,
    /// Batches that the consumer holds or that are being delivered.
    pub in_use: u32,
    /// Allocations of memory for batches.
    pub allocations: u64,
}

/// Three points in the work for a batch.
struct Times<E> {
    begun: E,
    copied: E,
    ready: Arc<E>,
    /// Whether tensors were converted or mixed between the last two.
    is_computed: bool,
}

/// Offsets in the scratch memory for a piece that is converted.
struct ScratchOffsets {
    /// Of the pixels.
    pixels: usize,
    /// Of the elements, if they are rounded later.
    elements: usize,
}

/// Delivers batches to a device.
pub struct Delivery<S: Streams> {
    /// Declared first: the others may only be freed after the work that it has.
    streams: S,
    conversions: Vec<Loaded>,
    staging: Staging<S::Event>,
    pool: Arc<Pool<S::Event>>,
    idle: Arc<Idle<S::Event>>,
    /// Pictures before their conversion, and elements before they are rounded. One is enough: all
    /// work is in one order.
    scratch: Option<DeviceMemory>,
    limits: DeliveryLimits,
    unmeasured: VecDeque<Times<S::Event>>,
    sums: Delivered,
    /// A request to stop has ended a wait. Later waits use [`END_AFTER_STOP`].
    is_stopped: bool,
}

impl<S: Streams> std::fmt::Debug for Delivery<S> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sums = &self.sums;
        formatter.debug_struct("Delivery").field("sums", sums).finish_non_exhaustive()
    }
}

impl<S: Streams> Delivery<S> {
    /// A delivery to a device. Pieces refer to the conversions by index.
    pub fn new(
        streams: S,
        conversions: &[Conversion],
        limits: DeliveryLimits,
    ) -> Result<Self, Error> {
        Self::new_unless(streams, conversions, limits, &|| false)
    }

    /// Like [`Self::new`], but a request to stop ends the waits for the first kernels with
    /// [`Error::Stopped`].
    pub fn new_unless(
        mut streams: S,
        conversions: &[Conversion],
        limits: DeliveryLimits,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let loaded = conversions.iter().map(|it| Loaded::new(it, &mut streams, is_stopped));
        let conversions = loaded.collect::<Result<_, _>>()?;
        Ok(Self {
            conversions,
            staging: Staging::new(limits.staging_bytes),
            pool: Arc::new(Pool::new(limits.device_bytes, limits.buffers)),
            idle: Arc::new(Idle::new()),
            scratch: None,
            limits,
            unmeasured: VecDeque::new(),
            sums: Delivered::default(),
            is_stopped: false,
            streams,
        })
    }

    /// The device's streams.
    pub fn streams(&mut self) -> &mut S {
        &mut self.streams
    }

    /// Whether a batch of `bytes` bytes can be delivered without waiting for a consumer.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.pool.has_room(bytes)
    }

    /// Starts the copy and the conversion of a batch of `bytes` bytes on the device. When this
    /// returns, the pieces have been read; it waits for direct copies.
    pub fn deliver(
        &mut self,
        pieces: &[Piece<'_>],
        bytes: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<DeviceBatch<S>, DeliveryError> {
        self.measure()?;
        let memory = self.take(bytes, is_stopped);
        let memory = self.noted(memory)?;
        let filled = self.fill(pieces, &memory, is_stopped);
        match self.noted(filled) {
            Ok(ready) => {
                let (pool, idle) = (Arc::clone(&self.pool), Arc::clone(&self.idle));
                let (consumers, number) = (self.streams.consumers(), self.sums.batches);
                Ok(DeviceBatch::new(memory, ready, consumers, pool, idle, number))
            }
            Err(error) => {
                if pieces.iter().any(|piece| piece.is_locked) {
                    // A device that failed reads nothing, and pages that one reads stay locked.
                    drop(self.streams.wait(self.end_after()));
                }
                // Work that was started may still write to it.
                self.pool.give_back(Release { memory, after: Vec::new(), is_unknown: true });
                Err(error)
            }
        }
    }

    /// Waits until the content of a batch is complete. A request to stop ends the wait at once.
    pub fn wait_for(
        &mut self,
        batch: &DeviceBatch<S>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), DeliveryError> {
        let waited = batch.ready().wait_unless(HUNG_AFTER, is_stopped);
        self.noted(waited.map_err(DeliveryError::from))
    }

    /// Returns the result unchanged; remembers whether it is a request to stop.
    fn noted<T>(&mut self, result: Result<T, DeliveryError>) -> Result<T, DeliveryError> {
        self.is_stopped |= matches!(result, Err(DeliveryError::Stopped));
        result
    }

    /// How long to wait for work before its memory is freed. Memory of work that is still not done
    /// is never freed.
    fn end_after(&self) -> Duration {
        if self.is_stopped { END_AFTER_STOP } else { END_AFTER }
    }

    /// The consumer asks for a batch: the work that it has given to the stream of the latest export
    /// is all that its GPU has to do until it gets one.
    pub fn note_asked(&self) {
        self.idle.asked(&self.streams.consumers());
    }

    /// Records that the consumer receives the requested batch.
    pub fn note_handed(&self, batch: &DeviceBatch<S>) {
        self.idle.handed(batch.ready());
    }

    /// Memory that may be overwritten by work that follows.
    fn take(
        &mut self,
        bytes: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<DeviceMemory, DeliveryError> {
        let since = Instant::now();
        let taken = self.pool.take(bytes, is_stopped, self.limits.wait);
        self.sums.memory_wait_ns += nanoseconds(since.elapsed());
        match taken? {
            PoolSlot::Free(release) => match self.begin_after(&release, is_stopped) {
                Ok(()) => Ok(release.memory),
                Err(error) => {
                    // Consumers may still use the memory, so the next user has to wait as well.
                    self.pool.give_back(release);
                    Err(error.into())
                }
            },
            PoolSlot::Allocate(bytes) => {
                let allocated = self.streams.allocate(bytes);
                Ok(allocated.inspect_err(|_| self.pool.not_allocated(bytes))?)
            }
        }
    }

    /// Makes later work begin after the work of the consumers on released memory.
    fn begin_after(
        &mut self,
        release: &Release<S::Event>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        if release.is_unknown {
            self.streams.consumers().settle(HUNG_AFTER, is_stopped)?;
        }
        release.after.iter().try_for_each(|event| self.streams.wait_for(event))
    }

    fn fill(
        &mut self,
        pieces: &[Piece<'_>],
        to: &DeviceMemory,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Arc<S::Event>, DeliveryError> {
        let begun = self.streams.record()?;
        let mut scratch_bytes = 0;
        let mut reserve = |bytes: usize| {
            let offset = scratch_bytes;
            scratch_bytes += bytes.next_multiple_of(256);
            offset
        };
        let mut places = Vec::new();
        for piece in pieces {
            if let Target::Converted { is_rounded, .. } = piece.target {
                let pixels = reserve(piece.bytes.len());
                let elements = if is_rounded { reserve(4 * piece.bytes.len()) } else { 0 };
                places.push(ScratchOffsets { pixels, elements });
            }
        }
        if !places.is_empty() {
            // Also for pictures of an empty batch.
            self.reserve_scratch(scratch_bytes.max(1), is_stopped)?;
        }
        let scratch = self.scratch.as_ref();
        let scratch = || scratch.expect("it is reserved for pieces that are converted");
        let mut place = places.iter();
        for piece in pieces {
            let (memory, offset) = match piece.target {
                Target::Copied { offset } => (to, offset),
                Target::Converted { .. } => {
                    (scratch(), place.next().expect("each has places").pixels)
                }
            };
            for range in piece.host_ranges() {
                let (bytes, offset) = (&piece.bytes[range.clone()], offset + range.start);
                if piece.is_locked {
                    self.streams.upload(bytes, memory, offset)?;
                    self.sums.direct_bytes += bytes.len() as u64;
                } else {
                    self.staging.copy(&mut self.streams, bytes, memory, offset, is_stopped)?;
                }
                self.sums.bytes += bytes.len() as u64;
            }
            if let Some(tensors) = piece.resident {
                let bytes = tensors.copy_to(&mut self.streams, memory, offset)?;
                self.sums.resident_bytes += bytes as u64;
            }
        }
        let copied = self.streams.record()?;
        let mut place = places.iter();
        for piece in pieces {
            // Where the elements are mixed.
            let (memory, at) = match piece.target {
                Target::Copied { offset } => (to, offset),
                Target::Converted { offset, conversion, plane, samples, is_rounded } => {
                    let ScratchOffsets { pixels, elements } = *place.next().expect("as above");
                    let (from, from_offset) = (scratch(), pixels);
                    let (to, to_offset) =
                        if is_rounded { (scratch(), elements) } else { (to, offset) };
                    let pixels = Pixels { from, from_offset, to, to_offset, plane, samples };
                    self.conversions[conversion].launch(&mut self.streams, &pixels)?;
                    (to, to_offset)
                }
            };
            if let Some(mixing) = &piece.mixing {
                mixing.launch(&mut self.streams, (memory, at), to)?;
            }
            if let Target::Converted { offset, is_rounded: true, .. } = piece.target {
                let (from, to) = ((memory, at), (to, offset));
                round_to_bfloat16(&mut self.streams, from, to, piece.bytes.len())?;
            }
        }
        let ready = Arc::new(self.streams.record()?);
        if pieces.iter().any(|piece| piece.is_locked) {
            self.staging.wait(&copied, is_stopped)?;
        }
        self.sums.batches += 1;
        if self.unmeasured.len() == UNMEASURED_MAX {
            self.unmeasured.pop_front();
        }
        self.unmeasured.push_back(Times {
            begun,
            copied,
            ready: Arc::clone(&ready),
            is_computed: !places.is_empty() || pieces.iter().any(|piece| piece.mixing.is_some()),
        });
        Ok(ready)
    }

    fn reserve_scratch(
        &mut self,
        bytes: usize,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        if self.scratch.as_ref().map_or(0, DeviceMemory::bytes) >= bytes {
            return Ok(());
        }
        // The work that reads the old memory ends before it is freed.
        self.streams.wait_unless(HUNG_AFTER, is_stopped)?;
        self.scratch = None;
        self.scratch = Some(self.streams.allocate(bytes)?);
        Ok(())
    }

    /// Adds the times of the batches whose work is done.
    fn measure(&mut self) -> Result<(), Error> {
        self.idle.measured()?;
        while let Some(times) = self.unmeasured.front() {
            if !times.ready.is_done()? {
                break;
            }
            self.sums.transfer_ns += nanoseconds(times.copied.since(&times.begun)?);
            if times.is_computed {
                self.sums.convert_ns += nanoseconds(times.ready.since(&times.copied)?);
            }
            self.sums.measured += 1;
            self.unmeasured.pop_front();
        }
        Ok(())
    }

    /// The statistics so far.
    pub fn delivered(&mut self) -> Result<Delivered, Error> {
        self.measure()?;
        let Usage { bytes, bytes_max, lent, allocations } = self.pool.usage();
        let own = self.scratch.as_ref().map_or(0, DeviceMemory::bytes) as u64;
        let (idle, idle_measured) = self.idle.measured()?;
        Ok(Delivered {
            idle_ns: nanoseconds(idle),
            idle_measured,
            staging_wait_ns: nanoseconds(self.staging.waited),
            pinned_bytes: self.staging.bytes(),
            device_bytes: bytes + own,
            device_bytes_max: bytes_max + own,
            in_use: lent,
            allocations,
            ..self.sums
        })
    }

    /// Channels of the pictures of a conversion.
    pub fn channels(&self, conversion: usize) -> u32 {
        self.conversions[conversion].channels()
    }
}

impl<S: Streams> Drop for Delivery<S> {
    fn drop(&mut self) {
        // Page-locked memory and pixels are read until all work is done. A device that failed
        // reads nothing.
        drop(self.streams.wait(self.end_after()));
        // Memory is freed once the work of the consumers has ended.
        drop(self.pool.wait_until_unused(&self.streams.consumers(), END_AFTER));
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
