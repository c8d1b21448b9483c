//! One thread's use of what prepares pictures elsewhere.

use super::pictures::Pictures;
use super::{BatchProgress, CpuPreparer, nanoseconds};
use crate::gpu_use::NotOffloaded;
use crate::{BatchMemory, Error, Finished, Offload};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_kernels::{Encoded, Interrupt, SampleId, contain_panic};
use std::time::{Duration, Instant};

/// What prepares pictures elsewhere, and what the batch in hand has there.
#[derive(Debug)]
pub(super) struct Offloading {
    offload: Box<dyn Offload>,
    /// Whether samples are offered: not while those that were given back are prepared.
    offers: bool,
    /// Positions of the samples of the batch that were taken.
    taken: Vec<usize>,
    /// Whether taking a sample panicked: all of the batch are then prepared here.
    is_poisoned: bool,
    /// Time that this thread spent on the other samples of the batch.
    own: Duration,
}

impl Offloading {
    pub(super) fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.offload.set_interrupt(interrupt);
    }
}

impl CpuPreparer {
    /// Lets something else prepare some of the samples, where their pictures have fixed sizes and
    /// are stored as encoded files: [`CpuPreparer::can_offload`].
    ///
    /// # Panics
    ///
    /// Where it cannot.
    pub fn set_offload(&mut self, mut offload: Box<dyn Offload>) {
        assert!(self.can_offload(), "pictures of this job can be prepared elsewhere");
        offload.set_interrupt(self.interrupt.clone());
        self.offload = Some(Offloading {
            offload,
            offers: true,
            taken: Vec::new(),
            is_poisoned: false,
            own: Duration::default(),
        });
    }

    /// Whether pictures can be prepared elsewhere: they have fixed sizes, no target moves with
    /// them, and all of their operations are executed here.
    pub fn can_offload(&self) -> bool {
        self.why_not_offloaded().is_none()
    }

    /// Why pictures cannot be prepared elsewhere; `None`: they can.
    pub fn why_not_offloaded(&self) -> Option<NotOffloaded> {
        let reasons = [
            (!self.table.has_images(), NotOffloaded::NoPictures),
            (!self.pictures.are_fixed(), NotOffloaded::VariableSize),
            (self.table.has_targets(), NotOffloaded::Targets),
            (self.resumer.is_some(), NotOffloaded::PreparedOffline),
            (self.cached.is_some(), NotOffloaded::Cached),
        ];
        reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
    }

    /// The prepared columns of the recipe, by their indices in
    /// [`Recipe::images`](meetpoint_format::recipe::Recipe::images), in the order of the batch.
    pub(crate) fn columns_of_recipe(&self) -> Vec<usize> {
        Pictures::of_recipe(self.table.columns())
    }

    /// Whether the operations of the recipe on batches need every tensor in host memory.
    pub(crate) fn mixes_batches(&self) -> bool {
        self.job.recipe.mixes_tensors()
    }

    pub(super) fn begin_offload(&mut self, memory: &mut dyn BatchMemory) -> Result<(), Error> {
        let on_gpu = memory.on_gpu();
        let may_stay = on_gpu.is_some() && !self.mixes_batches();
        on_gpu.into_iter().for_each(|tensors| *tensors = None);
        let Some(offloading) = &mut self.offload else { return Ok(()) };
        (offloading.offers, offloading.is_poisoned) = (true, false);
        offloading.taken.clear();
        offloading.own = Duration::default();
        offloading.offload.begin(self.samples.len(), may_stay)
    }

    /// Offers a sample, whose other columns were read already; `true` if it is taken.
    pub(super) fn offload_sample(
        &mut self,
        position: usize,
        (sample, location): (u64, &SampleLocation),
        (stored, id): (&[u8], SampleId),
        progress: &mut BatchProgress<'_>,
    ) -> Result<bool, Error> {
        // A replacement is prepared at once: whether it is sound decides which sample it is.
        let is_in_order = self.samples[position].0 == sample;
        let Some(offloading) = self.offload.as_mut().filter(|it| it.offers && is_in_order) else {
            return Ok(false);
        };
        let entry_points = location.entry_points.as_ref().map_or(&[][..], AsRef::as_ref);
        let encoded = Encoded { bytes: stored, entry_points, crc32c: Some(location.crc32c) };
        match contain_panic(|| offloading.offload.take(position, encoded, id)) {
            Ok(taken) => {
                if !taken? {
                    return Ok(false);
                }
            }
            Err(_) => {
                // The content of the batch is no longer known. This thread prepares its samples.
                (offloading.offers, offloading.is_poisoned) = (false, true);
                return Ok(false);
            }
        }
        offloading.taken.push(position);
        progress.stats.samples += 1;
        progress.stats.bytes_read += stored.len() as u64;
        Ok(true)
    }

    /// Adds the time of a sample prepared here, and asks whether those elsewhere are done.
    pub(super) fn note_own(&mut self, spent: Duration) {
        if let Some(offloading) = &mut self.offload {
            offloading.own += spent;
            offloading.offload.poll();
        }
    }

    /// Receives the tensors that were prepared elsewhere, and prepares the samples given back.
    pub(super) fn finish_offload(&mut self, progress: &mut BatchProgress<'_>) -> Result<(), Error> {
        let Some(offloading) = self.offload.as_mut().filter(|it| !it.taken.is_empty()) else {
            return Ok(());
        };
        let started = Instant::now();
        let columns = &mut self.pictures.tensors(self.samples.len(), progress.memory.bytes_mut());
        let own_ns = nanoseconds(offloading.own);
        let Finished { given_back, resident } = match offloading.is_poisoned {
            true => std::mem::take(&mut offloading.taken).into(),
            false => offloading.offload.finish(columns, own_ns)?,
        };
        if resident.is_some() {
            let place = progress.memory.on_gpu();
            *place.expect("tensors stay only where the memory allows it") = resident;
        }
        progress.stats.compute_ns += nanoseconds(started.elapsed());
        offloading.offers = false;
        for position in given_back {
            progress.stats.samples -= 1;
            progress.ask()?;
            let (sample, location) = self.samples[position].clone();
            let outcome = self.read_and_decode_into(position, (sample, &location), progress);
            outcome.or_else(|error| self.replace_damaged(position, error, progress))?;
        }
        Ok(())
    }
}
