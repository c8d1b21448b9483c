//! The extents of a file, if its bytes are in blocks of its own and stay there.

use super::device::BlockDevice;
use super::error::{ExtentError, Instability};
use super::fiemap::{self, Reported};
use super::file::DeviceRange;
use crate::files::{FileState, open_regular};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

/// `f_type` of ext2, ext3 and ext4, and of XFS: file systems whose extents are offsets on their
/// only block device. Those of btrfs and bcachefs are addresses in a space of their own, and F2FS
/// may use several devices.
const SUPPORTED: [u64; 2] = [0xef53, 0x5846_5342];

/// A file and its extents, when it was mapped.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    file: File,
    state: FileState,
    bytes: u64,
    device: BlockDevice,
    ranges: Vec<DeviceRange>,
}

/// Maps a file: syncs it, reads its extents, and checks that they are stable.
///
/// Fails if the file system is not supported, if any of its bytes is not in a block of its own
/// ([`Instability`]), or if the file changes meanwhile. The last range ends with the file.
pub fn map_file(path: &Path) -> Result<MappedFile, ExtentError> {
    let failed =
        |action| move |source| ExtentError::Io { path: path.to_path_buf(), action, source };
    let file = open_regular(path).map_err(failed("open it"))?;
    file.sync_all().map_err(failed("sync it"))?;
    let state = FileState::of(&file).map_err(failed("read its state"))?;
    let bytes = file.metadata().map_err(failed("read its length"))?.len();
    let statistics = rustix::fs::fstatfs(&file)
        .map_err(|errno| failed("ask for its file system")(errno.into()))?;
    // Signed in glibc, unsigned in musl.
    let magic = statistics.f_type as u64;
    if !SUPPORTED.contains(&magic) {
        return Err(ExtentError::FileSystem { path: path.to_path_buf(), magic });
    }
    let device = BlockDevice::of_file(&file).map_err(failed("describe its block device"))?;
    let device = device.filter(|_| !fiemap::is_realtime(&file));
    let device = device.ok_or_else(|| ExtentError::NoDevice { path: path.to_path_buf() })?;
    let ranges = read(path, &file, bytes, &device)?;
    let mapped = MappedFile { path: path.to_path_buf(), file, state, bytes, device, ranges };
    mapped.check_unchanged()?;
    Ok(mapped)
}

impl MappedFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The block device of its file system.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Its ranges of the device, in the order of the file; neighbours are merged.
    pub fn ranges(&self) -> &[DeviceRange] {
        &self.ranges
    }

    /// Fails if the file was written to since it was mapped, or was replaced, or if its blocks
    /// were moved. Call it after reading the file, so that what was read is what is in the extents.
    pub fn check_unchanged(&self) -> Result<(), ExtentError> {
        let failed =
            |action| move |source| ExtentError::Io { path: self.path.clone(), action, source };
        let changed = |what| Err(ExtentError::Changed { path: self.path.clone(), what });
        let named = open_regular(&self.path).map_err(failed("open it"))?;
        let inode = |file: &File| rustix::fs::fstat(file).map(|stat| (stat.st_dev, stat.st_ino));
        if inode(&named).ok() != inode(&self.file).ok() {
            return changed("the file of this name");
        }
        if FileState::of(&self.file).map_err(failed("read its state"))? != self.state {
            return changed("the file");
        }
        if read(&self.path, &self.file, self.bytes, &self.device)? != self.ranges {
            return changed("the position of its blocks");
        }
        Ok(())
    }
}

/// Reads and checks the extents of a file.
fn read(
    path: &Path,
    file: &File,
    bytes: u64,
    device: &BlockDevice,
) -> Result<Vec<DeviceRange>, ExtentError> {
    let reported = fiemap::read(file).map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::NOTSUP | Errno::NOTTY | Errno::BADR) => {
            ExtentError::NotSupported { path: path.to_path_buf() }
        }
        _ => ExtentError::Io { path: path.to_path_buf(), action: "read its extents", source },
    })?;
    let ranges = check(&reported, bytes, device.bytes).map_err(|problem| problem.of(path))?;
    Ok(ranges)
}

/// What is wrong with the extents of a file.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    Unstable { start: u64, end: u64, reason: Instability },
    OutOfRange { offset: u64, bytes: u64, device_bytes: u64 },
}

impl Problem {
    fn of(self, path: &Path) -> ExtentError {
        let path = path.to_path_buf();
        match self {
            Self::Unstable { start, end, reason } => {
                ExtentError::Unstable { path, start, end, reason }
            }
            Self::OutOfRange { offset, bytes, device_bytes } => {
                ExtentError::OutOfRange { path, offset, bytes, device_bytes }
            }
        }
    }
}

