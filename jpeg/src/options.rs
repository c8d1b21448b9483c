//! Options that trade exactness for speed.

use super::idct;

/// Samples per side that an 8x8 block is decoded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum DecodeScale {
    /// An eighth of the resolution.
    One,
    /// A quarter.
    Two,
    /// Half.
    Four,
    /// All of it.
    #[default]
    Eight,
}

impl DecodeScale {
    /// The number.
    pub fn side(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// Pixels of a side of `length` pixels, as libjpeg rounds it.
    pub fn scaled(self, length: u32) -> u32 {
        (u64::from(length) * u64::from(self.side())).div_ceil(8) as u32
    }

    /// The smallest scale that leaves at least `to` of `from` pixels per side.
    pub fn for_target(from: (u32, u32), to: (u32, u32)) -> Self {
        let leaves = |scale: &Self| {
            let enough =
                |from: u32, to: u32| u64::from(from) * u64::from(scale.side()) >= u64::from(to) * 8;
            enough(from.0, to.0) && enough(from.1, to.1)
        };
        [Self::One, Self::Two, Self::Four].into_iter().find(leaves).unwrap_or(Self::Eight)
    }

    /// The scaled transform, unless it is full resolution.
    pub(super) fn transform(self) -> Option<idct::Scale> {
        match self {
            Self::One => Some(idct::Scale::One),
            Self::Two => Some(idct::Scale::Two),
            Self::Four => Some(idct::Scale::Four),
            Self::Eight => None,
        }
    }
}

/// How a damaged file is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnDamage {
    /// It is an error.
    #[default]
    Fail,
    /// Missing samples are filled in as libjpeg does, whose warnings are then ignored. What libjpeg
    /// refuses is an error.
    FillIn,
}

/// Colours of the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputColour {
    /// Red, green and blue.
    #[default]
    Rgb,
    /// Grey, in three equal planes: libjpeg's grayscale output, which is the luma plane where the
    /// file has one. CMYK and YCCK, which libjpeg does not convert to grey, become RGB first.
    Grey,
}

/// The exactness of the pixels. The default is exact: libjpeg-turbo's default decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeOptions {
    /// Resolution, as libjpeg's `scale_num` of 8.
    pub scale: DecodeScale,
    /// How a damaged file is handled.
    pub on_damage: OnDamage,
    /// Colours of the pixels.
    pub colour: OutputColour,
}

#[cfg(test)]
mod tests {
    use super::DecodeScale;

    #[test]
    fn a_scale_leaves_enough_pixels_and_less_than_twice_as_many() {
        for (from, to, side) in [
            ((224, 224), (224, 224), 8),
            ((447, 500), (224, 224), 8),
            ((448, 448), (224, 224), 4),
            ((448, 900), (224, 224), 4),
            ((900, 896), (224, 224), 2),
            ((1792, 1792), (224, 224), 1),
            ((9000, 9000), (224, 224), 1),
            ((100, 100), (224, 224), 8),
        ] {
            assert_eq!(DecodeScale::for_target(from, to).side(), side, "{from:?} {to:?}");
        }
    }
}
