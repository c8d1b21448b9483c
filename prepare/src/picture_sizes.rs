//! Heights and widths of the pictures of a dataset.

/// Heights and widths of the pictures of a dataset, as in their files, before rotation by Exif
/// orientation. Takes 8 bytes for each sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureSizes {
    /// By sample; (0, 0) if the file does not state the size.
    pub(crate) sizes: Vec<(u32, u32)>,
}

impl PictureSizes {
    /// Height and width of the picture of a sample; `None` if its file is damaged.
    pub fn of(&self, sample: u64) -> Option<(u32, u32)> {
        let size = self.sizes.get(usize::try_from(sample).ok()?)?;
        (*size != (0, 0)).then_some(*size)
    }

    /// Height and width for every sample, in order.
    pub fn all(&self) -> impl ExactSizeIterator<Item = Option<(u32, u32)>> {
        self.sizes.iter().map(|size| (*size != (0, 0)).then_some(*size))
    }
}
