//! Opens files for the engines: with O_DIRECT if the file system supports it, and with the
//! alignment that it requires.

use crate::{Access, BLOCK_BYTES, Error, FileId};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `STATX_DIOALIGN`: see statx(2), since Linux 6.1.
const STATX_DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);

/// Most bytes per system call; the kernel transfers at most 2 GiB less a page.
pub(crate) const PIECE_BYTES_MAX: usize = 1 << 30;

/// An open file of an engine.
#[derive(Debug)]
pub(crate) struct Opened<B> {
    /// Its name in errors.
    pub(crate) path: PathBuf,
    /// For direct files: offsets, lengths and addresses must be multiples of it.
    pub(crate) alignment: Option<usize>,
    /// Most bytes per transfer; a multiple of the alignment.
    pub(crate) piece_bytes_max: usize,
    /// The storage that the engine reads and writes.
    pub(crate) body: B,
}

/// The open files of an engine; a [`FileId`] is an index.
#[derive(Debug)]
pub(crate) struct FileTable<B> {
    files: Vec<Option<Arc<Opened<B>>>>,
    /// Ids of files that were closed.
    free: Vec<FileId>,
}

impl<B> Default for FileTable<B> {
    fn default() -> Self {
        Self { files: Vec::new(), free: Vec::new() }
    }
}

impl<B> FileTable<B> {
    pub(crate) fn add(&mut self, file: Opened<B>) -> FileId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            let index = self.files.len() - 1;
            FileId(u32::try_from(index).expect("a process has fewer files than 2^32"))
        });
        self.files[id.0 as usize] = Some(Arc::new(file));
        id
    }

    pub(crate) fn get(&self, file: FileId) -> Result<&Arc<Opened<B>>, Error> {
        let place = self.files.get(file.0 as usize).and_then(Option::as_ref);
        place.ok_or(Error::NoSuchFile(file.0))
    }

    /// Closes a file; requests in flight keep it open until they complete.
    pub(crate) fn close(&mut self, file: FileId) {
        if self.files.get_mut(file.0 as usize).and_then(Option::take).is_some() {
            self.free.push(file);
        }
    }

    pub(crate) fn is_direct(&self, file: FileId) -> bool {
        self.get(file).is_ok_and(|file| file.alignment.is_some())
    }
}

impl Opened<File> {
    /// Opens a file by name, with O_DIRECT if the file system supports it. Anything other than a
    /// regular file or a block device is an error, because a pipe could block forever.
    pub(crate) fn open(path: &Path, access: Access) -> Result<Self, Error> {
        let mode = match access {
            Access::Read => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
        };
        let open = || -> std::io::Result<Self> {
            // Opening a pipe does not wait for its other end.
            let mode = mode | OFlags::NONBLOCK;
            let (body, alignment) = match open_direct(path, mode)? {
                Some((body, alignment)) => (body, Some(alignment)),
                None => {
                    let fd = rustix::fs::open(path, mode | OFlags::CLOEXEC, Mode::empty())?;
                    (File::from(fd), None)
                }
            };
            if !is_seekable(&body) {
                return Err(irregular());
            }
            // Reads may block again; otherwise io_uring would fail them with EAGAIN.
            let flags = rustix::fs::fcntl_getfl(&body)?;
            rustix::fs::fcntl_setfl(&body, flags.difference(OFlags::NONBLOCK))?;
            Ok(Self { path: path.to_path_buf(), alignment, piece_bytes_max: PIECE_BYTES_MAX, body })
        };
        open().map_err(|source| {
            // Opening a socket fails.
            let is_socket = path.metadata().is_ok_and(|found| found.file_type().is_socket());
            let source = if is_socket { irregular() } else { source };
            Error::Open { path: path.to_path_buf(), source }
        })
    }

    /// Adopts an open file. If it has no O_DIRECT, it is opened again with the flag, if that works.
    /// The flag is not set on the given file, because another process may share its file
    /// description.
    pub(crate) fn adopt(file: File, name: &str) -> Result<Self, Error> {
        let path = PathBuf::from(name);
        let piece_bytes_max = PIECE_BYTES_MAX;
        let flags = rustix::fs::fcntl_getfl(&file)
            .map_err(|error| Error::Open { path: path.clone(), source: error.into() })?;
        if flags.contains(OFlags::DIRECT) {
            let alignment = alignment_of(&file).unwrap_or(BLOCK_BYTES);
            return Ok(Self { path, alignment: Some(alignment), piece_bytes_max, body: file });
        }
        let again = format!("/proc/self/fd/{}", file.as_raw_fd());
        if is_seekable(&file)
            && let Ok(Some((body, alignment))) =
                open_direct(Path::new(&again), flags & OFlags::RWMODE)
        {
            return Ok(Self { path, alignment: Some(alignment), piece_bytes_max, body });
        }
        Ok(Self { path, alignment: None, piece_bytes_max, body: file })
    }

    /// Length in bytes.
    pub(crate) fn bytes(&self) -> Result<u64, Error> {
        file_bytes(&self.body, &self.path)
    }
}

/// Whether a file is a regular one or a block device.
fn is_seekable(file: &File) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        kind.is_file() || kind.is_block_device()
    })
}

/// The error for anything other than a regular file or a block device.
pub(crate) fn irregular() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file")
}

/// Length of a file, or of the device behind it, in bytes.
pub(crate) fn file_bytes(file: &File, path: &Path) -> Result<u64, Error> {
    let length = || {
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            return Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::End(0))?);
        }
        Ok(metadata.len())
    };
    length().map_err(|source| Error::Length { path: path.to_path_buf(), source })
}

/// Opens with O_DIRECT; `None` if the file system does not support it, or requires more alignment
/// than buffers have.
fn open_direct(path: &Path, mode: OFlags) -> std::io::Result<Option<(File, usize)>> {
    let flags = mode | OFlags::CLOEXEC | OFlags::DIRECT;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => Ok(alignment_of(&fd).map(|alignment| (File::from(fd), alignment))),
        Err(rustix::io::Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The alignment of direct transfers of a file, in memory and in the file; `None` if they do not
/// work with an [`AlignedBuffer`](crate::AlignedBuffer). [`BLOCK_BYTES`] if the kernel does not
/// report one.
fn alignment_of(file: impl AsFd) -> Option<usize> {
    match direct_alignment(file) {
        None => Some(BLOCK_BYTES),
        Some((memory, offset)) => {
            let alignment = memory.max(offset) as usize;
            (offset > 0 && alignment <= BLOCK_BYTES).then_some(alignment)
        }
    }
}

/// STATX_DIOALIGN of a file: alignment in memory and in the file, zero if direct transfers are not
/// supported. `None` if the kernel or the file system does not report it.
pub(crate) fn direct_alignment(file: impl AsFd) -> Option<(u32, u32)> {
    let status = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, STATX_DIOALIGN).ok()?;
    (status.stx_mask & STATX_DIOALIGN.bits() != 0)
        .then_some((status.stx_dio_mem_align, status.stx_dio_offset_align))
}
