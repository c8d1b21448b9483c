//! Writes the coefficient form. Writing may be slow if that makes reading fast.

mod compact;
mod fast;

use super::cursor::push_number;
use super::frame::Frame;
use super::geometry::{Strip, strips};
use super::reader::check;
use super::{Form, MAGIC, VERSION};
use crate::Coefficients;
use crate::Interrupt;
use crate::form_error::FormError;

/// Stores a picture's coefficients, and `skeleton`, opaque bytes that travel with them.
///
/// Fails if the planes do not fit the frame, or if no JPEG can have the frame.
pub fn pack(
    form: Form,
    frame: &Frame,
    coefficients: &Coefficients,
    skeleton: &[u8],
) -> Result<Vec<u8>, FormError> {
    pack_until(form, frame, coefficients, skeleton, &Interrupt::default())
}

/// [`pack`] with an interrupt, which it polls before each row of MCUs.
pub(crate) fn pack_until(
    form: Form,
    frame: &Frame,
    coefficients: &Coefficients,
    skeleton: &[u8],
    interrupt: &Interrupt,
) -> Result<Vec<u8>, FormError> {
    frame.check(coefficients)?;
    let skeleton_bytes = u32::try_from(skeleton.len())
        .map_err(|_| FormError::Unfit { reason: "the skeleton has 2^32 bytes or more" })?;
    let (strips, _) = strips(frame);
    let rows = McuRows { coefficients, strips: &strips, count: frame.mcus().1 };
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.push(VERSION);
    out.push(form as u8);
    frame.write(&mut out);
    let fast = |row: McuRow| check(interrupt).map(|()| fast::row(&row, &strips));
    let stored = match form {
        Form::Fast => rows.iter().map(fast).collect::<Result<Vec<_>, _>>()?,
        Form::Compact => compact::rows(&rows, &mut out, interrupt)?,
    };
    push_number(&mut out, skeleton_bytes);
    for row in &stored {
        let bytes = u32::try_from(row.len()).expect("a row of MCUs is far below 4 GiB");
        push_number(&mut out, bytes);
    }
    out.extend(stored.iter().flatten());
    out.extend(skeleton);
    Ok(out)
}

/// All rows of MCUs of a picture.
struct McuRows<'a> {
    coefficients: &'a Coefficients,
    strips: &'a [Strip],
    count: u32,
}

impl McuRows<'_> {
    fn iter(&self) -> impl Iterator<Item = McuRow> {
        (0..self.count as usize).map(|row| McuRow::new(self.coefficients, self.strips, row))
    }
}

/// The blocks of a row of MCUs, in the order of their numbers.
struct McuRow {
    /// DC, minus that of the block to the left, or of the one above if there is none.
    dc: Vec<i16>,
    /// The others in natural order, and a zero in place of DC.
    natural: Vec<[i16; 64]>,
}

impl McuRow {
    fn new(coefficients: &Coefficients, strips: &[Strip], row: usize) -> Self {
        let mut made = Self { dc: Vec::new(), natural: Vec::new() };
        for (plane, strip) in coefficients.planes.iter().zip(strips) {
            let blocks = &plane.blocks[row * strip.blocks()..][..strip.blocks()];
            for (index, block) in blocks.iter().enumerate() {
                let before = match index % strip.wide {
                    0 if index == 0 => 0,
                    0 => blocks[index - strip.wide].0[0],
                    _ => blocks[index - 1].0[0],
                };
                made.dc.push(block.0[0].wrapping_sub(before));
                let mut natural = block.0;
                natural[0] = 0;
                made.natural.push(natural);
            }
        }
        made
    }
}
