//! The properties of a picture that a decoder needs before its coefficients: size, components,
//! tables.

use super::cursor::Cursor;
use crate::form_error::{FormError, damaged};
use crate::limits::PIXELS_MAX;
use crate::{Coefficients, QuantTable};
use arrayvec::ArrayVec;

pub use crate::frame::COMPONENTS_MAX;
/// The colour space of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Colour {
    /// One component, or components of unknown meaning.
    None = 0,
    /// Luma and two colour differences, as JFIF has them.
    YCbCr = 1,
    /// Red, green, blue.
    Rgb = 2,
    /// Cyan, magenta, yellow, black; inverted as Adobe stores them.
    Cmyk = 3,
    /// CMYK whose first three are stored as luma and colour differences.
    Ycck = 4,
}

/// A component of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormComponent {
    /// Blocks of an MCU along a row, 1..=4.
    pub horizontal: u8,
    /// Blocks of an MCU along a column, 1..=4.
    pub vertical: u8,
    /// Index of its table in [`Frame::quant_tables`].
    pub quant_table: u8,
}

/// The properties of a picture that a decoder needs before its coefficients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Columns of pixels, 1..=65535.
    pub width: u32,
    /// Rows of pixels, 1..=65535.
    pub height: u32,
    /// The colour space of the components.
    pub colour: Colour,
    /// Components, 1..=4 of them. A single one always has sampling 1x1 here: its MCU is one block.
    pub components: ArrayVec<FormComponent, COMPONENTS_MAX>,
    /// Tables that the components use, 1..=4 of them.
    pub quant_tables: ArrayVec<QuantTable, COMPONENTS_MAX>,
}

impl Frame {
    /// MCUs in a row and rows of MCUs.
    pub fn mcus(&self) -> (u32, u32) {
        let most = |of: fn(&FormComponent) -> u8| {
            u32::from(self.components.iter().map(of).max().unwrap_or(1))
        };
        let wide = 8 * most(|component| component.horizontal);
        let high = 8 * most(|component| component.vertical);
        (self.width.div_ceil(wide), self.height.div_ceil(high))
    }

    /// Why this frame cannot be stored, if it cannot.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let pixels = u64::from(self.width) * u64::from(self.height);
        let sides = [self.width, self.height];
        let count = |component: &FormComponent| {
            usize::from(component.horizontal) * usize::from(component.vertical)
        };
        let tables = self.quant_tables.len();
        let sampling = 1..=4u8;
        if sides.iter().any(|side| !(1..=65535).contains(side)) {
            Some("a side is not 1 to 65535")
        } else if pixels > PIXELS_MAX {
            Some("more pixels than 2^28")
        } else if !(1..=COMPONENTS_MAX).contains(&self.components.len()) {
            Some("not 1 to 4 components")
        } else if !(1..=COMPONENTS_MAX).contains(&tables) {
            Some("not 1 to 4 quantisation tables")
        } else if self.components.iter().any(|component| {
            !sampling.contains(&component.horizontal) || !sampling.contains(&component.vertical)
        }) {
            Some("a sampling factor is not 1 to 4")
        } else if self.components.len() == 1 && count(&self.components[0]) != 1 {
            Some("a single component has sampling 1x1")
        } else if self.components.iter().any(|c| usize::from(c.quant_table) >= tables) {
            Some("a component's quantisation table is absent")
        } else if self.quant_tables.iter().any(|table| table.0.contains(&0)) {
            Some("a quantisation table has a zero")
        } else {
            None
        }
    }

    /// Fails unless `coefficients` are planes of this frame.
    pub(super) fn check(&self, coefficients: &Coefficients) -> Result<(), FormError> {
        if let Some(reason) = self.fault() {
            return Err(FormError::Unfit { reason });
        }
        let (wide, high) = self.mcus();
        let fits = self.components.len() == coefficients.planes.len()
            && self.components.iter().zip(&coefficients.planes).all(|(component, plane)| {
                plane.blocks_wide == wide * u32::from(component.horizontal)
                    && plane.blocks_high == high * u32::from(component.vertical)
                    && plane.blocks.len() as u64
                        == u64::from(plane.blocks_wide) * u64::from(plane.blocks_high)
            });
        let reason = "planes are not whole MCUs of the frame";
        if fits { Ok(()) } else { Err(FormError::Unfit { reason }) }
    }

    /// Appends the stored description.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.colour as u8);
        out.push(self.components.len() as u8);
        out.push(self.quant_tables.len() as u8);
        out.extend((self.width as u16).to_le_bytes());
        out.extend((self.height as u16).to_le_bytes());
        for component in &self.components {
            out.push(component.horizontal << 4 | component.vertical);
            out.push(component.quant_table);
        }
        for table in &self.quant_tables {
            let wide = table.0.iter().any(|step| *step > 255);
            out.push(u8::from(wide));
            if wide {
                out.extend(table.0.iter().flat_map(|step| step.to_le_bytes()));
            } else {
                out.extend(table.0.iter().map(|step| *step as u8));
            }
        }
    }

    /// Parses the result of [`Frame::write`].
    pub(super) fn read(from: &mut Cursor<'_>) -> Result<Self, FormError> {
        let start = from.at;
        let colour = match from.byte()? {
            0 => Colour::None,
            1 => Colour::YCbCr,
            2 => Colour::Rgb,
            3 => Colour::Cmyk,
            4 => Colour::Ycck,
            _ => return Err(damaged(start, "an unknown colour transform")),
        };
        let (components, tables) = (from.byte()?, from.byte()?);
        if !(1..=4).contains(&components) || !(1..=4).contains(&tables) {
            return Err(damaged(start + 1, "not 1 to 4 components and quantisation tables"));
        }
        let width = u32::from(from.u16()?);
        let height = u32::from(from.u16()?);
        let (components_found, tables_found) = (ArrayVec::new(), ArrayVec::new());
        let mut frame = Self {
            width,
            height,
            colour,
            components: components_found,
            quant_tables: tables_found,
        };
        for _ in 0..components {
            let (sampling, quant_table) = (from.byte()?, from.byte()?);
            let (horizontal, vertical) = (sampling >> 4, sampling & 15);
            frame.components.push(FormComponent { horizontal, vertical, quant_table });
        }
        for _ in 0..tables {
            let mut table = QuantTable([0; 64]);
            let wide = match from.byte()? {
                0 => false,
                1 => true,
                _ => return Err(damaged(from.at - 1, "a quantisation table of unknown width")),
            };
            for step in &mut table.0 {
                *step = if wide { from.u16()? } else { u16::from(from.byte()?) };
            }
            frame.quant_tables.push(table);
        }
        match frame.fault() {
            Some(reason) => Err(damaged(start, reason)),
            None => Ok(frame),
        }
    }
}
