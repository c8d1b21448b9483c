//! Reads the coefficient form, a row of MCUs at a time.

use super::codes::{CLASS_CODES, Choice, KINDS, KindCodes, LANES, WIDTH_INDICES};
use super::cursor::Cursor;
use super::frame::{COMPONENTS_MAX, Frame};
use super::geometry::{Strip, strips};
use super::lanes::SLACK;
use super::simd::Kernel;
use super::unpack::{Shared, Task, compact, fast};
use super::{Form, MAGIC, VERSION};
use crate::form_error::{FormError, damaged};
use crate::{Block, CoefficientPlane, Coefficients};
use crate::{Cpu, Interrupt};
use arrayvec::ArrayVec;
use std::ops::Range;

pub use super::unpack::RowComponent;

/// Memory that successive readers reuse.
#[derive(Debug, Default)]
pub struct RowScratch {
    shared: Shared,
    /// The codes that a compact form has selected for each kind.
    choices: ArrayVec<compact::SelectedTables, KINDS>,
    /// The same by their numbers.
    codes: ArrayVec<KindCodes, KINDS>,
    decoded: compact::Decoded,
    /// A copy of a row that has too few readable bytes after it.
    padded: Vec<u8>,
    /// The end of each row in the stored bytes.
    row_ends: Vec<usize>,
}

/// Reads one picture.
#[derive(Debug)]
pub struct FormReader<'a> {
    bytes: &'a [u8],
    form: Form,
    frame: Frame,
    strips: ArrayVec<Strip, COMPONENTS_MAX>,
    /// Blocks of a row of MCUs.
    blocks: usize,
    coding: Coding,
    rows_start: usize,
    kernel: Kernel,
    scratch: RowScratch,
}

impl<'a> FormReader<'a> {
    /// Reads everything but the coefficients. The machine must support `cpu`.
    pub fn open(bytes: &'a [u8], cpu: Cpu) -> Result<Self, FormError> {
        Self::open_with(bytes, cpu, RowScratch::default())
    }

    /// [`FormReader::open`] with memory from [`FormReader::into_scratch`].
    pub fn open_with(
        bytes: &'a [u8],
        cpu: Cpu,
        mut scratch: RowScratch,
    ) -> Result<Self, FormError> {
        let mut cursor = Cursor::new(bytes);
        let (form, frame) = head(&mut cursor)?;
        let (strips, blocks) = strips(&frame);
        let kinds = strips.len().min(KINDS);
        let coding = match form {
            Form::Fast => Coding::Fast,
            Form::Compact => coding(&mut cursor, kinds, &mut scratch)?,
        };
        let skeleton_bytes = cursor.number()? as usize;
        let (_, rows) = frame.mcus();
        scratch.row_ends.clear();
        let mut end = 0usize;
        for _ in 0..rows {
            end += cursor.number()? as usize;
            scratch.row_ends.push(end);
        }
        let rows_start = cursor.at;
        if bytes.len() - rows_start != end.saturating_add(skeleton_bytes) {
            return Err(damaged(rows_start, "the length is not that of rows and skeleton"));
        }
        let kernel = Kernel::new(cpu);
        Ok(Self { bytes, form, frame, strips, blocks, coding, rows_start, kernel, scratch })
    }

