//! The number of batches of each part that its devices prepare, from t_c, t_g and each part's t_s.
//!
//! With R = Σ 1/t_s over the parts below their cap and C the sum of the caps of the other parts,
//! all parts end at the same time T, each with T/t_s batches:
//!
//! ```text
//! equal finish:  T = (N - C)·t_c / (1 + R·t_c)
//! optimal:       T = (N·t_c - C·(t_c-t_g)) / (1 + R·(t_c-t_g))
//! ```
//!
//! For one part these are n_s = N·t_c/(t_c+t_s) (DDLP, arXiv 2407.00005) and
//! n_s = N·t_c/(t_s+t_c-t_g).

/// One part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartSpeed {
    /// t_s of all its devices together; 0 if it gets nothing.
    pub(crate) device_ns: u64,
    /// Its cap: the number of batches that it holds and that its spool allows.
    pub(crate) cap: u32,
}

/// The inputs of the division.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DivisionInputs {
    pub(crate) batches: u32,
    pub(crate) host_ns: u64,
    pub(crate) ready_ns: u64,
}

/// Computes shares so that both ends finish together. Returns whether a cap reduced a share.
pub(crate) fn equal_finish(
    inputs: DivisionInputs,
    parts: &[PartSpeed],
    shares: &mut [u32],
) -> bool {
    let n = f64::from(inputs.batches);
    let t_c = inputs.host_ns as f64;
    fill(parts, shares, |rate, capped| (n - capped) * t_c / (1.0 + rate * t_c))
}

/// Computes shares for the shortest epoch: devices continue while their batches are consumed. All
/// shares are 0 if a device batch saves nothing.
pub(crate) fn optimal(inputs: DivisionInputs, parts: &[PartSpeed], shares: &mut [u32]) -> bool {
    shares.fill(0);
    if inputs.ready_ns >= inputs.host_ns {
        return false;
    }
    let n = f64::from(inputs.batches);
    let t_c = inputs.host_ns as f64;
    let saved = t_c - inputs.ready_ns as f64;
    let limited = fill(parts, shares, |rate, capped| {
        let together = (n * t_c - capped * saved) / (1.0 + rate * saved);
        // Devices that are faster than the accelerator prepare everything.
        if rate > 0.0 { together.min((n - capped) / rate) } else { together }
    });
    trim(inputs.batches, shares);
    limited
}

/// Finds T by removing parts that reach their cap, until none does.
fn fill(parts: &[PartSpeed], shares: &mut [u32], end: impl Fn(f64, f64) -> f64) -> bool {
    // Below its cap: `None` in the sense of the loop is a share of `u32::MAX`.
    shares.fill(u32::MAX);
    let mut limited = false;
    loop {
        let (mut rate, mut capped) = (0.0, 0.0);
        for (part, share) in parts.iter().zip(shares.iter_mut()) {
            if part.device_ns == 0 || part.cap == 0 {
                *share = 0;
            } else if *share == u32::MAX {
                rate += 1.0 / part.device_ns as f64;
            } else {
                capped += f64::from(*share);
            }
        }
        let together = end(rate, capped).max(0.0);
        let mut over = false;
        for (part, share) in parts.iter().zip(shares.iter_mut()) {
            if *share == u32::MAX && together / part.device_ns as f64 > f64::from(part.cap) + 0.5 {
                *share = part.cap;
                over = true;
            }
        }
        limited |= over;
        if over {
            continue;
        }
        for (part, share) in parts.iter().zip(shares.iter_mut()) {
            if *share == u32::MAX {
                // Rounds to the nearest number; a share is at most its cap by the check above.
                let exact = together / part.device_ns as f64;
                *share = ((exact + 0.5) as u32).min(part.cap);
            }
        }
        return limited;
    }
}

