//! Compresses and decompresses single samples.

use crate::vocabulary::Codec;
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Compresses a sample.
pub(super) fn compress(codec: Codec, raw: Vec<u8>) -> Vec<u8> {
    match codec {
        Codec::None => raw,
        Codec::Lz4 => lz4_flex::block::compress(&raw),
        Codec::Zstd => compress_to_vec(&raw[..], CompressionLevel::Fastest),
    }
}

/// Most bytes that compressing so many bytes gives, block headers included.
pub(super) fn compressed_bytes_max(codec: Codec, raw: u64) -> u64 {
    match codec {
        Codec::None => raw,
        Codec::Lz4 => raw + raw / 255 + 64,
        Codec::Zstd => raw + raw / 128 + 1024,
    }
}

/// Decompresses a sample into memory of its length; `None` where it does not fill it.
pub(super) fn decompress(codec: Codec, stored: &[u8], raw: &mut [u8]) -> Option<()> {
    let bytes = match codec {
        Codec::None => {
            (stored.len() == raw.len()).then(|| raw.copy_from_slice(stored))?;
            raw.len()
        }
        Codec::Lz4 => lz4_flex::block::decompress_into(stored, raw).ok()?,
        Codec::Zstd => FrameDecoder::new().decode_all(stored, raw).ok()?,
    };
    (bytes == raw.len()).then_some(())
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
                let mut back = vec![0; raw.len()];
                prop_assert_eq!(decompress(codec, &stored, &mut back), Some(()));
                prop_assert_eq!(&back, &raw);
                let mut longer = vec![0; raw.len() + 1];
                prop_assert_eq!(decompress(codec, &stored, &mut longer), None);
            }
        }
    }
}
