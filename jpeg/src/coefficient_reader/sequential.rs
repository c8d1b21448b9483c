//! Blocks of baseline and extended sequential scans (T.81, F.2.2).

use super::super::CoefficientPlane;
use super::super::markers::{COMPONENTS_MAX, NATURAL};
use super::bits::Bits;
use super::table::{END_OF_BLOCK, RunTable, SymbolTable};
use super::{AC_SIZE_MAX, Cell, DC_MAX, DC_SIZE_MAX, Fault, ReadBlock};

pub(super) struct Sequential<'a> {
    planes: &'a mut [CoefficientPlane],
    dc: Vec<SymbolTable>,
    ac: Vec<RunTable>,
    predictions: [i32; COMPONENTS_MAX],
}

impl<'a> Sequential<'a> {
    /// Tables are by component of the scan.
    pub(super) fn new(
        planes: &'a mut [CoefficientPlane],
        dc: Vec<SymbolTable>,
        ac: Vec<RunTable>,
    ) -> Self {
        Self { planes, dc, ac, predictions: [0; COMPONENTS_MAX] }
    }
}

impl ReadBlock for Sequential<'_> {
    fn restart(&mut self) {
        self.predictions = [0; COMPONENTS_MAX];
    }

    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault> {
        let coefficients = &mut self.planes[cell.component].blocks[block].0;
        let prediction = &mut self.predictions[cell.slot];
        *prediction += difference(&self.dc[cell.slot], bits)?;
        if prediction.abs() > DC_MAX {
            return Err(Fault::TooLarge);
        }
        coefficients[0] = *prediction as i16;
        read_ac(&self.ac[cell.slot], bits, coefficients)
    }
}

/// Reads a DC difference.
#[inline(always)]
pub(super) fn difference(table: &SymbolTable, bits: &mut Bits<'_>) -> Result<i32, Fault> {
    bits.refill_half();
    match u32::from(table.take(bits)?) {
        0 => Ok(0),
        size if size > DC_SIZE_MAX => Err(Fault::TooLarge),
        size => Ok(bits.take_signed(size)),
    }
}

#[inline(always)]
fn read_ac(table: &RunTable, bits: &mut Bits<'_>, block: &mut [i16; 64]) -> Result<(), Fault> {
    let mut position = 0;
    while position < 63 {
        bits.refill_half();
        let found = table.look(bits);
        let (value, advance) = if found == 0 {
            match take_alone(table, bits)? {
                (0, END_OF_BLOCK) => return Ok(()),
                (0, advance) => {
                    position += advance as usize;
                    if position > 63 {
                        return Err(Fault::TooFar);
                    }
                    continue;
                }
                coefficient => coefficient,
            }
        } else {
            bits.consume(found & 0xff);
            ((found >> 16) as i16, found >> 8 & 0xff)
        };
        position += advance as usize;
        match NATURAL.get(position) {
            Some(natural) => block[usize::from(*natural) & 63] = value,
            None if advance == END_OF_BLOCK => return Ok(()),
            None => return Err(Fault::TooFar),
        }
    }
    Ok(())
}

/// Reads a symbol and the bits after it: value (0 for none) and advance.
fn take_alone(table: &RunTable, bits: &mut Bits<'_>) -> Result<(i16, u32), Fault> {
    let symbol = u32::from(table.symbols.take(bits)?);
    match (symbol >> 4, symbol & 15) {
        (0, 0) => Ok((0, END_OF_BLOCK)),
        (15, 0) => Ok((0, 16)),
        (_, 0) => Err(Fault::NoMeaning),
        (_, size) if size > AC_SIZE_MAX => Err(Fault::TooLarge),
        (run, size) => Ok((bits.take_signed(size) as i16, run + 1)),
    }
}
