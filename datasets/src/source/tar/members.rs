//! Reads the members of a tar file.
//!
//! Understands the headers of POSIX.1-1988 (ustar), POSIX.1-2001 (pax) and GNU tar: long names of
//! both kinds, sizes in base 256. The checksum of every header and the end mark are checked, so
//! that a truncated file is detected.

use crate::Error;
use crate::message::Message;
use crate::source::budget::{MemoryBudget, ReservedBytes};
use crate::source::input::{Compression, Input, read_up_to};
use crate::source::names::shown;
use crate::store::StorePath;

const BLOCK_BYTES: u64 = 512;
/// Maximum bytes of a pax header or a long name; a path has at most 4,096.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of zero bytes after the end mark, with which tar pads its last record.
const PADDING_BYTES_MAX: u64 = 64 << 20;

/// The type of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum MemberKind {
    File,
    Folder,
    /// A symbolic or hard link.
    Link,
    /// A file with holes, as GNU tar stores it.
    Sparse,
    /// A device, a pipe, a volume label, a part of a file.
    Other,
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Member {
    /// The name in the archive; not necessarily UTF-8.
    pub(in crate::source) name: Vec<u8>,
    pub(in crate::source) kind: MemberKind,
    /// Offset of its first byte in the decompressed archive.
    pub(in crate::source) offset: u64,
    pub(in crate::source) bytes: u64,
}

impl Member {
    /// The name for errors.
    pub(in crate::source) fn shown(&self) -> String {
        format!("member {}", shown(&self.name))
    }
}

/// Attributes of the next member from preceding headers.
#[derive(Default)]
struct PendingAttributes {
    name: Option<Vec<u8>>,
    bytes: Option<u64>,
    is_sparse: bool,
}

/// Reads the members of an archive.
pub(in crate::source) struct Members {
    input: Input,
    next_header: u64,
    is_ended: bool,
}

impl Members {
    /// Opens an archive, compressed or not.
    pub(in crate::source) fn open(path: &StorePath, budget: &MemoryBudget) -> Result<Self, Error> {
        Ok(Self { input: Input::open_within(path, budget)?, next_header: 0, is_ended: false })
    }

    /// The archive.
    pub(in crate::source) fn input(&self) -> &Input {
        &self.input
    }

    /// The archive, to read the member that [`Self::next`] returned last in pieces.
    pub(in crate::source) fn input_mut(&mut self) -> &mut Input {
        &mut self.input
    }

    /// Whether the file contains members unchanged.
    pub(super) fn is_plain(&self) -> bool {
        self.input.compression() == Compression::None
    }

    /// The next member; the rest of the previous one is skipped.
    pub(in crate::source) fn next(&mut self) -> Result<Option<Member>, Error> {
        if self.is_ended {
            return Ok(None);
        }
        let mut pending = PendingAttributes::default();
        loop {
            self.pass_to(self.next_header)?;
            let start = self.next_header;
            let Some(block) = self.header()? else {
                self.is_ended = true;
                return Ok(None);
            };
            let header = tar::Header::from_byte_slice(&block);
            let of_header = header.entry_size().map_err(|error| {
                self.input.malformed(Some(shown(&header.path_bytes())), start, error.to_string())
            })?;
            let kind = header.entry_type();
            let has_header_of_its_own = kind.is_pax_local_extensions()
                || kind.is_pax_global_extensions()
                || kind.is_gnu_longname()
                || kind.is_gnu_longlink();
            let bytes = match pending.bytes {
                Some(bytes) if !has_header_of_its_own => bytes,
                _ => of_header,
            };
            let offset = start + BLOCK_BYTES;
            let name = header.path_bytes().into_owned();
            // Links, devices and folders have no bytes, whatever their header says, as in Python's
            // tarfile.
            let has_no_bytes = matches!(kind.as_byte(), b'1'..=b'6');
            let bytes = if has_no_bytes { 0 } else { bytes };
            self.next_header = self.end_of(offset, bytes, &name)?;
            if has_header_of_its_own {
                self.take_attributes(kind, bytes, &mut pending)?;
                continue;
            }
            let name = pending.name.take().unwrap_or(name);
            let is_folder_by_name = kind.is_file() && name.ends_with(b"/");
            let kind = match kind {
                _ if pending.is_sparse || kind.is_gnu_sparse() => MemberKind::Sparse,
                _ if is_folder_by_name || kind.is_dir() => MemberKind::Folder,
                _ if kind.is_file() || kind.is_contiguous() => MemberKind::File,
                _ if kind.is_symlink() || kind.is_hard_link() => MemberKind::Link,
                _ => MemberKind::Other,
            };
            if kind == MemberKind::Sparse
                && header.as_gnu().is_some_and(tar::GnuHeader::is_extended)
            {
                return Err(self.input.malformed(
                    Some(format!("member {}", shown(&name))),
                    start,
                    Message::from("a sparse file").remedy("archive it again without --sparse"),
                ));
            }
            return Ok(Some(Member { name, kind, offset, bytes }));
        }
    }

