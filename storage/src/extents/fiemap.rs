//! What Linux reports about the extents of a file (FIEMAP). The only file that asks for it.
//!
//! The structures are those of `linux/fiemap.h`, in the byte order of the machine:
//!
//! ```text
//! request  start u64, length u64, flags u32, mapped u32, capacity u32, reserved u32
//! extent   logical u64, physical u64, length u64, reserved [u64; 2], flags u32, reserved [u32; 3]
//! ```
#![expect(unsafe_code, reason = "ioctl has no safe wrapper, and takes pointers to memory")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP`.
const IOCTL_FIEMAP: u64 = 0xc020_660b;
/// `FS_IOC_FSGETXATTR`.
const IOCTL_GET_ATTRIBUTES: u64 = 0x801c_581f;
/// `FS_XFLAG_REALTIME`.
const IN_REALTIME_SECTION: u32 = 1;
/// `FIEMAP_FLAG_SYNC`: write the file before it is mapped.
const SYNC: u32 = 1;
/// Bytes of the request, and of an extent.
const HEADER_BYTES: usize = 32;
const EXTENT_BYTES: usize = 56;
/// Extents of one call.
const EXTENTS_PER_CALL: usize = 128;
/// Most extents of a file; more are fragments of a few KiB.
const EXTENTS_MAX: usize = 1 << 20;

/// `FIEMAP_EXTENT_*`.
pub(super) mod flags {
    pub(in super::super) const LAST: u32 = 0x1;
    pub(in super::super) const UNKNOWN: u32 = 0x2;
    pub(in super::super) const DELALLOC: u32 = 0x4;
    pub(in super::super) const ENCODED: u32 = 0x8;
    pub(in super::super) const DATA_ENCRYPTED: u32 = 0x80;
    pub(in super::super) const NOT_ALIGNED: u32 = 0x100;
    pub(in super::super) const DATA_INLINE: u32 = 0x200;
    pub(in super::super) const DATA_TAIL: u32 = 0x400;
    pub(in super::super) const UNWRITTEN: u32 = 0x800;
    pub(in super::super) const MERGED: u32 = 0x1000;
    pub(in super::super) const SHARED: u32 = 0x2000;
}

/// An extent as Linux reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported {
    /// First byte in the file.
    pub(super) logical: u64,
    /// First byte on the device.
    pub(super) physical: u64,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// [`flags`].
    pub(super) flags: u32,
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// A request for the extents from `start` on, with space for `EXTENTS_PER_CALL` of them. In words,
/// because the structures are aligned to 8 bytes.
fn encode(start: u64) -> Vec<u64> {
    let mut words = vec![0_u64; (HEADER_BYTES + EXTENT_BYTES * EXTENTS_PER_CALL) / 8];
    let pair = |first: u32, second: u32| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        bytes[4..].copy_from_slice(&second.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    };
    words[0] = start;
    words[1] = u64::MAX - start;
    words[2] = pair(SYNC, 0);
    words[3] = pair(EXTENTS_PER_CALL as u32, 0);
    words
}

/// The extents of an answer.
pub(super) fn decode(answer: &[u8]) -> io::Result<Vec<Reported>> {
    let long = |at: usize| {
        let bytes = answer.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
    };
    let short = |at: usize| {
        let bytes = answer.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
    };
    let ends_early = || invalid(format!("a map of extents ends after {} bytes", answer.len()));
    let count = short(20).ok_or_else(ends_early)? as usize;
    let capacity = short(24).ok_or_else(ends_early)? as usize;
    if count > capacity {
        return Err(invalid(format!("{count} extents in a map with space for {capacity}")));
    }
    let extent = |index: usize| {
        let at = HEADER_BYTES + EXTENT_BYTES * index;
        Some(Reported {
            logical: long(at)?,
            physical: long(at + 8)?,
            bytes: long(at + 16)?,
            flags: short(at + 40)?,
        })
    };
    (0..count).map(|index| extent(index).ok_or_else(ends_early)).collect()
}

