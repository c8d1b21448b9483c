//! The reference implementation of the separation of channels.

/// Writes the channels of pixels into planes.
pub(super) fn separate(pixels: &[[u8; 3]], planes: [&mut [u8]; 3]) {
    for (channel, plane) in planes.into_iter().enumerate() {
        for (out, pixel) in plane.iter_mut().zip(pixels) {
            *out = pixel[channel];
        }
    }
}
