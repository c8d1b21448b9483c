//! Positions of an epoch per device, in proportion to what each device holds.

/// Divides `length` positions in proportion to `masses`, at most `most` for each device: the whole
/// part of each share, then one more by the largest remainder; of equal remainders, the lower
/// device comes first. Any excess over `most` is divided among the other devices. The sum of `most`
/// is at least `length`.
pub(super) fn divide(length: u64, masses: &[u128], most: &[u64]) -> Vec<u64> {
    let mut shares = vec![0u64; masses.len()];
    let mut left = length;
    while left > 0 {
        let open: Vec<usize> = (0..masses.len())
            .filter(|&device| masses[device] > 0 && shares[device] < most[device])
            .collect();
        let total: u128 = open.iter().map(|&device| masses[device]).sum();
        assert!(total > 0, "the devices hold fewer positions than an epoch has");
        // Masses are below 2^64 and lengths at most 2^48.
        let product = |device: usize| u128::from(left) * masses[device];
        let mut parts: Vec<u64> =
            open.iter().map(|&device| (product(device) / total) as u64).collect();
        let mut by_remainder: Vec<usize> = (0..open.len()).collect();
        by_remainder.sort_by_key(|&at| (std::cmp::Reverse(product(open[at]) % total), open[at]));
        let missing = usize::try_from(left - parts.iter().sum::<u64>()).expect("below the devices");
        by_remainder[..missing].iter().for_each(|&at| parts[at] += 1);
        for (&device, part) in open.iter().zip(parts) {
            let taken = part.min(most[device] - shares[device]);
            shares[device] += taken;
            left -= taken;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn positions_follow_the_masses() {
        assert_eq!(divide(10, &[1, 1], &[u64::MAX; 2]), [5, 5]);
        assert_eq!(divide(10, &[2, 1], &[u64::MAX; 2]), [7, 3]);
        assert_eq!(divide(1, &[1, 1, 1], &[u64::MAX; 3]), [1, 0, 0]);
        assert_eq!(divide(7, &[0, 3], &[0, 9]), [0, 7]);
    }

    #[test]
    fn what_a_device_cannot_hold_goes_to_the_others() {
        assert_eq!(divide(10, &[9, 1], &[4, 20]), [4, 6]);
        assert_eq!(divide(10, &[100, 1, 1], &[2, 3, 5]), [2, 3, 5]);
    }
}
