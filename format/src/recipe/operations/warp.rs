//! The common checks of all operations that move each pixel of a picture.

use crate::recipe::WarpInterpolation;
use crate::recipe::error::Fault;
use crate::recipe::sample_type::SampleType;
use crate::recipe::vocabulary::Dtype;

/// Refuses interpolation between pixels of 16 bits or floats: Pillow's warps support only the
/// nearest pixel for them.
pub(super) fn follow(interpolation: WarpInterpolation, sample: &SampleType) -> Result<(), Fault> {
    if sample.dtype == Dtype::Uint8 || interpolation == WarpInterpolation::Nearest {
        return Ok(());
    }
    let (name, dtype) = (interpolation.name(), sample.dtype.name());
    let problem = format!("is \"{name}\", but the picture has values of {dtype} here");
    Err(Fault::of_value("interpolation", problem, "\"nearest\""))
}
