//! Sizes of pictures, read from the beginnings of their files, and the maximum sizes in batches.

use crate::picture_sizes::PictureSizes;
use crate::{Dataset, Error};
use meetpoint_format::column::Collate;
use meetpoint_format::recipe::{Images, Recipe};
use meetpoint_kernels::{Interrupt, probe};
use std::sync::Arc;

/// Bytes of a file that are read first, and those that are read next if the first do not contain
/// the size. The third read is the whole file.
const BEGINNING_BYTES: [u64; 2] = [4 << 10, 128 << 10];

/// Samples between two calls of `watch`.
const WATCHED_EVERY: u64 = 256;

impl Dataset {
    /// The sizes of all pictures. The first call reads the beginning of each file, and calls
    /// `watch` at intervals with the number of samples read and the total; `false` ends it with
    /// [`Error::Interrupted`].
    ///
    /// Files that cannot be read are errors; those that are not pictures have no size.
    pub fn picture_sizes(
        &self,
        watch: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Arc<PictureSizes>, Error> {
        if let Some(sizes) = self.picture_sizes.get() {
            return Ok(Arc::clone(sizes));
        }
        if self.manifest().prepared().is_some() {
            return Err(Error::NoPictureSizes { path: self.path().to_path_buf() });
        }
        self.read_footers()?;
        let samples = self.len();
        let mut sizes = Vec::with_capacity(usize::try_from(samples).unwrap_or(0));
        let mut buffer = Vec::new();
        for sample in 0..samples {
            if sample % WATCHED_EVERY == 0 && !watch(sample, samples) {
                return Err(Error::Interrupted);
            }
            sizes.push(self.picture_size(sample, &mut buffer)?.unwrap_or((0, 0)));
        }
        watch(samples, samples);
        let sizes = Arc::new(PictureSizes { sizes });
        Ok(Arc::clone(self.picture_sizes.get_or_init(|| sizes)))
    }

    /// Height and width of one picture; `None` if the file does not state them.
    fn picture_size(&self, sample: u64, buffer: &mut Vec<u8>) -> Result<Option<(u32, u32)>, Error> {
        let location = self.locate(sample)?;
        let first = BEGINNING_BYTES.into_iter().filter(|bytes| *bytes < location.bytes);
        for bytes in first.chain([location.bytes]) {
            buffer.resize(usize::try_from(bytes).expect("at most IMAGE_BYTES_MAX"), 0);
            self.read_image(sample, &location, buffer)?;
            if let Ok(info) = probe(buffer) {
                return Ok(Some((info.height, info.width)));
            }
        }
        Ok(None)
    }

    /// Maximum height and width of the pictures of each column of [`Recipe::images`] in a batch
    /// that `collate` combines: from its `max_size`, from the operations, or from these and the
    /// sizes of all pictures of the dataset, which are then read.
    pub(crate) fn picture_limits(
        &self,
        recipe: &Recipe,
        collate: Collate,
        interrupt: &Interrupt,
    ) -> Result<Vec<(u32, u32)>, Error> {
        let limit = |images: &Images| {
            if let Some(size) = collate.max_size().or_else(|| images.sizes(None).limit()) {
                return Ok(collate.rounded(size));
            }
            let sizes = self.picture_sizes(&mut |_, _| interrupt.check().is_ok())?;
            let mut most = (1, 1);
            for size in sizes.all().flatten() {
                let (height, width) = images.sizes(Some(size)).most;
                most = (most.0.max(height), most.1.max(width));
            }
            Ok(collate.rounded(most))
        };
        recipe.images().iter().map(limit).collect()
    }
}
