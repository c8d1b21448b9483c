//! A dataset by its extents on a block device, read without mounting the file system.
//!
//! Nothing outside of the declared extents is requested of the device, and nothing is written.

use crate::Error;
use crate::ExtentFolderError;
use meetpoint_format::checksum::Crc32c;
use meetpoint_format::dataset::{
    DatasetExtents, EXTENTS_BYTES_MAX, ExtentDevice, FileExtents, MANIFEST_BYTES_MAX, Manifest,
};
use meetpoint_kernels::Interrupt;
use meetpoint_storage::extents::{DeviceRange, ExtentFile, ExtentFiles, ExtentReader, block_bytes};
use meetpoint_storage::files::read_regular;
use meetpoint_storage::{EngineKind, Error as StorageError};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are read at once when extents are checked.
const CHECK_BYTES: usize = 1 << 20;

/// The files of a dataset as extents of a block device.
#[derive(Debug)]
pub struct ExtentFolder {
    /// The file of extents; the names of the parts are below it.
    path: PathBuf,
    block: PathBuf,
    extents: DatasetExtents,
    /// Offset on `block` of the device that the extents refer to.
    begin: u64,
    sha256: [u8; 32],
    files: ExtentFiles,
    reader: ExtentReader,
}

impl ExtentFolder {
    /// Opens a file of extents, and `block`: the device that they are on, the drive of which this
    /// is a partition, an image of either, or the NVMe namespace (`/dev/ng0n1`). The length of
    /// `block` tells a drive from a partition.
    ///
    /// `kind` is the engine that reads metadata; a namespace is always read by NVMe commands. With
    /// [`EngineKind::Spdk`], `block` can be a device of SPDK.
    ///
    /// Fails if `dataset.json` is not where the extents say.
    pub fn open(path: &Path, block: &Path, kind: EngineKind) -> Result<Self, Error> {
        let failed = |source| Error::Extents { path: path.to_path_buf(), source: Box::new(source) };
        let text = read_regular(path, EXTENTS_BYTES_MAX)
            .map_err(|source| failed(ExtentFolderError::Read(source)))?;
        let extents = DatasetExtents::from_json(&text)
            .map_err(|source| failed(ExtentFolderError::Extents(source)))?;
        let sha256 = extents.manifest_sha256().expect("it was checked");
        let bytes =
            block_bytes(kind, block).map_err(|source| failed(ExtentFolderError::Block(source)))?;
        let begin = beginning(&extents.device, bytes).ok_or_else(|| {
            let (block, device) = (block.to_path_buf(), extents.device.clone());
            failed(ExtentFolderError::Length { block, bytes, device })
        })?;
        let file = |file: &FileExtents| {
            let ranges = file.extents.iter();
            let ranges =
                ranges.map(|it| DeviceRange { offset: begin + it.offset, bytes: it.bytes });
            let opened = ExtentFile::new(block.to_path_buf(), ranges.collect());
            (path.join(&file.file), Arc::new(opened.expect("the extents were checked")))
        };
        let files: ExtentFiles = extents.files.iter().map(file).collect();
        let reader = ExtentReader::new(kind, block, files.clone())
            .map_err(|source| failed(ExtentFolderError::Block(source)))?;
        let (path, block) = (path.to_path_buf(), block.to_path_buf());
        let folder = Self { path, block, extents, begin, sha256, files, reader };
        folder.manifest()?;
        Ok(folder)
    }

    /// The file of extents.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The block device that is read.
    pub fn block(&self) -> &Path {
        &self.block
    }