    /// Its layout.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The properties that a decoder needs before the coefficients.
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The bytes that were stored along with the coefficients.
    pub fn skeleton(&self) -> &'a [u8] {
        &self.bytes[self.rows_start + self.rows_bytes()..]
    }

    /// Lanes of each row, and the codes of each kind of blocks that it has; no lanes and codes of
    /// the fast form.
    pub fn lanes_and_codes(&self) -> (u8, &[KindCodes]) {
        match self.coding {
            Coding::Fast => (0, &[]),
            Coding::Compact { lanes } => (lanes, &self.scratch.codes),
        }
    }

    /// The position of a row of MCUs in the stored bytes.
    pub fn row_range(&self, mcu_row: u32) -> Option<Range<usize>> {
        let row = mcu_row as usize;
        let end = self.rows_start + self.scratch.row_ends.get(row)?;
        let before = row.checked_sub(1).map_or(0, |before| self.scratch.row_ends[before]);
        Some(self.rows_start + before..end)
    }

    /// Memory for the next reader.
    pub fn into_scratch(self) -> RowScratch {
        self.scratch
    }

    /// Unpacks some columns of a row of MCUs: every block of them in natural order, and its extent.
    ///
    /// Each component has a buffer of exactly the size that the columns need. After an error its
    /// content is unspecified. A row may be read any number of times, in any order.
    pub fn row(
        &mut self,
        mcu_row: u32,
        mcu_columns: Range<u32>,
        into: &mut [RowComponent<'_>],
    ) -> Result<(), FormError> {
        let refuse = |reason| Err(FormError::Request { reason });
        let (mcus_wide, _) = self.frame.mcus();
        let Some(range) = self.row_range(mcu_row) else {
            return refuse("there is no such row of MCUs");
        };
        if mcu_columns.is_empty() || mcu_columns.end > mcus_wide {
            return refuse("there are no such columns of MCUs");
        }
        let columns = mcu_columns.start as usize..mcu_columns.end as usize;
        let fits = into.len() == self.strips.len()
            && into.iter().zip(&self.strips).all(|(component, strip)| {
                let blocks = strip.rows * strip.horizontal * columns.len();
                component.blocks.len() == blocks && component.extents.len() == blocks
            });
        if !fits {
            return refuse("a buffer for each component, of the blocks of the columns");
        }
        let (length, offset) = (range.len(), range.start);
        // Everything that follows, so that the loops need few checks.
        let bytes = match self.bytes.get(range.start..) {
            Some(bytes) if bytes.len() >= length + SLACK => bytes,
            _ => {
                self.scratch.padded.clear();
                self.scratch.padded.extend(&self.bytes[range]);
                self.scratch.padded.resize(length + SLACK, 0);
                &self.scratch.padded
            }
        };
        let mut task = Task {
            kernel: self.kernel,
            strips: &self.strips,
            blocks: self.blocks,
            columns,
            bytes,
            length,
            offset,
        };
        let shared = &mut self.scratch.shared;
        let decoded = &mut self.scratch.decoded;
        let choices = &self.scratch.choices;
        let mut unpack = |task: &Task<'_>| match &self.coding {
            Coding::Fast => fast::row(task, shared, into),
            Coding::Compact { lanes: 1 } => compact::row::<1>(task, choices, shared, decoded, into),
            Coding::Compact { .. } => {
                compact::row::<{ LANES as usize }>(task, choices, shared, decoded, into)
            }
        };
        unpack(&task).map_err(|error| {
            // Vector code may find another fault first; every instruction set must report the same
            // one.
            task.kernel = Kernel::Portable;
            unpack(&task).err().unwrap_or(error)
        })
    }

    /// Bytes of all rows together.
    fn rows_bytes(&self) -> usize {
        self.scratch.row_ends.last().copied().unwrap_or(0)
    }
}

/// Columns and rows of a picture, without reading its coefficients.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), FormError> {
    let (_, frame) = head(&mut Cursor::new(bytes))?;
    Ok((frame.width, frame.height))
}

/// Layout and frame, which follow the version in all stored bytes.
fn head(cursor: &mut Cursor<'_>) -> Result<(Form, Frame), FormError> {
    if cursor.take(MAGIC.len())? != MAGIC {
        return Err(damaged(0, "it does not begin with the signature of a coefficient form"));
    }
    let version = cursor.byte()?;
    match version {
        0 => return Err(damaged(cursor.at - 1, "there is no version 0")),
        VERSION => {}
        1..VERSION => return Err(FormError::Older { version, read: VERSION }),
        _ => return Err(FormError::Newer { version, newest: VERSION }),
    }
    let form = match cursor.byte()? {
        0 => Form::Fast,
        1 => Form::Compact,
        _ => return Err(damaged(cursor.at - 1, "an unknown form")),
    };
    Ok((form, Frame::read(cursor)?))
}

