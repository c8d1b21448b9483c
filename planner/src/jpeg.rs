//! Re-encodes pictures as JPEG, which loses detail.

use jpeg_encoder::{ColorType, Encoder};
use meetpoint_format::recipe::TensorSpec;
use meetpoint_kernels::Tensor;

/// A picture as a JPEG with a quality from 1 to 100, without chroma subsampling; `None` if a side
/// exceeds 65535 pixels.
pub(crate) fn encode_jpeg(picture: &Tensor, quality: u8) -> Option<Vec<u8>> {
    let TensorSpec { width, height, channels, .. } = picture.spec;
    let columns = u16::try_from(width).ok()?;
    let rows = u16::try_from(height).ok()?;
    let colours = if channels == 1 { ColorType::Luma } else { ColorType::Rgb };
    let mut encoded = Vec::new();
    let encoder = Encoder::new(&mut encoded, quality);
    encoder.encode(&picture.data, columns, rows, colours).ok()?;
    Some(encoded)
}
