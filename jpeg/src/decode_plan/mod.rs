//! The inputs that a decoder for another processor needs for one picture: the parsed headers, the
//! parts that a region depends on, and the positions from which its data can be decoded in
//! parallel.
//!
//! ```
//! use meetpoint_jpeg::{DecodeOptions, DecodePlan, Planner, Region};
//! # fn main() -> Result<(), meetpoint_jpeg::PlanError> {
//! # let file = include_bytes!("../../tests/golden/jpeg/420-33x47.jpg").as_slice();
//! let (mut planner, mut plan) = (Planner::default(), DecodePlan::default());
//! let options = DecodeOptions::default();
//! let (width, height) = planner.open(file.into(), options.on_damage)?;
//! let region = Region { x: 0, y: 0, width, height };
//! planner.plan_opened(file.into(), region, &options, &mut plan)?;
//! assert_eq!(plan.components.len(), 3);
//! assert_eq!(plan.units.len(), 6);
//! assert_eq!(plan.segments.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! In reading order: [`DecodePlan`], [`Planner`], `segments`.

mod plan;
mod planner;
mod segments;
#[cfg(test)]
mod tests;

pub use plan::{
    DecodePlan, PlanColours, PlanError, PlannedComponent, PlannedForm, Segment, SegmentEnd, Unit,
    UpsamplingKind,
};
pub use planner::Planner;
