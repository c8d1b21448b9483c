//! A file of a source that is read sequentially, compressed or not.
//!
//! Memory is bounded by what a decompressor needs (32 KiB for gzip, at most 128 MiB for a zstd
//! frame), whatever the file claims. Checksums of the compression are checked.

use super::budget::{MemoryBudget, ReservedBytes, over_budget};
use super::{OpenFile, OverBudget, SampleOrigin};
use crate::Error;
use crate::message::Message;
use crate::store::{Metadata, StorePath};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

/// Read buffer of a plain file: small, since most of the file is skipped.
const PLAIN_BUFFER_BYTES: usize = 8 << 10;
/// Read buffer of a compressed file.
const COMPRESSED_BUFFER_BYTES: usize = 64 << 10;
/// Bytes allocated for a length that a file claims, before they are read.
const CLAIMED_BYTES_MAX: u64 = 64 << 10;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    /// Not at all.
    None,
    /// RFC 1952, of one or more members.
    Gzip,
    /// RFC 8878, of one or more frames.
    Zstd,
}

impl Compression {
    /// The compression of a file that starts with these bytes.
    pub(super) fn of(begin: &[u8]) -> Self {
        match begin {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame (RFC 8878, 3.1.2).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

enum Inner {
    Plain(BufReader<Reopened>),
    Gzip(BufReader<MultiGzDecoder<BufReader<Reopened>>>),
    Zstd(Box<Frames>),
}

/// An open file of a source, read from the start.
pub(super) struct Input {
    inner: Inner,
    compression: Compression,
    file: Arc<OpenFile>,
    shown: String,
    stamp: (u64, (i64, i64)),
    position: u64,
    /// The budget of the source, if reads count against it.
    budget: Option<MemoryBudget>,
}

impl Input {
    /// Opens a regular file whose decompressed bytes count against the budget of a source, and
    /// whose compression ratio is limited.
    pub(super) fn open_within(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        Ok(Self { budget: Some(budget.clone()), ..Self::open(path)? })
    }

    /// Opens a regular file.
    pub(super) fn open(path: &StorePath) -> Result<Self, Error> {
        let failed = |source| Error::Source { path: path.to_path_buf(), source };
        let file = path.open().map_err(failed)?;
        let stamp = stamp(&file).map_err(failed)?;
        let file = Arc::new(OpenFile { path: path.clone(), file });
        let reopened = Reopened { file: file.clone(), position: 0 };
        let mut begin = [0; 4];
        let got = read_up_to(&mut reopened.clone(), &mut begin).map_err(failed)?;
        let compression = Compression::of(&begin[..got]);
        let inner = match compression {
            Compression::None => {
                Inner::Plain(BufReader::with_capacity(PLAIN_BUFFER_BYTES, reopened))
            }
            Compression::Gzip => {
                let compressed = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, reopened);
                let decoder = MultiGzDecoder::new(compressed);
                Inner::Gzip(BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, decoder))
            }
            Compression::Zstd => {
                let compressed = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, reopened);
                Inner::Zstd(Box::new(Frames::new(compressed)))
            }
        };
        let shown = path.display().to_string();
        Ok(Self { inner, compression, file, shown, stamp, position: 0, budget: None })
    }

    /// How the file is compressed.
    pub(super) fn compression(&self) -> Compression {
        self.compression
    }

    /// The file itself, for ranges of it where it is not compressed.
    pub(super) fn file(&self) -> &Arc<OpenFile> {
        &self.file
    }

    /// The length of the file as stored.
    pub(super) fn file_bytes(&self) -> u64 {
        self.stamp.0
    }

    /// Bytes read or skipped so far, decompressed.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Skips `bytes`; returns the number of bytes skipped.
    pub(super) fn skip(&mut self, bytes: u64) -> io::Result<u64> {
        let passed = match &mut self.inner {
            Inner::Plain(reader) => {
                let passed = bytes.min(self.stamp.0.saturating_sub(self.position));
                reader.seek_relative(i64::try_from(passed).map_err(io::Error::other)?)?;
                passed
            }
            Inner::Gzip(_) | Inner::Zstd(_) => {
                // Skips by reading, which checks the compression ratio.
                return io::copy(&mut self.take(bytes), &mut io::sink());
            }
        };
        self.position += passed;
        Ok(passed)
    }

    /// Bytes of the stored file that were read so far.
    fn file_position(&self) -> u64 {
        match &self.inner {
            Inner::Plain(reader) => reader.get_ref().position,
            Inner::Gzip(reader) => reader.get_ref().get_ref().get_ref().position,
            Inner::Zstd(frames) => frames.from.get_ref().position,
        }
    }

    /// Reads at most `bytes`; fewer only at the end.
    pub(super) fn read_at_most(&mut self, bytes: u64) -> io::Result<Vec<u8>> {
        let capacity = bytes.min(CLAIMED_BYTES_MAX);
        let mut read = Vec::with_capacity(usize::try_from(capacity).expect("at most 64 KiB"));
        self.take(bytes).read_to_end(&mut read)?;
        Ok(read)
    }