/// The ranges of a file of this length: from its first byte to its last, without a hole. Blocks
/// that are reserved after its end are left out.
fn check(
    reported: &[Reported],
    bytes: u64,
    device_bytes: u64,
) -> Result<Vec<DeviceRange>, Problem> {
    let mut ranges: Vec<DeviceRange> = Vec::new();
    let mut at = 0;
    for extent in reported {
        if at >= bytes {
            break;
        }
        if extent.logical != at {
            let end = extent.logical.min(bytes);
            return Err(Problem::Unstable { start: at, end, reason: Instability::Hole });
        }
        let taken = extent.bytes.min(bytes - at);
        if let Some(reason) = Instability::of_flags(extent.flags) {
            return Err(Problem::Unstable { start: at, end: at + taken, reason });
        }
        let (offset, length) = (extent.physical, extent.bytes);
        if offset.checked_add(length).is_none_or(|end| end > device_bytes) {
            return Err(Problem::OutOfRange { offset, bytes: length, device_bytes });
        }
        match ranges.last_mut() {
            Some(last) if last.end() == Some(offset) => last.bytes += taken,
            _ => ranges.push(DeviceRange { offset, bytes: taken }),
        }
        at += taken;
    }
    if at < bytes {
        return Err(Problem::Unstable { start: at, end: bytes, reason: Instability::Hole });
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::fiemap::flags;
    use super::*;

    const DEVICE: u64 = 1 << 30;

    fn extent(logical: u64, physical: u64, bytes: u64, flags: u32) -> Reported {
        Reported { logical, physical, bytes, flags }
    }

    #[test]
    fn neighbours_are_merged_and_the_last_range_ends_with_the_file() {
        let reported = [
            extent(0, 8192, 4096, 0),
            extent(4096, 12288, 4096, flags::MERGED),
            extent(8192, 1 << 20, 4096, flags::LAST),
            // Reserved after the end.
            extent(12288, 1 << 21, 4096, flags::UNWRITTEN),
        ];
        assert_eq!(
            check(&reported, 9000, DEVICE).unwrap(),
            [
                DeviceRange { offset: 8192, bytes: 8192 },
                DeviceRange { offset: 1 << 20, bytes: 808 }
            ]
        );
        assert_eq!(check(&[], 0, DEVICE).unwrap(), []);
    }

    #[test]
    fn every_flag_of_bytes_that_are_not_on_blocks_of_their_own_is_refused() {
        let cases = [
            (flags::UNKNOWN | flags::DELALLOC, Instability::Delayed),
            (flags::UNKNOWN, Instability::Unknown),
            (flags::ENCODED, Instability::Encoded),
            (flags::DATA_ENCRYPTED | flags::ENCODED, Instability::Encrypted),
            (flags::NOT_ALIGNED, Instability::Unaligned),
            (flags::NOT_ALIGNED | flags::DATA_INLINE, Instability::Inline),
            (flags::NOT_ALIGNED | flags::DATA_TAIL, Instability::Tail),
            (flags::UNWRITTEN, Instability::Unwritten),
            (flags::SHARED, Instability::Shared),
            (0x4000, Instability::UnknownFlag(0x4000)),
        ];
        for (given, reason) in cases {
            let reported = [extent(0, 0, 4096, 0), extent(4096, 8192, 4096, given | flags::LAST)];
            assert_eq!(
                check(&reported, 5000, DEVICE),
                Err(Problem::Unstable { start: 4096, end: 5000, reason })
            );
            // The same extent after the end of the file is of no interest.
            assert!(check(&reported, 4096, DEVICE).is_ok());
        }
    }

    #[test]
    fn holes_are_refused_wherever_they_are() {
        let hole = |start, end| Problem::Unstable { start, end, reason: Instability::Hole };
        let check = |reported: &[Reported]| check(reported, 10000, DEVICE).unwrap_err();
        assert_eq!(check(&[]), hole(0, 10000));
        assert_eq!(check(&[extent(4096, 0, 8192, 1)]), hole(0, 4096));
        assert_eq!(check(&[extent(0, 0, 4096, 0), extent(8192, 0, 4096, 1)]), hole(4096, 8192));
        assert_eq!(check(&[extent(0, 0, 4096, 1)]), hole(4096, 10000));
    }

    #[test]
    fn extents_outside_of_the_device_are_refused() {
        for offset in [DEVICE - 4095, u64::MAX - 100] {
            let refused = check(&[extent(0, offset, 4096, 1)], 10, DEVICE).unwrap_err();
            assert_eq!(refused, Problem::OutOfRange { offset, bytes: 4096, device_bytes: DEVICE });
        }
    }
}
