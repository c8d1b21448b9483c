//! Decoding: a picture or an error, the same in every way of decoding.

use crate::{
    assert_part, choice_of, decoded, decoded_with, is_small, is_small_jpeg, region_of, tally,
};
use meetpoint_jpeg::{DecodeOptions, OnDamage, Spacing, entry_points};
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Error, Picture};

/// Bytes at the end of [`jpeg_region`]'s input.
pub const REGION_BYTES: usize = 8;

/// A file of any format is decoded to the size in its header, or refused.
pub fn any_decode(data: &[u8]) {
    if !is_small(data) {
        return tally::add("too large");
    }
    match decoded(data.into(), None) {
        Ok(_) => tally::add("decoded"),
        Err(_) => tally::add("refused"),
    }
}

/// A JPEG is decoded or refused, with the same result for all instruction sets and for a decoder
/// that was used before; if libjpeg accepts it without a warning, the pixels are equal.
pub fn jpeg_decode(data: &[u8]) {
    if !is_small_jpeg(data) {
        return tally::add("no JPEG, or too large");
    }
    let first = decoded(data.into(), None);
    let mut used = Decoder::new(Cpu::detect());
    let mut out = Picture::default();
    // State left behind by a truncated file must have no effect.
    let _ = used.decode_into((&data[..data.len() / 2]).into(), None, &mut out);
    let again = used.decode_into(data.into(), None, &mut out).map(|()| out);
    assert!(first == again, "a used decoder gives something else");
    tally::add(if first.is_ok() { "decoded" } else { "refused" });
    #[cfg(feature = "libjpeg-turbo")]
    crate::oracle::compare(data, first.as_ref());
}

fn strict(data: &[u8]) -> Result<Picture, Error> {
    let mut out = Picture::default();
    Decoder::new(Cpu::detect()).decode_into(data.into(), None, &mut out)?;
    Ok(out)
}

/// A damaged JPEG that is filled in has libjpeg's pixels, and each of its regions equals that part
/// of it. An intact one is unaffected.
pub fn jpeg_lenient(data: &[u8]) {
    if !is_small_jpeg(data) {
        return tally::add("no JPEG, or too large");
    }
    let options = DecodeOptions { on_damage: OnDamage::FillIn, ..DecodeOptions::default() };
    let whole = decoded_with(data.into(), None, &options);
    if let Ok(strict) = strict(data) {
        assert!(whole.as_ref() == Ok(&strict), "a sound file becomes something else");
        tally::add("sound");
    } else {
        tally::add(if whole.is_ok() { "filled in" } else { "refused" });
    }
    if let Ok(whole) = &whole {
        let region = region_of(choice_of(data), (whole.width, whole.height));
        let part = decoded_with(data.into(), Some(region), &options);
        assert_part(&part.expect("the whole picture decodes"), region, whole);
    }
    #[cfg(feature = "libjpeg-turbo")]
    crate::oracle::compare_damaged(data, whole.as_ref());
}

/// A region of a JPEG equals that part of the whole, with and without entry points. The last eight
/// bytes select the region.
pub fn jpeg_region(data: &[u8]) {
    let Some((data, choice)) = data.split_last_chunk::<REGION_BYTES>() else { return };
    if !is_small_jpeg(data) {
        return tally::add("no JPEG, or too large");
    }
    let Ok(whole) = decoded(data.into(), None) else { return tally::add("refused") };
    tally::add("decoded");
    let region = region_of(*choice, (whole.width, whole.height));
    // A region may decode if the whole does not, but never the other way round.
    let part = decoded(data.into(), Some(region)).expect("the whole picture decodes");
    assert_part(&part, region, &whole);
    for spacing in [Spacing::McuRow, Spacing::Mcus(1), Spacing::Mcus(3), Spacing::Mcus(16)] {
        let made = entry_points(data, spacing).expect("the whole picture decodes");
        let Some(made) = made else { return };
        tally::add("regions by entry points");
        let encoded = Encoded { bytes: data, entry_points: &made, crc32c: None };
        let part = decoded(encoded, Some(region)).expect("the whole picture decodes");
        assert_part(&part, region, &whole);
    }
}
