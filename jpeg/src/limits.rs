//! The size above which a picture is refused, before any memory is allocated for it.

use crate::error::Error;

/// Maximum number of pixels of a picture: 2^28.
pub const PIXELS_MAX: u64 = 1 << 28;

/// Refuses a size, in pixels, of more than [`PIXELS_MAX`].
pub(crate) fn check_pixels((width, height): (u32, u32)) -> Result<(), Error> {
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(Error::TooLarge { width, height, limit: PIXELS_MAX });
    }
    Ok(())
}