/// The extents of a file, in the order of the file; the file system writes the file first.
pub(super) fn read(file: &File) -> io::Result<Vec<Reported>> {
    let mut extents: Vec<Reported> = Vec::new();
    loop {
        let start = extents.last().map_or(0, |last| last.logical.saturating_add(last.bytes));
        let mut words = encode(start);
        // SAFETY: the memory has space for the number of extents that the request names, and
        // outlives the call.
        let answer =
            unsafe { libc::ioctl(file.as_raw_fd(), IOCTL_FIEMAP as _, words.as_mut_ptr()) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let more = decode(&bytes)?;
        let Some(last) = more.last() else { return Ok(extents) };
        if last.logical.saturating_add(last.bytes) <= start {
            return Err(invalid("a map of extents does not advance".to_owned()));
        }
        let is_last = last.flags & flags::LAST != 0;
        extents.extend(more);
        if is_last {
            return Ok(extents);
        }
        if extents.len() > EXTENTS_MAX {
            return Err(invalid(format!("more than {EXTENTS_MAX} extents")));
        }
    }
}

/// Whether a file of XFS is in the realtime section, which is another device. `false` on file
/// systems without such attributes.
pub(super) fn is_realtime(file: &File) -> bool {
    // struct fsxattr: 28 bytes, flags first.
    let mut attributes = [0_u32; 7];
    // SAFETY: the memory is as long as the structure that the request names, and outlives the call.
    let answer = unsafe {
        libc::ioctl(file.as_raw_fd(), IOCTL_GET_ATTRIBUTES as _, attributes.as_mut_ptr())
    };
    answer == 0 && attributes[0] & IN_REALTIME_SECTION != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer as the kernel writes it, field by field.
    fn answer(capacity: u32, extents: &[(u64, u64, u64, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(0_u64.to_ne_bytes());
        bytes.extend(u64::MAX.to_ne_bytes());
        for word in [1, extents.len() as u32, capacity, 0] {
            bytes.extend(word.to_ne_bytes());
        }
        assert_eq!(bytes.len(), HEADER_BYTES);
        for (logical, physical, length, flags) in extents {
            for word in [*logical, *physical, *length, 0, 0] {
                bytes.extend(word.to_ne_bytes());
            }
            for word in [*flags, 0, 0, 0] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        bytes
    }

    #[test]
    fn the_extents_of_an_answer_are_decoded() {
        let bytes = answer(4, &[(0, 8192, 4096, 0), (4096, 1 << 40, 1 << 33, flags::LAST)]);
        assert_eq!(
            decode(&bytes).unwrap(),
            [
                Reported { logical: 0, physical: 8192, bytes: 4096, flags: 0 },
                Reported { logical: 4096, physical: 1 << 40, bytes: 1 << 33, flags: flags::LAST },
            ]
        );
        assert_eq!(decode(&answer(4, &[])).unwrap(), []);
    }

    #[test]
    fn an_answer_that_ends_early_or_counts_too_many_is_an_error() {
        let whole = answer(2, &[(0, 8192, 4096, 0), (4096, 0, 4096, 1)]);
        for end in 0..whole.len() - 12 {
            assert!(decode(&whole[..end]).is_err(), "{end} bytes");
        }
        assert!(decode(&answer(1, &[(0, 0, 1, 0), (1, 1, 1, 1)])).is_err());
    }

    #[test]
    fn a_request_has_the_layout_of_the_header() {
        let words = encode(4096);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(bytes.len(), HEADER_BYTES + EXTENTS_PER_CALL * EXTENT_BYTES);
        let expected = [
            4096_u64.to_ne_bytes().to_vec(),
            (u64::MAX - 4096).to_ne_bytes().to_vec(),
            1_u32.to_ne_bytes().to_vec(),
            0_u32.to_ne_bytes().to_vec(),
            128_u32.to_ne_bytes().to_vec(),
            0_u32.to_ne_bytes().to_vec(),
        ];
        assert_eq!(bytes[..HEADER_BYTES], expected.concat());
    }
}
