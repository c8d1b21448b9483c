//! The result of the damaged samples of a batch: an error, a gap that is closed, or another
//! sample.

use super::{BatchProgress, CpuPreparer};
use crate::{Action, BatchMemory, Damage, Error, Replacement};

impl CpuPreparer {
    /// Does what is to be done about a sample that could not be prepared. What is no damage of the
    /// sample stays an error.
    pub(super) fn replace_damaged(
        &mut self,
        position: usize,
        error: Error,
        progress: &mut BatchProgress<'_>,
    ) -> Result<(), Error> {
        if !error.is_damage() || self.job.on_error.always_raises() {
            return Err(error);
        }
        let (sample, location) = &self.samples[position];
        let damage = Damage::of(&self.job.dataset, progress.epoch, (*sample, location), &error);
        let replaced_by = match self.job.on_error.decide(&damage) {
            Action::Raise => return Err(error),
            Action::Skip => {
                progress.stats.samples += 1;
                progress.stats.left_out += 1;
                self.table.leave_out(position);
                None
            }
            Action::Replace => {
                let by = self.replace(position, error, progress)?;
                progress.stats.replaced += 1;
                Some(by)
            }
        };
        let position = u32::try_from(position).expect("a batch has less than 2^32 samples");
        self.replacements.push(Replacement { position, damage, replaced_by });
        Ok(())
    }

    /// Prepares the first sound candidate for the place of a damaged sample; returns which.
    fn replace(
        &mut self,
        position: usize,
        error: Error,
        progress: &mut BatchProgress<'_>,
    ) -> Result<u64, Error> {
        let sample = self.samples[position].0;
        let (_, order) = self.order.as_ref().expect("its samples were located");
        let order = order.clone();
        let mut tried = 0;
        for candidate in self.job.batching.replacements(&order, progress.epoch, sample) {
            progress.ask()?;
            let location = self.job.dataset.locate(candidate)?;
            let outcome = self.read_and_decode_into(position, (candidate, &location), progress);
            match outcome {
                Ok(()) => return Ok(candidate),
                Err(error) if error.is_damage() => tried += 1,
                Err(error) => return Err(error),
            }
        }
        Err(Error::NoReplacement { source: Box::new(error), tried })
    }

    /// Moves tensors up over the places of samples that were left out.
    pub(super) fn close_up(&self, memory: &mut dyn BatchMemory) {
        let is_left_out = |position: &usize| {
            let of_position = |it: &&Replacement| it.position as usize == *position;
            let replacement = self.replacements.iter().find(of_position);
            replacement.is_some_and(|replacement| replacement.replaced_by.is_none())
        };
        let samples = self.samples.len();
        let kept: Vec<usize> = (0..samples).filter(|it| !is_left_out(it)).collect();
        if kept.len() < samples {
            self.pictures.close_up(samples, &kept, memory.bytes_mut());
            let resident = memory.on_gpu().and_then(Option::as_mut);
            resident.into_iter().for_each(|tensors| tensors.close_up(&kept));
        }
    }
}
