//! Executes `random_iou_crop`.

use super::{Geometry, StageRefusal};
use crate::points::{BoxesAt, Points};
use crate::stage::{Fit, Stage};
use crate::{Error, Region};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{Padding, RandomIouCrop};

/// Left, top, right and bottom.
type Corners = [f64; 4];

/// Whether the centre of a box is strictly inside a part.
fn is_centred_in(region: Region, [left, top, right, bottom]: Corners) -> bool {
    let (x, y) = (0.5 * (left + right), 0.5 * (top + bottom));
    let [from_x, from_y, to_x, to_y] = corners(region);
    from_x < x && x < to_x && from_y < y && y < to_y
}

fn corners(region: Region) -> Corners {
    let Region { x, y, width, height } = region;
    [x, y, x + width, y + height].map(f64::from)
}

/// Intersection over union; 0 if both are empty.
fn overlap(one: Corners, other: Corners) -> f64 {
    let area = |[left, top, right, bottom]: Corners| (right - left) * (bottom - top);
    let side =
        |low: usize, high: usize| (one[high].min(other[high]) - one[low].max(other[low])).max(0.0);
    let common = side(0, 2) * side(1, 3);
    let union = area(one) + area(other) - common;
    if union > 0.0 { common / union } else { 0.0 }
}

/// Draws the part of a picture of (height, width) to retain; `None` for all of it.
fn drawn(
    crop: &RandomIouCrop,
    (height, width): (u32, u32),
    boxes: &[Option<Corners>],
    draws: &mut Draws,
) -> Option<Region> {
    let last = u32::try_from(crop.sampler_options.len() - 1).expect("few options");
    for _ in 0..RandomIouCrop::ROUNDS_MAX {
        let least = crop.sampler_options[draws.up_to(last) as usize];
        if least >= 1.0 {
            return None;
        }
        for _ in 0..crop.trials {
            // A cast truncates, and a share is at most 1.
            let mut side = |length: u32| {
                (f64::from(length) * draws.uniform_in(crop.scale.0, crop.scale.1)) as u32
            };
            let w = side(width);
            let h = side(height);
            let ratio = f64::from(w) / f64::from(h);
            if w == 0 || h == 0 || ratio < crop.aspect_ratio.0 || ratio > crop.aspect_ratio.1 {
                continue;
            }
            let mut begin = |room: u32| (f64::from(room) * draws.uniform()) as u32;
            let x = begin(width - w);
            let y = begin(height - h);
            let region = Region { x, y, width: w, height: h };
            let centred = boxes.iter().flatten().filter(|it| is_centred_in(region, **it));
            let overlaps = centred.map(|it| overlap(*it, corners(region)));
            if overlaps.fold(f64::NEG_INFINITY, f64::max) >= least {
                return Some(region);
            }
        }
    }
    None
}

impl Geometry for RandomIouCrop {
    fn join(
        &self,
        stage: &mut Stage,
        draws: &mut Draws,
        points: &mut Points,
    ) -> Result<Fit, StageRefusal> {
        let boxes = match points.boxes(|point| stage.place(point, stage.canvas)) {
            BoxesAt::Known(boxes) => boxes,
            BoxesAt::Unknown => return Ok(Fit::Here),
            BoxesAt::None => return Err(Error::NoBoxes.into()),
        };
        let Some(region) = drawn(self, stage.size(), &boxes, draws) else { return Ok(Fit::Here) };
        let none = Padding { left: 0, top: 0, right: 0, bottom: 0 };
        let fit = stage.cut(none, region, [0; 4]);
        if fit == Fit::Here {
            let is_kept = |it: &Option<Corners>| it.is_some_and(|it| is_centred_in(region, it));
            points.drop_boxes(|index| !is_kept(&boxes[index]));
        }
        Ok(fit)
    }
}
