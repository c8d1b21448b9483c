//! Colours of a heat map: the larger the value, the darker.

/// From white (0) through blue to a dark violet (1); what is below zero is grey.
pub(super) fn heat(share: f64) -> String {
    let [red, green, blue] = mixed(share);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn mixed(share: f64) -> [u8; 3] {
    const STOPS: [[f64; 3]; 5] = [
        [250.0, 250.0, 246.0],
        [199.0, 228.0, 225.0],
        [106.0, 178.0, 205.0],
        [52.0, 110.0, 170.0],
        [49.0, 40.0, 105.0],
    ];
    if share.is_nan() || share < 0.0 {
        return [205; 3];
    }
    let place = share.min(1.0) * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let rest = place - below as f64;
    let (from, to) = (STOPS[below], STOPS[below + 1]);
    std::array::from_fn(|part| (from[part] + (to[part] - from[part]) * rest).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::{heat, mixed};

    #[test]
    fn heat_grows_darker_and_below_zero_is_grey() {
        let light = |share| mixed(share).map(u32::from).iter().sum::<u32>();
        let steps: Vec<u32> = (0..=20).map(|step| light(f64::from(step) / 20.0)).collect();
        assert!(steps.is_sorted_by(|left, right| left > right), "{steps:?}");
        assert_eq!(heat(-0.1), "#cdcdcd");
        assert_eq!(heat(f64::NAN), "#cdcdcd");
        assert_eq!(heat(7.0), heat(1.0));
    }
}
