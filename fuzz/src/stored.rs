//! Malicious bytes that a dataset stores beside or instead of files.

use crate::{assert_part, choice_of, decoded, is_small, is_small_jpeg, region_of, tally};
use meetpoint_format::checksum::crc32c;
use meetpoint_jpeg::entry_points::{decode, encode};
use meetpoint_jpeg::form::unpack_all;
use meetpoint_jpeg::{
    self as jpeg, Error as JpegError, Form, Skeleton, Spacing, assemble, form_of, from_form,
    to_form,
};
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Error, ImageFormat, Picture};
use std::sync::LazyLock;

/// Bytes at the end of [`entry_points`]'s input.
pub const ENTRY_CHOICE_BYTES: usize = 24;

/// The modified entry points of a file. The original ones give the right pixels; with a wrong
/// checksum they are refused; wrong ones with a right checksum give some pixels, the same with all
/// instruction sets.
///
/// The last bytes select: spacing (2), type of change (1), the CRC of the file (1), region (8),
/// four changes (a position of 2 and a value of 1 each).
pub fn entry_points(data: &[u8]) {
    let Some((file, choice)) = data.split_last_chunk::<ENTRY_CHOICE_BYTES>() else { return };
    if !is_small_jpeg(file) {
        return tally::add("no JPEG, or too large");
    }
    let Ok(whole) = decoded(file.into(), None) else { return tally::add("refused") };
    let spacing = match u16::from_le_bytes([choice[0], choice[1]]) {
        word if word % 8 == 0 => Spacing::McuRow,
        word if word % 8 == 7 => Spacing::Mcus(word),
        word => Spacing::Mcus(word % 8),
    };
    let made = jpeg::entry_points(file, spacing).expect("the whole picture decodes");
    let Some(made) = made else { return tally::add("no entry points") };
    let region: [u8; 8] = std::array::from_fn(|at| choice[4 + at]);
    let region = region_of(region, (whole.width, whole.height));
    let changes = choice[12..].chunks_exact(3);
    let changes = changes.map(|c| (usize::from(u16::from_le_bytes([c[0], c[1]])), c[2]));
    let (changed, has_right_sum) = match choice[2] % 4 {
        0 => (made.clone(), true),
        1 => {
            let mut bytes = made.clone();
            change_bytes(&mut bytes, changes);
            (bytes, false)
        }
        2 => {
            let mut bytes = made.clone();
            bytes.truncate(made.len() - 4);
            change_bytes(&mut bytes, changes);
            bytes.extend(crc32c(&bytes).to_le_bytes());
            (bytes, true)
        }
        _ => (change_entries(&made, changes), true),
    };
    let crc32c = (choice[3] & 1 == 0).then(|| crc32c(file));
    let encoded = Encoded { bytes: file, entry_points: &changed, crc32c };
    let result = decoded(encoded, Some(region));
    if changed == made {
        tally::add("their own");
        let part = result.expect("they are the file's own");
        assert_part(&part, region, &whole);
    } else if !has_right_sum {
        tally::add("wrong checksum");
        // An empty list means no entry points and is not an error.
        assert!(
            changed.is_empty() || matches!(result, Err(Error::Jpeg(JpegError::EntryPoints { .. })))
        );
    } else {
        tally::add(match result {
            Ok(_) => "lies that gave pixels",
            Err(Error::Jpeg(JpegError::EntryPoints { .. })) => "lies found as such",
            Err(_) => "lies found in the data",
        });
    }
}

/// Changes bytes, half of the time near the beginning.
fn change_bytes(bytes: &mut Vec<u8>, changes: impl Iterator<Item = (usize, u8)>) {
    for (place, value) in changes {
        let reach = if place & 1 == 0 { bytes.len().min(24) } else { bytes.len() };
        if let Some(at) = (place / 4).checked_rem(reach) {
            if place & 2 == 0 {
                bytes[at] = value;
            } else if value < 8 {
                bytes.truncate(at);
            } else {
                bytes[at] ^= 1 << (value & 7);
            }
        }
    }
}

