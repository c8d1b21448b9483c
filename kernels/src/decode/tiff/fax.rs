//! Bilevel compression of fax machines: one-dimensional ITU-T T.4, and T.6.
//!
//! The output is rows of bits, with the first pixel in the highest bit; 1 is black.

use super::{breaks_off, damaged};
use crate::{Error, Interrupt};
use fax::decoder::{DecodeStatus, Group4Decoder};
use fax::maps::{black, white};
use fax::{BitReader, ByteReader};
use std::convert::Infallible;

/// Decodes Group 4. If the end mark precedes the last row, the rest is white.
pub(super) fn group4(
    (stored, interrupt): (&[u8], &Interrupt),
    width: u32,
    rows: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    let bytes = stored.iter().map(|byte| Ok::<u8, Infallible>(*byte));
    let Ok(mut decoder) = Group4Decoder::new(bytes, narrow(width)?);
    for row in out.chunks_exact_mut(out.len() / rows) {
        interrupt.check()?;
        match decoder.advance() {
            Ok(DecodeStatus::Incomplete) => paint(decoder.transition(), width, row),
            Ok(DecodeStatus::End) => break,
            Err(_) => return Err(damaged("its fax data have an invalid code or are truncated")),
        }
    }
    Ok(())
}

/// Decodes rows of runs. Each row follows an end-of-line mark, or starts at a byte boundary.
pub(super) fn rows(
    (stored, interrupt): (&[u8], &Interrupt),
    width: u32,
    rows: usize,
    marked: bool,
    out: &mut [u8],
) -> Result<(), Error> {
    narrow(width)?;
    // The code tables look ahead, even beyond the last code, so zeros are appended. No code is all
    // zeros.
    let padded = stored.iter().copied().chain([0; 4]);
    let Ok(mut reader) = ByteReader::new(padded.map(Ok::<u8, Infallible>));
    let mut changes = Vec::new();
    for row in out.chunks_exact_mut(out.len() / rows) {
        interrupt.check()?;
        if marked {
            skip_mark(&mut reader)?;
        } else {
            let Ok(()) = reader.consume(reader.bits_to_byte_boundary());
        }
        changes.clear();
        let mut at = 0;
        let mut is_white = true;
        while at < width {
            at += run(&mut reader, is_white)?;
            changes.push(at.min(width) as u16);
            is_white = !is_white;
        }
        if at > width {
            return Err(damaged("a row of its fax data is too long"));
        }
        paint(&changes, width, row);
    }
    Ok(())
}

/// The index of a pixel in a row has 16 bits.
fn narrow(width: u32) -> Result<u16, Error> {
    u16::try_from(width).map_err(|_| damaged("fax data of more than 65535 columns"))
}

/// A run of pixels of one colour: make-up codes and a code below 64.
fn run(reader: &mut impl BitReader, is_white: bool) -> Result<u32, Error> {
    let mut length = 0;
    loop {
        let code = if is_white { white::decode(reader) } else { black::decode(reader) };
        let Some(code) = code else {
            return Err(damaged("its fax data have an invalid code or are truncated"));
        };
        length += u32::from(code);
        if code < 64 {
            return Ok(length);
        }
        if length > 1 << 17 {
            return Err(damaged("a row of its fax data is too long"));
        }
    }
}

/// Skips eleven or more zero bits, and the one bit after them.
fn skip_mark(reader: &mut impl BitReader<Error = Infallible>) -> Result<(), Error> {
    while reader.peek(11).ok_or_else(breaks_off)? != 0 {
        let Ok(()) = reader.consume(1);
    }
    let Ok(()) = reader.consume(11);
    while reader.peek(1).ok_or_else(breaks_off)? == 0 {
        let Ok(()) = reader.consume(1);
    }
    let Ok(()) = reader.consume(1);
    Ok(())
}

/// Sets the bits of the black runs: from each even change to the next one.
fn paint(changes: &[u16], width: u32, row: &mut [u8]) {
    for run in changes.chunks(2) {
        let from = u32::from(run[0]);
        let to = run.get(1).map_or(width, |to| u32::from(*to)).min(width);
        for x in from..to {
            row[x as usize / 8] |= 0x80 >> (x % 8);
        }
    }
}
