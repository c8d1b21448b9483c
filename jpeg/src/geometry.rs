//! Which samples, blocks and MCUs the pixels of a region depend on.

use super::colours::Colours;
use super::damaged;
use super::markers::{COMPONENTS_MAX, Component, Frame};
use super::options::{DecodeOptions, DecodeScale};
use super::upsample::{SampleSpan, Upsampling};
use crate::{Error, Region};
use std::ops::Range;

/// The samples of one component that a region depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ComponentNeed {
    pub(super) upsampling: Upsampling,
    /// Samples per side of a transformed block.
    pub(super) scale: DecodeScale,
    /// Columns of the component that are not padding.
    pub(super) width: u32,
    /// Rows of the component that are not padding.
    pub(super) height: u32,
    /// Columns of samples.
    pub(super) columns: Range<u32>,
    /// Rows of samples.
    pub(super) rows: Range<u32>,
    /// Columns and rows of samples in an MCU.
    pub(super) mcu: (u32, u32),
}

/// The samples that a region depends on.
#[derive(Debug, Clone)]
pub(super) struct Need {
    components: [Option<ComponentNeed>; COMPONENTS_MAX],
    /// Columns of MCUs.
    pub(super) mcu_columns: Range<u32>,
    /// Rows of MCUs.
    pub(super) mcu_rows: Range<u32>,
}

impl Need {
    /// What the pixels of a region inside the frame depend on, by what its components mean. The
    /// region is in pixels of the picture at the options' scale.
    pub(super) fn of(
        frame: &Frame,
        region: Region,
        options: &DecodeOptions,
        colours: Colours,
    ) -> Result<Self, Error> {
        let count = colours.components_for(options.colour);
        let mut components = [const { None }; COMPONENTS_MAX];
        let mut mcu_columns = Range { start: u32::MAX, end: 0 };
        let mut mcu_rows = mcu_columns.clone();
        for (need, component) in components.iter_mut().zip(frame.components()).take(count) {
            let component = component_need(frame, component, region, options)?;
            let (wide, high) = component.mcu;
            mcu_columns.start = mcu_columns.start.min(component.columns.start / wide);
            mcu_columns.end = mcu_columns.end.max(component.columns.end.div_ceil(wide));
            mcu_rows.start = mcu_rows.start.min(component.rows.start / high);
            mcu_rows.end = mcu_rows.end.max(component.rows.end.div_ceil(high));
            *need = Some(component);
        }
        Ok(Self { components, mcu_columns, mcu_rows })
    }

    /// The samples needed of each component.
    pub(super) fn components(&self) -> impl Iterator<Item = &ComponentNeed> {
        self.components.iter().flatten()
    }

    /// The samples needed of one component, if the frame has it.
    pub(super) fn component(&self, index: usize) -> Option<&ComponentNeed> {
        self.components[index].as_ref()
    }
}

fn component_need(
    frame: &Frame,
    component: &Component,
    region: Region,
    options: &DecodeOptions,
) -> Result<ComponentNeed, Error> {
    let side = options.scale.side();
    let scale = component_scale(frame, component, options.scale);
    // From here on, sampling factors count samples of the scaled picture.
    let (h, v) = (component.h * scale.side(), component.v * scale.side());
    let (h_max, v_max) = (frame.h_max * side, frame.v_max * side);
    let width = (frame.width * h).div_ceil(frame.h_max * 8);
    let height = (frame.height * v).div_ceil(frame.v_max * 8);
    // At one sample a block, libjpeg never interpolates.
    let smooth = options.scale != DecodeScale::One;
    let upsampling = Upsampling::choose(h, v, h_max, v_max, width, smooth)
        .ok_or_else(|| damaged(0, "its sampling factors are not multiples of each other"))?;
    let (across, down) = upsampling.factors();
    let columns = region.x..region.x + region.width;
    let columns = match upsampling {
        Upsampling::FancyH2V1 | Upsampling::FancyH2V2 => {
            let columns = columns.start as usize..columns.end as usize;
            let needed = SampleSpan::needed(width as usize, columns);
            needed.start as u32..needed.end as u32
        }
        _ => columns.start / across..columns.end.div_ceil(across),
    };
    let mut rows = region.y / down..(region.y + region.height).div_ceil(down);
    if upsampling.needs_context_rows() {
        rows = rows.start.saturating_sub(1)..(rows.end + 1).min(height);
    }
    Ok(ComponentNeed { upsampling, scale, width, height, columns, rows, mcu: (h, v) })
}

/// The scale of a component: larger than the picture's where that saves upsampling, as libjpeg
/// chooses it (jdmaster.c, `jpeg_calc_output_dimensions`).
fn component_scale(frame: &Frame, component: &Component, picture: DecodeScale) -> DecodeScale {
    let mut scale = picture;
    let fits =
        |max: u32, factor: u32, side: u32| (max * picture.side()).is_multiple_of(factor * side * 2);
    loop {
        let side = scale.side();
        let larger = match scale {
            DecodeScale::One => DecodeScale::Two,
            DecodeScale::Two => DecodeScale::Four,
            DecodeScale::Four => DecodeScale::Eight,
            DecodeScale::Eight => return scale,
        };
        if !fits(frame.h_max, component.h, side) || !fits(frame.v_max, component.v, side) {
            return scale;
        }
        scale = larger;
    }
}
