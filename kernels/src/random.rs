//! Random parameters of several operations, drawn from their streams.

use meetpoint_format::random::Draws;

/// Puts elements in a random order: the element at i changes places with that at `up_to(i)`, for i
/// from the last to 1.
pub(crate) fn shuffle<T>(elements: &mut [T], draws: &mut Draws) {
    for last in (1..elements.len()).rev() {
        let high = u32::try_from(last).expect("few elements are shuffled");
        elements.swap(last, draws.up_to(high) as usize);
    }
}
