//! Maps a dataset to extents of its block device, for devices that do not mount its file system.
//!
//! Nothing is written but the file of extents, and that only if every file stayed where it is.

use meetpoint_diagnose::{Change, Command, Diagnose, Remedy, Setting, shown};
use meetpoint_format::checksum::Crc32c;
use meetpoint_format::dataset::{
    DatasetExtents, EXTENTS_FORMAT, EXTENTS_VERSION, ExtentDevice, ExtentsError, FileExtent,
    FileExtents, MANIFEST_NAME,
};
use meetpoint_prepare::Dataset;
use meetpoint_storage::extents::{BlockDevice, DeviceRange, ExtentError, MappedFile, map_file};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes per read.
const READ_BYTES: usize = 1 << 20;

/// Why a dataset cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It cannot be opened.
    #[error(transparent)]
    Dataset(#[from] meetpoint_prepare::Error),
    /// A file is not in stable extents.
    #[error(transparent)]
    File(#[from] ExtentError),
    /// Its content is in files of its own.
    #[error("{}: its content stays in other files, which are not mapped", shown(path))]
    InPlace {
        /// Dataset folder.
        path: PathBuf,
    },
    /// Its files are on several devices.
    #[error("{} is on {device}, but {MANIFEST_NAME} is on {first}", shown(path))]
    Devices {
        /// File.
        path: PathBuf,
        /// Its device.
        device: String,
        /// The device of the manifest.
        first: String,
    },
    /// The manifest is not the one that was opened.
    #[error("{}: {MANIFEST_NAME} was replaced while the dataset was mapped", shown(path))]
    Replaced {
        /// Dataset folder.
        path: PathBuf,
    },
    /// A file cannot be read.
    #[error("failed to read {}: {source}", shown(path))]
    Read {
        /// File.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// What Linux reported is not a list of extents of the device.
    #[error("{}: the reported extents are impossible: {source}", shown(path))]
    Impossible {
        /// Dataset folder.
        path: PathBuf,
        /// Cause.
        source: ExtentsError,
    },
    /// The result cannot be written.
    #[error("failed to write {}: {source}", shown(path))]
    Write {
        /// File of extents.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file of extents exists.
    #[error("{} exists", shown(path))]
    Exists {
        /// File of extents.
        path: PathBuf,
    },
    /// The caller requested a stop.
    #[error("interrupted")]
    Interrupted,
}

impl Diagnose for MapError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Dataset(source) => source.cause(),
            Self::File(source) => source.cause(),
            Self::InPlace { .. } => "extents_in_place",
            Self::Devices { .. } => "several_block_devices",
            Self::Replaced { .. } => "file_changed",
            Self::Read { .. } => "input_output",
            Self::Impossible { .. } => "extents_invalid",
            Self::Write { .. } => "extents_not_written",
            Self::Exists { .. } => "destination_exists",
            Self::Interrupted => "interrupted",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Dataset(source) => source.remedy(),
            Self::File(source) => source.remedy(),
            Self::InPlace { .. } => Some(Remedy::run(Command::Pack)),
            Self::Devices { .. } => Some("copy the dataset to one file system".into()),
            Self::Replaced { .. } => Some(Remedy::run(Command::MapExtents)),
            Self::Impossible { .. } => Some("check the file system (fsck)".into()),
            Self::Write { .. } => Some("name a path in a folder that can be written".into()),
            Self::Exists { .. } => {
                let other = Remedy::advice("name another file");
                Some(other.or_by("replace it", Setting::Force, Change::On))
            }
            Self::Read { .. } | Self::Interrupted => None,
        }
    }
}

