//! Colours and letters of charts.

use plotters::prelude::*;

/// Text.
pub(super) const INK: RGBColor = RGBColor(27, 31, 39);
/// Lines that are no data.
pub(super) const RULE: RGBColor = RGBColor(223, 227, 234);

/// Colours that are told apart by most people, also in print (after Okabe and Ito).
const PALETTE: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(27, 31, 39),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(140, 90, 40),
];

/// The colour at a place of the palette, which repeats.
pub(super) fn colour(place: usize) -> RGBColor {
    PALETTE[place % PALETTE.len()]
}

/// Letters of legends, marks and axes.
pub(super) fn label() -> TextStyle<'static> {
    ("sans-serif", 14).into_font().color(&INK)
}

/// Letters of a title.
pub(super) fn title() -> TextStyle<'static> {
    ("sans-serif", 17).into_font().color(&INK)
}

/// From white (0) through blue to a dark violet (1); what is below zero is grey.
pub(super) fn heat(share: f64) -> RGBColor {
    const STOPS: [(f64, f64, f64); 5] = [
        (250.0, 250.0, 246.0),
        (199.0, 228.0, 225.0),
        (106.0, 178.0, 205.0),
        (52.0, 110.0, 170.0),
        (49.0, 40.0, 105.0),
    ];
    if share.is_nan() || share < 0.0 {
        return RGBColor(205, 205, 205);
    }
    let place = share.min(1.0) * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let rest = place - below as f64;
    let (from, to) = (STOPS[below], STOPS[below + 1]);
    let mix = |from: f64, to: f64| (from + (to - from) * rest).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::heat;
    use plotters::prelude::RGBColor;

    #[test]
    fn heat_grows_darker_and_below_zero_is_grey() {
        let light = |share| {
            let RGBColor(r, g, b) = heat(share);
            u32::from(r) + u32::from(g) + u32::from(b)
        };
        let steps: Vec<u32> = (0..=20).map(|step| light(f64::from(step) / 20.0)).collect();
        assert!(steps.is_sorted_by(|left, right| left > right), "{steps:?}");
        assert_eq!(heat(-0.1), RGBColor(205, 205, 205));
        assert_eq!(heat(f64::NAN), RGBColor(205, 205, 205));
        assert_eq!(heat(7.0), heat(1.0));
    }
}
