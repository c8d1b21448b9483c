//! `keypoints`: points of the picture, such as the joints of people.

use super::Data;
use crate::recipe::OutsidePoint;
use crate::recipe::declaration::{Key, KeyType, TargetDeclaration};
use crate::recipe::value::{Value, Values};
use std::borrow::Cow;

/// Maximum number of pairs of points that are swapped.
const SWAPS_MAX: usize = 256;

/// Points: column and row, and optionally a third number, which is not changed and is 0 for a
/// missing point.
#[derive(Debug, Clone, PartialEq)]
pub struct Keypoints {
    /// Points of an object that are swapped if the picture is mirrored, by their indices from 0,
    /// such as left and right hand.
    pub swap: Vec<[u32; 2]>,
    /// How a point outside the result is handled.
    pub outside: OutsidePoint,
}

impl Data for Keypoints {
    const DECLARATION: &'static TargetDeclaration = &TargetDeclaration {
        name: "keypoints",
        about: "points: column and row in pixels, and optionally a third number, which is 0 if \
            the point is missing; float32 in batches",
        keys: &[
            Key::optional(
                "swap",
                KeyType::Pairs { count_max: SWAPS_MAX },
                Value::Pairs(Cow::Borrowed(&[])),
                "points that are swapped if the picture is mirrored, as pairs of indices from 0",
            ),
            Key::optional(
                "outside",
                KeyType::Word { choices: OutsidePoint::NAMES },
                Value::Word(OutsidePoint::Clamp.name()),
                "what happens to a point outside the result: it is moved to the border, kept \
                    unchanged, or all its numbers are set to 0",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        Self {
            swap: values.pairs("swap").to_vec(),
            outside: values.named("outside", OutsidePoint::from_name),
        }
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Pairs(self.swap.clone().into()), Value::Word(self.outside.name())]
    }
}