    /// The bytes of the member that [`Self::next`] returned last.
    pub(in crate::source) fn read(&mut self, member: &Member) -> Result<ReservedBytes, Error> {
        self.pass_to(member.offset)?;
        let got = self.input.read_held(member.bytes);
        let bytes = got.map_err(|error| self.input.unreadable(Some(member.shown()), &error))?;
        if (bytes.as_ref().len() as u64) < member.bytes {
            return Err(self.cut_short(Some(member.shown())));
        }
        Ok(bytes)
    }

    fn pass_to(&mut self, target: u64) -> Result<(), Error> {
        let bytes = target - self.input.position();
        let passed = self.input.skip(bytes).map_err(|error| self.input.unreadable(None, &error))?;
        if passed < bytes { Err(self.cut_short(None)) } else { Ok(()) }
    }

    fn cut_short(&self, member: Option<String>) -> Error {
        let position = self.input.position();
        let problem = Message::from("the archive ends here, within a member: it was truncated")
            .remedy("fetch or make it again");
        self.input.malformed(member, position, problem)
    }

    /// The next header; `None` at the end mark.
    fn header(&mut self) -> Result<Option<[u8; 512]>, Error> {
        let start = self.next_header;
        let mut block = [0; 512];
        let got = read_up_to(&mut self.input, &mut block);
        let got = got.map_err(|error| self.input.unreadable(None, &error))?;
        if got < block.len() {
            let problem =
                Message::from("the archive ends here, without an end mark: it was truncated")
                    .remedy("fetch or make it again");
            return Err(self.input.malformed(None, start, problem));
        }
        if block.iter().all(|byte| *byte == 0) {
            self.check_padding(start)?;
            self.input.check_unchanged()?;
            return Ok(None);
        }
        if !has_checksum(&block) {
            let problem = Message::from("not the header of a tar member (its checksum is wrong)")
                .remedy("fetch or make the archive again");
            return Err(self.input.malformed(None, start, problem));
        }
        Ok(Some(block))
    }

    /// Checks that only zeros follow the end mark. Reading to the end also verifies the checksums
    /// of a compressed file.
    fn check_padding(&mut self, end: u64) -> Result<(), Error> {
        let mut buffer = [0; 8192];
        loop {
            let at = self.input.position();
            let got = read_up_to(&mut self.input, &mut buffer);
            let got = got.map_err(|error| self.input.unreadable(None, &error))?;
            if got == 0 {
                return Ok(());
            }
            let too_much = at + got as u64 > end + PADDING_BYTES_MAX;
            if too_much || buffer[..got].iter().any(|byte| *byte != 0) {
                let problem =
                    Message::from(format!("the archive ends at byte {end}, and other data follow"))
                        .remedy("archive the appended data as a separate shard");
                return Err(self.input.malformed(None, at, problem));
            }
        }
    }

