//! Compresses and decompresses single samples.
//!
//! A compressed sample begins with its length: four bytes, little-endian, as the Python package
//! `lz4.block` stores it.

use meetpoint_format::dataset::Codec;
use meetpoint_format::dataset::schema::IMAGE_BYTES_MAX;
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of the length before a compressed sample.
const LENGTH_BYTES: usize = 4;

/// Compresses a sample of at most 4 GiB.
pub fn compress(codec: Codec, raw: Vec<u8>) -> Vec<u8> {
    let length = u32::try_from(raw.len()).expect("a sample of at most 4 GiB").to_le_bytes();
    match codec {
        Codec::None => raw,
        Codec::Lz4 => lz4_flex::block::compress_prepend_size(&raw),
        Codec::Zstd => {
            let frame = compress_to_vec(&raw[..], CompressionLevel::Fastest);
            [&length[..], &frame].concat()
        }
    }
}

/// Maximum length of `raw` compressed bytes, length and block headers included.
pub fn compressed_bytes_max(codec: Codec, raw: u64) -> u64 {
    match codec {
        Codec::None => raw,
        Codec::Lz4 => raw + raw / 255 + 64,
        Codec::Zstd => raw + raw / 128 + 1024,
    }
}

/// Length of a sample before compression, as stored; `None` if it is missing or exceeds the limit
/// of a sample.
pub(crate) fn raw_bytes(codec: Codec, stored: &[u8]) -> Option<usize> {
    let length = match codec {
        Codec::None => return Some(stored.len()),
        Codec::Lz4 | Codec::Zstd => stored.get(..LENGTH_BYTES)?,
    };
    let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
    (u64::from(length) <= IMAGE_BYTES_MAX).then_some(length as usize)
}

/// The sample, decompressed into `memory` if it is compressed; `None` for bytes that [`compress`]
/// cannot have produced.
pub fn decompress<'a>(codec: Codec, stored: &'a [u8], memory: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let bytes = raw_bytes(codec, stored)?;
    let of_codec = match codec {
        Codec::None => return Some(stored),
        Codec::Lz4 | Codec::Zstd => &stored[LENGTH_BYTES..],
    };
    memory.resize(bytes, 0);
    let got = match codec {
        Codec::None => bytes,
        Codec::Lz4 => lz4_flex::block::decompress_into(of_codec, memory).ok()?,
        Codec::Zstd => FrameDecoder::new().decode_all(of_codec, memory).ok()?,
    };
    (got == bytes).then_some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_codec_returns_what_it_got(
            runs in prop::collection::vec((any::<u8>(), 1usize..400), 0..40),
        ) {
            let raw: Vec<u8> =
                runs.iter().flat_map(|&(byte, count)| std::iter::repeat_n(byte, count)).collect();
            for &codec in Codec::ALL {
                let stored = compress(codec, raw.clone());
                prop_assert!(stored.len() as u64 <= compressed_bytes_max(codec, raw.len() as u64));
                prop_assert_eq!(raw_bytes(codec, &stored), Some(raw.len()));
                let mut memory = Vec::new();
                prop_assert_eq!(decompress(codec, &stored, &mut memory), Some(&raw[..]));
            }
        }

        #[test]
        fn damaged_bytes_are_refused_or_give_other_bytes_and_never_panic(
            raw in prop::collection::vec(0u8..4, 1..300),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            for codec in [Codec::Lz4, Codec::Zstd] {
                let mut stored = compress(codec, raw.clone());
                let at = at.index(stored.len());
                stored[at] = byte;
                let mut memory = Vec::new();
                let end = decompress(codec, &stored, &mut memory).map(<[u8]>::len);
                prop_assert!(end.is_none_or(|end| end <= IMAGE_BYTES_MAX as usize));
                prop_assert_eq!(decompress(codec, &stored[..at.min(3)], &mut memory), None);
            }
        }
    }
}