    /// Reads at most `bytes` and counts them as memory of the source; fewer only at the end.
    pub(super) fn read_held(&mut self, bytes: u64) -> io::Result<ReservedBytes> {
        let budget = self.budget.clone().unwrap_or_default();
        // The ratio is checked during decompression.
        budget.read_to_end(self, Vec::new(), bytes, u64::MAX)
    }

    /// Fails if the file changed since it was opened.
    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        let path = &self.file.path;
        let failed = |source| Error::Source { path: path.to_path_buf(), source };
        if stamp(&self.file.file).map_err(failed)? == self.stamp {
            return Ok(());
        }
        Err(Error::SourceChanged { path: path.to_path_buf() })
    }

    /// A location in the file; an offset in decompressed data is omitted, since it is not one in
    /// the file.
    pub(super) fn origin(&self, member: Option<String>, offset: u64) -> SampleOrigin {
        let offset = (self.compression == Compression::None).then_some(offset);
        SampleOrigin { file: self.shown.clone(), member, offset }
    }

    /// The error of malformed data at an offset.
    pub(super) fn malformed(
        &self,
        member: Option<String>,
        offset: u64,
        problem: impl Into<Message>,
    ) -> Error {
        let problem = match self.compression {
            Compression::None => problem.into(),
            Compression::Gzip | Compression::Zstd => {
                Message::from(format!("byte {offset} of the decompressed data: ")) + problem
            }
        };
        Error::Malformed { origin: Box::new(self.origin(member, offset)), problem }
    }

    /// The error of a source over its budget.
    pub(super) fn over_budget(
        &self,
        member: Option<String>,
        offset: u64,
        over: OverBudget,
    ) -> Error {
        Error::OverBudget { origin: Box::new(self.origin(member, offset)), over }
    }

    /// The error of a failed read.
    pub(super) fn unreadable(&self, member: Option<String>, error: &io::Error) -> Error {
        if let Some(over) = over_budget(error) {
            return self.over_budget(member, self.position, over);
        }
        let what = match self.compression {
            Compression::None => "",
            Compression::Gzip => "gzip: ",
            Compression::Zstd => "zstd: ",
        };
        let problem = Message::from(format!("{what}{error}")).remedy("fetch or make it again");
        self.malformed(member, self.position, problem)
    }
}

impl Read for Input {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = match &mut self.inner {
            Inner::Plain(reader) => reader.read(to)?,
            Inner::Gzip(reader) => reader.read(to)?,
            Inner::Zstd(reader) => reader.read(to)?,
        };
        self.position += got as u64;
        if let (Some(budget), true) = (&self.budget, self.compression != Compression::None) {
            budget.check_ratio(self.position, self.file_position())?;
        }
        Ok(got)
    }
}

/// Reads until `to` is full or the input ends.
pub(super) fn read_up_to(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < to.len() {
        match from.read(&mut to[got..]) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Length and modification time.
fn stamp(file: &File) -> io::Result<(u64, (i64, i64))> {
    let metadata = Metadata::from(file.metadata()?);
    Ok((metadata.bytes, metadata.modified))
}

/// A reader with a separate position over a shared file.
#[derive(Debug, Clone)]
struct Reopened {
    file: Arc<OpenFile>,
    position: u64,
}

impl Read for Reopened {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = std::os::unix::fs::FileExt::read_at(&self.file.file, to, self.position)?;
        self.position += got as u64;
        Ok(got)
    }
}

impl io::Seek for Reopened {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        let target = match to {
            io::SeekFrom::Start(position) => Some(position),
            io::SeekFrom::Current(by) => self.position.checked_add_signed(by),
            io::SeekFrom::End(by) => self.file.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// The frames of a zstd file, in order.
struct Frames {
    from: BufReader<Reopened>,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl Frames {
    fn new(from: BufReader<Reopened>) -> Self {
        Self { from, decoder: FrameDecoder::new(), is_inside: false }
    }

    /// Starts the next frame; `false` at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.from) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    if io::copy(&mut (&mut self.from).take(length), &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame whose bytes were all returned.
    fn end(&mut self) -> io::Result<()> {
        self.is_inside = false;
        let stored = self.decoder.get_checksum_from_data();
        let computed = self.decoder.get_calculated_checksum();
        match (stored, computed) {
            (Some(stored), Some(computed)) if stored != computed => Err(io::Error::other(format!(
                "the checksum of a frame is {stored:08x}, its data give {computed:08x}"
            ))),
            _ => Ok(()),
        }
    }
}

impl Read for Frames {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while !to.is_empty() {
            if !self.is_inside && !self.begin()? {
                break;
            }
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(to);
            }
            if self.decoder.is_finished() {
                self.end()?;
            } else {
                let blocks = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.from, blocks).map_err(io::Error::other)?;
            }
        }
        Ok(0)
    }
}