    /// Offset of the next header; fails if the member is longer than the file.
    fn end_of(&self, offset: u64, bytes: u64, name: &[u8]) -> Result<u64, Error> {
        let end = bytes
            .checked_next_multiple_of(BLOCK_BYTES)
            .and_then(|padded| offset.checked_add(padded))
            .filter(|end| i64::try_from(*end).is_ok());
        let is_inside = !self.is_plain() || offset.saturating_add(bytes) <= self.input.file_bytes();
        match end {
            Some(end) if is_inside => Ok(end),
            _ => Err(self.input.malformed(
                Some(format!("member {}", shown(name))),
                offset,
                Message::from(format!(
                    "its header says {bytes} bytes, more than the archive has: it was truncated"
                ))
                .remedy("fetch or make it again"),
            )),
        }
    }

    /// Reads a header that is about the next member.
    fn take_attributes(
        &mut self,
        kind: tar::EntryType,
        bytes: u64,
        pending: &mut PendingAttributes,
    ) -> Result<(), Error> {
        let start = self.input.position();
        if bytes > HEADER_BYTES_MAX {
            let problem = format!(
                "the name or extended header of a member takes {bytes} bytes, the limit is \
                 {HEADER_BYTES_MAX}"
            );
            let problem = Message::from(problem).remedy("archive it with shorter names");
            return Err(self.input.malformed(None, start, problem));
        }
        let got = self.input.read_at_most(bytes);
        let mut data = got.map_err(|error| self.input.unreadable(None, &error))?;
        if (data.len() as u64) < bytes {
            return Err(self.cut_short(None));
        }
        if kind.is_gnu_longname() {
            let length = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
            data.truncate(length);
            pending.name = Some(data);
        } else if !kind.is_gnu_longlink() {
            let records = pax_records(&data).ok_or_else(|| {
                self.input.malformed(None, start, "a pax header whose records cannot be parsed")
            })?;
            for (key, value) in records {
                let is_about_a_member = matches!(key, b"path" | b"size");
                if kind.is_pax_global_extensions() && is_about_a_member {
                    let problem = "a global header that gives every member one path or size";
                    return Err(self.input.malformed(None, start, problem));
                }
                match key {
                    b"path" => pending.name = Some(value.to_vec()),
                    b"size" => {
                        let size = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                        pending.bytes = Some(size.ok_or_else(|| {
                            self.input.malformed(None, start, "a pax size that is not a number")
                        })?);
                    }
                    key => pending.is_sparse |= key.starts_with(b"GNU.sparse."),
                }
            }
        }
        Ok(())
    }
}

/// Whether a block is a header: it contains the sum of its bytes (POSIX.1-1988, 10.1.1; old
/// programs summed them as signed numbers).
pub(super) fn has_checksum(block: &[u8; 512]) -> bool {
    let Ok(stored) = tar::Header::from_byte_slice(block).cksum() else {
        return false;
    };
    let summed = |sum: fn(u8) -> i64| -> i64 {
        let byte = |(index, byte): (usize, &u8)| match index {
            148..156 => i64::from(b' '),
            _ => sum(*byte),
        };
        block.iter().enumerate().map(byte).sum()
    };
    let stored = i64::from(stored);
    stored == summed(i64::from) || stored == summed(|byte| i64::from(byte.cast_signed()))
}

/// The records of a pax header, `LENGTH KEY=VALUE\n`; `None` if they are malformed.
fn pax_records(mut data: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut records = Vec::new();
    while !data.is_empty() {
        let digits = data.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&data[..digits]).ok()?.parse().ok()?;
        let record = data.get(digits + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        records.push((&record[..equals], &record[equals + 1..]));
        data = &data[length..];
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_records_may_hold_anything_in_their_values() {
        let records = pax_records(b"13 path=a\nb=c\n11 size=12\n");
        assert_eq!(records, None);
        let records = pax_records(b"14 path=a\nb=c\n11 size=12\n").unwrap();
        assert_eq!(records, [(&b"path"[..], &b"a\nb=c"[..]), (b"size", b"12")]);
        for bad in [&b"x"[..], b"5 a=b", b"99 a=b\n", b"0 a=b\n", b"6 ab\n\n"] {
            assert_eq!(pax_records(bad), None, "{bad:?}");
        }
    }
}
