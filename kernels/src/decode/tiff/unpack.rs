//! Decompresses a strip or tile. Data that end early are an error.

use super::layout::{Compression, Layout};
use super::{breaks_off, damaged, fax};
use crate::{Error, Interrupt, contain_panic};
use flate2::{Decompress, FlushDecompress};
use weezl::{BitOrder, LzwStatus};

/// Bytes decompressed between two polls of the interrupt.
const PIECE_BYTES: usize = 1 << 18;

/// Decompresses `stored` into all of `out`, which holds `rows` rows.
pub(super) fn unpack(
    layout: &Layout<'_>,
    (stored, interrupt): (&[u8], &Interrupt),
    rows: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    let reversed: Vec<u8>;
    let stored = if layout.bits_reversed {
        let needed = match layout.compression {
            Compression::None => out.len().min(stored.len()),
            _ => stored.len(),
        };
        reversed = stored[..needed].iter().map(|byte| byte.reverse_bits()).collect();
        &reversed[..]
    } else {
        stored
    };
    let width = layout.chunk_width;
    let file = (stored, interrupt);
    match layout.compression {
        Compression::None => {
            let stored = stored.get(..out.len()).ok_or_else(breaks_off)?;
            out.copy_from_slice(stored);
            Ok(())
        }
        Compression::PackBits => pack_bits(file, out),
        Compression::Lzw => contained(|| lzw(file, out)),
        Compression::Deflate => contained(|| inflate(file, out)),
        Compression::FaxRows => contained(|| fax::rows(file, width, rows, false, out)),
        Compression::FaxGroup3 => contained(|| fax::rows(file, width, rows, true, out)),
        Compression::FaxGroup4 => contained(|| fax::group4(file, width, rows, out)),
        Compression::Jpeg => unreachable!("JPEG strips have a decoder of their own"),
    }
}
/// Calls a decoder of another crate; a panic is reported as damage.
fn contained(decode: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    contain_panic(decode).unwrap_or_else(|panic| {
        let message = panic.message;
        Err(damaged(format_args!("the decoder of its data stopped with \"{message}\"")))
    })
}

/// Decodes PackBits: TIFF 6.0, section 9.
fn pack_bits(
    (mut stored, interrupt): (&[u8], &Interrupt),
    mut out: &mut [u8],
) -> Result<(), Error> {
    while !out.is_empty() {
        interrupt.check()?;
        let (&head, rest) = stored.split_first().ok_or_else(breaks_off)?;
        match head as i8 {
            -128 => stored = rest,
            count @ 0.. => {
                let (literal, rest) =
                    rest.split_at_checked(count as usize + 1).ok_or_else(breaks_off)?;
                let length = literal.len().min(out.len());
                let (to, after) = out.split_at_mut(length);
                to.copy_from_slice(&literal[..length]);
                (out, stored) = (after, rest);
            }
            count => {
                let (&byte, rest) = rest.split_first().ok_or_else(breaks_off)?;
                let length = (1 - isize::from(count)) as usize;
                let (to, after) = out.split_at_mut(length.min(out.len()));
                to.fill(byte);
                (out, stored) = (after, rest);
            }
        }
    }
    Ok(())
}

/// Decodes LZW: TIFF 6.0, section 13.
fn lzw((mut stored, interrupt): (&[u8], &Interrupt), mut out: &mut [u8]) -> Result<(), Error> {
    let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(BitOrder::Msb, 8);
    while !out.is_empty() {
        interrupt.check()?;
        let piece = out.len().min(PIECE_BYTES);
        let step = decoder.decode_bytes(stored, &mut out[..piece]);
        stored = &stored[step.consumed_in..];
        out = &mut out[step.consumed_out..];
        match step.status {
            Ok(LzwStatus::Ok) => (),
            Ok(LzwStatus::Done | LzwStatus::NoProgress) if out.is_empty() => (),
            Ok(LzwStatus::Done | LzwStatus::NoProgress) => return Err(breaks_off()),
            Err(error) => return Err(damaged(error)),
        }
    }
    Ok(())
}

fn inflate((stored, interrupt): (&[u8], &Interrupt), mut out: &mut [u8]) -> Result<(), Error> {
    let mut decoder = Decompress::new(true);
    while !out.is_empty() {
        interrupt.check()?;
        let rest = &stored[decoder.total_in() as usize..];
        let before = decoder.total_out();
        let piece = out.len().min(PIECE_BYTES);
        decoder.decompress(rest, &mut out[..piece], FlushDecompress::None).map_err(damaged)?;
        let written = (decoder.total_out() - before) as usize;
        if written == 0 {
            return Err(breaks_off());
        }
        out = &mut out[written..];
    }
    Ok(())
}
