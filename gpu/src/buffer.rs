//! Growable device memory, and the division of a limit among several such buffers.

use crate::{Compute, DeviceMemory, Error};

/// Minimum size of a buffer. A buffer is never empty, so that it has an address.
const BYTES_MIN: usize = 256;

/// Device memory that grows as needed and is reused.
#[derive(Debug, Default)]
pub struct Buffer(Option<DeviceMemory>);

impl Buffer {
    /// Bytes allocated.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, DeviceMemory::bytes)
    }

    /// The memory, if it has been allocated.
    pub fn get(&self) -> Option<&DeviceMemory> {
        self.0.as_ref()
    }

    /// Returns memory of at least this size. Growing discards the content.
    pub(crate) fn grown(
        &mut self,
        compute: &mut dyn Compute,
        bytes: usize,
    ) -> Result<&DeviceMemory, Error> {
        if self.0.is_none() || self.bytes() < bytes {
            let wanted = bytes.max(self.bytes() / 4 * 5).max(BYTES_MIN);
            // The old memory is freed first, so that both need not fit.
            self.0 = None;
            self.0 = Some(compute.allocate(wanted)?);
        }
        Ok(self.0.as_ref().expect("it was just allocated"))
    }

    /// Frees the memory.
    pub fn release(&mut self) {
        self.0 = None;
    }
}

/// The size of a buffer for this many bytes of content.
pub fn needed(bytes: usize) -> usize {
    bytes.max(BYTES_MIN)
}

/// New sizes of buffers that need `needs` bytes and have `have` bytes; their sum is at most
/// `limit_bytes`. Buffers that are large enough keep their size if the limit allows it. `None` if
/// the sum of the needs exceeds the limit.
pub fn sizes<const N: usize>(
    needs: &[usize; N],
    have: &[usize; N],
    limit_bytes: u64,
) -> Option<[usize; N]> {
    let sum = |sizes: &[usize; N]| sizes.iter().fold(0_u64, |sum, it| sum + *it as u64);
    let fits = |sizes: &[usize; N]| sum(sizes) <= limit_bytes;
    if !fits(needs) {
        return None;
    }
    let with_slack = |need: usize| need.saturating_add(need / 4);
    let grown = std::array::from_fn(|at| match needs[at] <= have[at] {
        true => have[at],
        false => with_slack(needs[at]).max(have[at] / 4 * 5),
    });
    let fresh = std::array::from_fn(|at| with_slack(needs[at]));
    // Close to the limit, the remaining bytes are divided in proportion to the needs.
    let left = limit_bytes - sum(needs);
    let total = u128::from(sum(needs)).max(1);
    let tight = std::array::from_fn(|at| {
        needs[at] + (u128::from(left) * needs[at] as u128 / total) as usize
    });
    [grown, fresh, tight].into_iter().find(fits)
}

/// Resizes buffers. Frees all buffers whose size changes before it allocates new ones. Returns the
/// number of allocations.
pub fn resize<const N: usize>(
    buffers: [&mut Buffer; N],
    sizes: &[usize; N],
    compute: &mut dyn Compute,
) -> Result<u64, Error> {
    let mut allocations = 0;
    let mut others: Vec<_> =
        buffers.into_iter().zip(sizes).filter(|(buffer, size)| buffer.bytes() != **size).collect();
    others.iter_mut().for_each(|(buffer, _)| buffer.release());
    for (buffer, size) in others {
        buffer.0 = Some(compute.allocate(*size)?);
        allocations += 1;
    }
    Ok(allocations)
}

#[cfg(test)]
mod tests {
    use super::sizes;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_are_enough_and_within_the_limit(
            needs: [u32; 4], have: [u32; 4], limit in 0..1_u64 << 34,
        ) {
            let (needs, have) = (needs.map(|it| it as usize), have.map(|it| it as usize));
            let sum = |sizes: &[usize; 4]| sizes.iter().map(|it| *it as u64).sum::<u64>();
            match sizes(&needs, &have, limit) {
                None => prop_assert!(sum(&needs) > limit),
                Some(found) => {
                    prop_assert!(sum(&found) <= limit);
                    prop_assert!(found.iter().zip(&needs).all(|(size, need)| size >= need));
                    let is_enough = have.iter().zip(&needs).all(|(have, need)| have >= need);
                    if is_enough && sum(&have) <= limit {
                        prop_assert_eq!(found, have);
                    }
                    // The next batch of the same kind allocates nothing.
                    prop_assert_eq!(sizes(&needs, &found, limit), Some(found));
                }
            }
        }
    }
}