/// Changes fields and encodes them again.
fn change_entries(made: &[u8], changes: impl Iterator<Item = (usize, u8)>) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut head = decode(made, &mut entries).expect("they were just made");
    for (place, value) in changes {
        let (field, at) = (place % 8, place / 8);
        let Some(at) = at.checked_rem(entries.len()) else {
            head.spacing = u16::from(value);
            continue;
        };
        let entry = &mut entries[at];
        match field {
            0 => entry.offset = entry.offset.wrapping_add_signed(i32::from(value as i8)),
            1 => entry.offset = (u32::from(value) * 0x0101_0101) >> (value & 31),
            2 => entry.bits = value & 7,
            3 => entry.dc[at % head.components] = i16::from(value as i8).wrapping_mul(257),
            4 => head.spacing = u16::from(value),
            5 => entries.truncate(at),
            6 => {
                let entry = *entry;
                entries.push(entry);
            }
            _ => head.components = [1, 3, 4][usize::from(value % 3)],
        }
    }
    // Only ascending positions can be encoded.
    head.data_offset =
        entries.iter().map(|entry| entry.offset).fold(head.data_offset, std::cmp::Ord::min);
    entries.sort_by_key(|entry| (entry.offset, entry.bits));
    encode(head, &entries)
}

/// Bytes that may be a coefficient form: a picture or an error, the same with all instruction sets;
/// a region of it; a file or an error.
pub fn form_bytes(data: &[u8]) {
    if ImageFormat::of(data) != Some(ImageFormat::Coefficients) || !is_small(data) {
        return tally::add("no form, or too large");
    }
    match decoded(data.into(), None) {
        Ok(whole) => {
            tally::add("decoded");
            assert!(form_of(data).is_some());
            let region = region_of(choice_of(data), (whole.width, whole.height));
            let part = decoded(data.into(), Some(region)).expect("the whole form decodes");
            assert_part(&part, region, &whole);
        }
        Err(_) => tally::add("refused"),
    }
    check_left_behind(data);
    let mut all = Cpu::available().map(|cpu| unpack_all(data, cpu));
    let first = all.next().expect("every machine has the portable one");
    assert!(
        all.all(|other| other.as_ref().ok() == first.as_ref().ok()),
        "instruction sets disagree"
    );
    match from_form(data) {
        Ok(file) => {
            tally::add("led to a file");
            check_assembled(&file);
        }
        Err(_) => tally::add("led to no file"),
    }
}

/// State left behind in a decoder must not affect the next picture.
fn check_left_behind(data: &[u8]) {
    static SOUND: LazyLock<(Vec<u8>, Picture)> = LazyLock::new(|| {
        let file = include_bytes!("../../jpeg/tests/golden/jpeg/420-33x47.jpg");
        let form = to_form(file, Form::Compact).expect("it has a form");
        let picture = decoded((&form).into(), None).expect("it decodes");
        (form, picture)
    });
    let (form, expected) = &*SOUND;
    for cpu in Cpu::available() {
        let mut decoder = Decoder::new(cpu);
        let mut out = Picture::default();
        // Whatever the result is.
        drop(decoder.decode_into(data.into(), None, &mut out));
        decoder.decode_into(form.into(), None, &mut out).expect("it decodes");
        assert!(out == *expected, "{}: a used decoder gives something else", cpu.name());
    }
}

/// Bytes that may be a skeleton: a file or an error.
///
/// Two bytes of length, that number of bytes of a skeleton, and a coefficient form for the
/// coefficients.
pub fn skeleton_bytes(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (bytes, form) = rest.split_at(length);
    let skeleton = match Skeleton::from_bytes(bytes) {
        Ok(skeleton) => skeleton,
        Err(_) => return tally::add("no skeleton"),
    };
    let again = Skeleton::from_bytes(&skeleton.to_bytes());
    assert!(again.as_ref() == Ok(&skeleton), "a skeleton does not come back from its bytes");
    if !is_small(form) {
        return tally::add("too large");
    }
    let Ok((coefficients, _)) = unpack_all(form, Cpu::detect()) else {
        return tally::add("no coefficients");
    };
    match assemble(&skeleton, &coefficients) {
        Ok(file) => {
            tally::add("led to a file");
            check_assembled(&file);
        }
        Err(_) => tally::add("led to no file"),
    }
}

/// A reconstructed file is decoded or refused, whatever it contains.
fn check_assembled(file: &[u8]) {
    if is_small_jpeg(file) {
        tally::add(match decoded(file.into(), None) {
            Ok(_) => "led to a file that decodes",
            Err(_) => "led to a file that is refused",
        });
    }
}