/// [`FormError::Interrupted`] once an interrupt was raised.
pub(super) fn check(interrupt: &Interrupt) -> Result<(), FormError> {
    if interrupt.is_raised() { Err(FormError::Interrupted) } else { Ok(()) }
}

/// How the rows of a form are stored.
#[derive(Debug)]
enum Coding {
    Fast,
    Compact { lanes: u8 },
}

/// How many lanes a compact form has: one or [`LANES`].
fn lanes(cursor: &mut Cursor<'_>) -> Result<u8, FormError> {
    let lanes = cursor.byte()?;
    let known = lanes == 1 || lanes == LANES;
    if known { Ok(lanes) } else { Err(damaged(cursor.at - 1, "an unknown number of lanes")) }
}

/// How a compact form is coded: its lanes and the codes of each kind.
fn coding(
    cursor: &mut Cursor<'_>,
    kinds: usize,
    scratch: &mut RowScratch,
) -> Result<Coding, FormError> {
    let lanes = lanes(cursor)?;
    scratch.choices.clear();
    scratch.codes.clear();
    for kind in 0..kinds {
        let classes = cursor.byte()?;
        if usize::from(classes) >= CLASS_CODES {
            return Err(damaged(cursor.at - 1, "an unknown code of classes"));
        }
        let pairs = cursor.take(WIDTH_INDICES / 2)?;
        let widths = std::array::from_fn(|index| pairs[index / 2] >> (4 * (index % 2)) & 15);
        let choice = Choice { classes, widths };
        scratch.codes.push(choice.codes());
        scratch.choices.push(compact::SelectedTables::new(&choice, kind));
    }
    Ok(Coding::Compact { lanes })
}

/// Unpacks all coefficients of a picture, and the skeleton that was stored with them.
///
/// The planes take 128 bytes a block. Two stored blocks take at least one bit, so this is at most
/// 2,048 times the stored bytes.
pub fn unpack_all(bytes: &[u8], cpu: Cpu) -> Result<(Coefficients, Vec<u8>), FormError> {
    unpack_all_until(bytes, cpu, &Interrupt::default())
}

/// [`unpack`] with an interrupt.
pub(crate) fn unpack_all_until(
    bytes: &[u8],
    cpu: Cpu,
    interrupt: &Interrupt,
) -> Result<(Coefficients, Vec<u8>), FormError> {
    let mut reader = FormReader::open(bytes, cpu)?;
    let (mcus_wide, mcus_high) = reader.frame.mcus();
    let blocks = reader.blocks as u64 * u64::from(mcus_high);
    if blocks > 16 * bytes.len() as u64 {
        return Err(damaged(bytes.len(), "fewer bits than pairs of blocks"));
    }
    let mut planes: Vec<CoefficientPlane> = reader
        .strips
        .iter()
        .map(|strip| CoefficientPlane {
            blocks_wide: strip.wide as u32,
            blocks_high: strip.rows as u32 * mcus_high,
            blocks: vec![Block([0; 64]); strip.blocks() * mcus_high as usize],
        })
        .collect();
    let sizes: Vec<usize> = reader.strips.iter().map(Strip::blocks).collect();
    let mut extents: Vec<Vec<u8>> = sizes.iter().map(|blocks| vec![0; *blocks]).collect();
    for mcu_row in 0..mcus_high {
        check(interrupt)?;
        let mut into: Vec<RowComponent<'_>> = planes
            .iter_mut()
            .zip(&sizes)
            .zip(&mut extents)
            .map(|((plane, size), extents)| RowComponent {
                blocks: &mut plane.blocks[mcu_row as usize * size..][..*size],
                extents,
            })
            .collect();
        reader.row(mcu_row, 0..mcus_wide, &mut into)?;
    }
    Ok((Coefficients { planes }, reader.skeleton().to_vec()))
}
