//! Stored samples without a copy: the parts of a dataset mapped into memory.
//!
//! A part is written once, synced and renamed, and no command of this program shortens one. If
//! another program shortens a mapped part, the next access beyond its new end raises SIGBUS, which
//! ends the process: map only files that no process writes to, and use
//! [`SampleReader`](crate::SampleReader) for the rest.

use crate::{Dataset, Error, ExtentFolderError, RemoteRefusal};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_storage::ReadMapping;
use meetpoint_storage::files::open_regular;
use std::path::Path;
use std::sync::Arc;

/// Maps a part of this length.
fn map(path: &Path, bytes: u64) -> std::io::Result<ReadMapping> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    if length != bytes {
        let problem = format!("{length} bytes long, dataset.json says {bytes}");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, problem));
    }
    ReadMapping::new(&file, bytes)
}

/// A dataset whose parts are mapped into memory; uses address space, and memory only in the page
/// cache. It can be shared between threads.
///
/// ```
/// use meetpoint_prepare::{Dataset, MappedDataset};
/// use std::sync::Arc;
///
/// let dataset = Arc::new(Dataset::open("../datasets/tests/golden/version-3".as_ref())?);
/// let mapped = MappedDataset::new(Arc::clone(&dataset), false)?;
/// let (location, bytes) = mapped.sample(2)?;
/// assert_eq!(location, dataset.locate(2)?);
/// assert_eq!(bytes, dataset.read_sample(2)?);
/// # Ok::<(), meetpoint_prepare::Error>(())
/// ```
#[derive(Debug)]
pub struct MappedDataset {
    dataset: Arc<Dataset>,
    parts: Vec<ReadMapping>,
}

impl MappedDataset {
    /// Maps the parts. `is_sequential` advises the kernel whether to read ahead.
    ///
    /// A dataset in place is refused, because its files may change.
    pub fn new(dataset: Arc<Dataset>, is_sequential: bool) -> Result<Self, Error> {
        if let Some(root) = dataset.content_root() {
            return Err(Error::NotMapped { root: root.to_path_buf() });
        }
        if dataset.has_extents() {
            let (path, source) = (dataset.path().to_path_buf(), ExtentFolderError::NotMapped);
            return Err(Error::Extents { path, source: Box::new(source) });
        }
        if dataset.is_remote() {
            let (url, refusal) = (dataset.path().to_path_buf(), RemoteRefusal::NotMapped);
            return Err(Error::Remote { url, refusal });
        }
        let entries = &dataset.manifest().parts;
        let parts = (0..entries.len())
            .map(|part| {
                let path = dataset.part_path(part);
                let mapping = map(&path, entries[part].bytes)
                    .map_err(|source| Error::Content { path, source })?;
                mapping.advise_order(is_sequential);
                Ok(mapping)
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { dataset, parts })
    }

    /// The dataset.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// The stored bytes of a sample, in place, compared with their checksum.
    pub fn sample(&self, sample: u64) -> Result<(SampleLocation, &[u8]), Error> {
        let location = self.dataset.locate(sample)?;
        let start = usize::try_from(location.offset).expect("in memory");
        let bytes = usize::try_from(location.bytes).expect("in memory");
        // Offsets and mapping were checked against the length of the part.
        let stored = &self.parts[location.part].as_slice()[start..start + bytes];
        self.dataset.check_image(sample, &location, stored)?;
        Ok((location, stored))
    }
}
