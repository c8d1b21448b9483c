//! How vector code steps along a row.

/// The first elements of the steps of `STEP` elements that cover `count` of them, at least `STEP`:
/// the last step ends with the row and may overlap the one before.
///
/// An iterator, because a closure handed to a function without the caller's target features is not
/// compiled into it.
#[inline(always)]
pub(super) fn steps<const STEP: usize>(count: usize) -> impl Iterator<Item = usize> {
    let last = count - STEP;
    (0..count.div_ceil(STEP)).map(move |step| (step * STEP).min(last))
}