    /// The name of the engine that reads the extents.
    pub fn engine(&self) -> &'static str {
        self.reader.engine()
    }

    /// Offset in bytes on [`Self::block`] of the device that the extents refer to: 0 unless the
    /// block device is a drive and the extents refer to a partition.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The extents.
    pub fn extents(&self) -> &DatasetExtents {
        &self.extents
    }

    /// SHA-256 of `dataset.json`.
    pub fn manifest_sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// The files, by their names below [`Self::path`].
    pub(crate) fn files(&self) -> &ExtentFiles {
        &self.files
    }

    fn failed(&self, source: ExtentFolderError) -> Error {
        Error::Extents { path: self.path.clone(), source: Box::new(source) }
    }

    /// Reads `dataset.json` and compares it with its SHA-256.
    pub(crate) fn manifest(&self) -> Result<Vec<u8>, Error> {
        let bytes = self.extents.files[0].bytes;
        if bytes > MANIFEST_BYTES_MAX {
            return Err(self.failed(ExtentFolderError::ManifestTooLong { bytes }));
        }
        let mut text = vec![0; usize::try_from(bytes).expect("at most 256 MiB")];
        self.read_exact_at(0, 0, &mut text)?;
        let got: [u8; 32] = Sha256::digest(&text).into();
        match got == self.sha256 {
            true => Ok(text),
            false => {
                Err(self.failed(ExtentFolderError::OtherManifest { block: self.block.clone() }))
            }
        }
    }

    /// Compares the extents with a manifest: the same parts of the same lengths.
    pub(crate) fn check_parts(&self, manifest: &Manifest) -> Result<(), Error> {
        if manifest.is_in_place() {
            return Err(self.failed(ExtentFolderError::InPlace));
        }
        let listed = self.extents.parts().iter().map(|part| (&*part.file, part.bytes));
        match listed.eq(manifest.parts.iter().map(|part| (&*part.file, part.bytes))) {
            true => Ok(()),
            false => Err(self.failed(ExtentFolderError::OtherParts)),
        }
    }

    /// Reads bytes of a file: 0 is `dataset.json`, the parts follow.
    pub(crate) fn read_exact_at(
        &self,
        file: usize,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), StorageError> {
        let path = self.path.join(&self.extents.files[file].file);
        self.reader.read_exact_at(&path, offset, into)
    }

    /// Reads every extent and compares it with its checksum. `progress` receives the number of
    /// bytes read since the last call. Fails at the first one that differs.
    pub fn verify(&self, interrupt: &Interrupt, progress: &dyn Fn(u64)) -> Result<(), Error> {
        let mut buffer = vec![0; CHECK_BYTES];
        for (file, FileExtents { file: name, extents, .. }) in self.extents.files.iter().enumerate()
        {
            let mut at = 0;
            for (index, extent) in extents.iter().enumerate() {
                let (mut left, mut crc) = (extent.bytes, Crc32c::default());
                while left > 0 {
                    interrupt.check().map_err(|_| Error::Interrupted)?;
                    let bytes = usize::try_from(left).map_or(CHECK_BYTES, |it| it.min(CHECK_BYTES));
                    let into = &mut buffer[..bytes];
                    self.read_exact_at(file, at, into)?;
                    crc.update(into);
                    (at, left) = (at + bytes as u64, left - bytes as u64);
                    progress(bytes as u64);
                }
                let (got, expected) = (crc.finish(), extent.crc32c);
                if got != expected {
                    let (file, offset, bytes) = (name.clone(), extent.offset, extent.bytes);
                    return Err(self.failed(ExtentFolderError::Checksum {
                        file,
                        index,
                        offset,
                        bytes,
                        got,
                        expected,
                    }));
                }
            }
        }
        Ok(())
    }
}

/// Offset, on a block device of `bytes` bytes, of the device that extents refer to: 0 if it is that
/// device, the offset of the partition if it is the drive; `None` if it is neither.
fn beginning(device: &ExtentDevice, bytes: u64) -> Option<u64> {
    if bytes == device.bytes {
        return Some(0);
    }
    (bytes == device.drive_bytes).then_some(device.partition_offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_device_tells_whether_it_is_the_partition_or_the_drive() {
        let device = ExtentDevice {
            name: "sda1".to_owned(),
            bytes: 1000,
            block_bytes: 512,
            drive: "sda".to_owned(),
            drive_bytes: 5000,
            partition_offset: 512,
        };
        assert_eq!(beginning(&device, 1000), Some(0));
        assert_eq!(beginning(&device, 5000), Some(512));
        assert_eq!(beginning(&device, 1001), None);
    }
}
