//! The block device of a file system, as Linux describes it in `/sys/dev/block`.

use meetpoint_diagnose::shown;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Linux counts sizes and positions in sectors of 512 bytes, whatever the block size.
const SECTOR_BYTES: u64 = 512;

/// A block device, and the drive that it is a partition of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name below `/dev`: `nvme0n1p1`.
    pub name: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Name of the drive; the same name if it is no partition.
    pub drive: String,
    /// Length of the drive in bytes.
    pub drive_bytes: u64,
    /// Where on the drive it begins, in bytes.
    pub partition_offset: u64,
}

impl BlockDevice {
    /// The device of the file system of an open file. `None` if it is not on one block device.
    pub(super) fn of_file(file: &File) -> io::Result<Option<Self>> {
        let device = file.metadata()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        // File systems without a block device, and those on several, have numbers of their own.
        if major == 0 {
            return Ok(None);
        }
        let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        match std::fs::canonicalize(folder) {
            Ok(folder) => Self::of_folder(&folder).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The device that a folder of `/sys` describes.
    fn of_folder(folder: &Path) -> io::Result<Self> {
        let number = |path: PathBuf| -> io::Result<u64> {
            let text = std::fs::read_to_string(&path)?;
            text.trim().parse().map_err(|_| {
                let problem = format!("{} holds no number", shown(&path));
                io::Error::new(io::ErrorKind::InvalidData, problem)
            })
        };
        let name = |folder: &Path| {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            // A slash in a device's name is an exclamation mark in `/sys`.
            name.replace('!', "/")
        };
        let sectors =
            |path: PathBuf| Ok::<_, io::Error>(number(path)?.saturating_mul(SECTOR_BYTES));
        let is_partition = folder.join("partition").exists();
        let drive = match folder.parent() {
            Some(parent) if is_partition => parent,
            _ => folder,
        };
        let block_bytes = number(drive.join("queue/logical_block_size"))?;
        Ok(Self {
            name: name(folder),
            bytes: sectors(folder.join("size"))?,
            block_bytes: u32::try_from(block_bytes).unwrap_or(u32::MAX),
            drive: name(drive),
            drive_bytes: sectors(drive.join("size"))?,
            partition_offset: if is_partition { sectors(folder.join("start"))? } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_partition_names_its_drive_and_its_position() {
        let sys = tempfile::tempdir().unwrap();
        let drive = sys.path().join("nvme0n1");
        write(
            &drive,
            &[
                ("size", "2000409264\n"),
                ("queue/logical_block_size", "4096\n"),
                ("nvme0n1p2/partition", "2\n"),
                ("nvme0n1p2/start", "2048\n"),
                ("nvme0n1p2/size", "1000000\n"),
            ],
        );
        let partition = BlockDevice::of_folder(&drive.join("nvme0n1p2")).unwrap();
        assert_eq!(
            partition,
            BlockDevice {
                name: "nvme0n1p2".to_owned(),
                bytes: 512_000_000,
                block_bytes: 4096,
                drive: "nvme0n1".to_owned(),
                drive_bytes: 1_024_209_543_168,
                partition_offset: 1 << 20,
            }
        );
        let whole = BlockDevice::of_folder(&drive).unwrap();
        assert_eq!((&whole.name, &whole.drive), (&partition.drive, &partition.drive));
        assert_eq!((whole.bytes, whole.partition_offset), (partition.drive_bytes, 0));
        std::fs::write(drive.join("size"), "many").unwrap();
        let error = BlockDevice::of_folder(&drive).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_file_in_shared_memory_has_no_block_device() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return eprintln!("skipped: no files in /dev/shm");
        };
        let file = File::create(folder.path().join("file")).unwrap();
        assert_eq!(BlockDevice::of_file(&file).unwrap(), None);
    }
}
