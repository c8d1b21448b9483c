//! Whole pictures of a dataset, decoded within a limit of memory.

use crate::resume::SampleFailure;
use crate::{Dataset, DecodeMemory, Error, Reserved, picture_bytes};
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{Cpu, Picture, probe};
use std::sync::Arc;

impl Dataset {
    /// Decodes the stored picture of a sample, whole and to RGB. Also returns the reserved memory,
    /// of the picture and of this number of copies; a picture that needs more than the limit is
    /// refused.
    pub fn decode_picture(
        &self,
        sample: u64,
        copies: u64,
        memory: &Arc<DecodeMemory>,
    ) -> Result<(Picture, Option<Reserved>), Error> {
        let location = self.locate(sample)?;
        let place = (sample, &location);
        memory.check_stored(location.bytes).map_err(|why| self.too_large(place, why))?;
        let stored = self.read_located(sample, &location)?;
        let unprepared = |why| self.unprepared(place, SampleFailure::Picture(why));
        let info = probe(&stored).map_err(unprepared)?;
        let result = 3 * u64::from(info.width) * u64::from(info.height);
        let needed = picture_bytes(&stored).map_err(unprepared)?;
        let needed = needed.saturating_add(copies * result).saturating_add(stored.len() as u64);
        let reserved = memory.reserve(needed, &mut || true);
        let reserved = reserved.map_err(|_| self.too_large(place, memory.refusal(needed)))?;
        let mut picture = Picture::default();
        let mut decoder = Decoder::new(Cpu::detect());
        decoder.decode_into((&stored[..]).into(), None, &mut picture).map_err(unprepared)?;
        Ok((picture, reserved))
    }
}