/// Corrects shares whose sum exceeds the batches because of rounding.
fn trim(batches: u32, shares: &mut [u32]) {
    let sum: u64 = shares.iter().map(|&share| u64::from(share)).sum();
    let mut over = sum.saturating_sub(batches.into());
    for share in shares.iter_mut().rev() {
        let less = over.min(u64::from(*share));
        *share -= u32::try_from(less).expect("at most the share");
        over -= less;
    }
}

/// Divides a given total among the parts by their caps and speeds; the host gets the excess over
/// all caps.
pub(crate) fn divide(total: u32, parts: &[PartSpeed], shares: &mut [u32]) {
    let rates: f64 = parts.iter().map(rate).sum();
    for (part, share) in parts.iter().zip(shares.iter_mut()) {
        let exact = f64::from(total) * rate(part) / rates.max(f64::MIN_POSITIVE);
        *share = (exact as u32).min(part.cap);
    }
    trim(total, shares);
    let sum: u64 = shares.iter().map(|&share| u64::from(share)).sum();
    let mut left = u64::from(total).saturating_sub(sum);
    for (part, share) in parts.iter().zip(shares.iter_mut()) {
        let more = left.min(u64::from(part.cap - *share));
        *share += u32::try_from(more).expect("at most the cap");
        left -= more;
    }
}

/// Batches per nanosecond; a part of unknown speed counts as one batch per second.
fn rate(part: &PartSpeed) -> f64 {
    let unknown = 1_000_000_000;
    1.0 / (if part.device_ns == 0 { unknown } else { part.device_ns }) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(batches: u32, host_ns: u64, ready_ns: u64) -> DivisionInputs {
        DivisionInputs { batches, host_ns, ready_ns }
    }

    fn one(
        of: fn(DivisionInputs, &[PartSpeed], &mut [u32]) -> bool,
        inputs: DivisionInputs,
        device_ns: u64,
    ) -> u32 {
        let mut shares = [0];
        of(inputs, &[PartSpeed { device_ns, cap: inputs.batches }], &mut shares);
        shares[0]
    }

    #[test]
    fn equal_finish_is_the_published_formula_rounded() {
        assert_eq!(one(equal_finish, inputs(5_000, 250, 0), 1_000), 1_000);
        assert_eq!(one(equal_finish, inputs(9, 1, 0), 2), 3);
        assert_eq!(one(equal_finish, inputs(10, 1, 0), 2), 3);
        assert_eq!(one(equal_finish, inputs(10, 1, 0), 0), 0);
    }

    #[test]
    fn optimal_is_the_derived_formula_rounded() {
        assert_eq!(one(optimal, inputs(5_000, 1_000, 375), 2_000), 1_905);
        assert_eq!(one(optimal, inputs(100, 1_000, 400), 10), 100);
        assert_eq!(one(optimal, inputs(100, 1_000, 1_000), 10), 0);
    }

    #[test]
    fn devices_of_unlike_speed_end_together_and_caps_are_made_up_for() {
        let mut shares = [0; 3];
        let parts = [(1_000, 2_000), (2_000, 2_000), (4_000, 2_000)];
        let parts = parts.map(|(device_ns, cap)| PartSpeed { device_ns, cap });
        assert!(!equal_finish(inputs(2_750, 1_000, 0), &parts, &mut shares));
        assert_eq!(shares, [1_000, 500, 250]);
        let capped = [PartSpeed { cap: 100, ..parts[0] }, parts[1], parts[2]];
        assert!(equal_finish(inputs(1_850, 1_000, 0), &capped, &mut shares));
        assert_eq!(shares, [100, 500, 250]);
    }

    #[test]
    fn a_total_is_divided_by_speed() {
        let mut shares = [0; 3];
        let parts = [(1_000, 90), (2_000, 90), (0, 3)];
        let parts = parts.map(|(device_ns, cap)| PartSpeed { device_ns, cap });
        divide(60, &parts, &mut shares);
        assert_eq!(shares.iter().sum::<u32>(), 60);
        divide(183, &parts, &mut shares);
        assert_eq!(shares, [90, 90, 3]);
    }
}