/// The extents of a dataset: of `dataset.json` and of every part, with checksums of their bytes.
///
/// Reads every file once. `progress` receives the bytes that were read, and those of all files.
/// Fails if a file is not in stable extents, or changes meanwhile.
pub fn map_extents(
    folder: &Path,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<DatasetExtents, MapError> {
    let dataset = Dataset::open(folder)?;
    if dataset.manifest().is_in_place() {
        return Err(MapError::InPlace { path: folder.to_path_buf() });
    }
    let manifest_sha256 = dataset.manifest_sha256();
    let parts = (0..dataset.manifest().parts.len()).map(|part| dataset.part_path(part));
    let paths = std::iter::once(folder.join(MANIFEST_NAME)).chain(parts);
    let mapped = paths.map(|path| map_file(&path)).collect::<Result<Vec<_>, _>>()?;
    let device = mapped[0].device();
    if let Some(other) = mapped.iter().find(|file| file.device() != device) {
        let (path, name) = (other.path().to_path_buf(), other.device().name.clone());
        return Err(MapError::Devices { path, device: name, first: device.name.clone() });
    }
    let total = mapped.iter().map(MappedFile::bytes).sum();
    let mut done = 0;
    let mut sums = Sums {
        stop,
        read: &mut |bytes| {
            done += bytes;
            progress(done, total);
        },
    };
    let mut files = Vec::with_capacity(mapped.len());
    for file in &mapped {
        let (extents, sha256) = sums.of(file)?;
        if files.is_empty() && sha256 != manifest_sha256 {
            return Err(MapError::Replaced { path: folder.to_path_buf() });
        }
        // What was read is what is in the extents only if neither changed meanwhile.
        file.check_unchanged()?;
        let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push(FileExtents { file: name, bytes: file.bytes(), extents });
    }
    let extents = DatasetExtents {
        format: EXTENTS_FORMAT.to_owned(),
        version: EXTENTS_VERSION,
        manifest_sha256: manifest_sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
        device: described(device),
        files,
    };
    let path = || folder.to_path_buf();
    extents.check().map_err(|source| MapError::Impossible { path: path(), source })?;
    Ok(extents)
}

fn described(device: &BlockDevice) -> ExtentDevice {
    let BlockDevice { name, bytes, block_bytes, drive, drive_bytes, partition_offset } =
        device.clone();
    ExtentDevice { name, bytes, block_bytes, drive, drive_bytes, partition_offset }
}

/// Computes checksums of files.
struct Sums<'a> {
    stop: &'a AtomicBool,
    read: &'a mut dyn FnMut(u64),
}

impl Sums<'_> {
    /// The extents of a file with their checksums, and the SHA-256 of a manifest. Reads through the
    /// page cache, which is equal to the device after the file was synced.
    fn of(&mut self, file: &MappedFile) -> Result<(Vec<FileExtent>, [u8; 32]), MapError> {
        let (mut buffer, mut at) = (vec![0; READ_BYTES], 0);
        let mut sha256 = Sha256::new();
        let is_manifest = file.path().ends_with(MANIFEST_NAME);
        let mut extents = Vec::with_capacity(file.ranges().len());
        for &DeviceRange { offset, bytes } in file.ranges() {
            let (mut crc, end) = (Crc32c::default(), at + bytes);
            while at < end {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(MapError::Interrupted);
                }
                let length = usize::try_from(end - at).map_or(READ_BYTES, |it| it.min(READ_BYTES));
                let into = &mut buffer[..length];
                file.file()
                    .read_exact_at(into, at)
                    .map_err(|source| MapError::Read { path: file.path().to_path_buf(), source })?;
                crc.update(into);
                if is_manifest {
                    sha256.update(&*into);
                }
                at += length as u64;
                (self.read)(length as u64);
            }
            extents.push(FileExtent { offset, bytes, crc32c: crc.finish() });
        }
        Ok((extents, sha256.finalize().into()))
    }
}

/// Writes a file of extents, whole or not at all. Replaces a file only if `force`.
pub fn write_extents(path: &Path, extents: &DatasetExtents, force: bool) -> Result<(), MapError> {
    if !force && path.exists() {
        return Err(MapError::Exists { path: path.to_path_buf() });
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".partial");
    let temporary = PathBuf::from(temporary);
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(&extents.to_json())?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|source| {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&temporary);
        MapError::Write { path: path.to_path_buf(), source }
    })
}
