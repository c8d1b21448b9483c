//! Blocks of progressive scans (T.81, G.2).

use super::super::CoefficientPlane;
use super::super::markers::{COMPONENTS_MAX, NATURAL, Scan};
use super::bits::Bits;
use super::sequential::difference;
use super::table::SymbolTable;
use super::{AC_MAX, AC_SIZE_MAX, Cell, DC_MAX, Fault, ReadBlock};

/// The upper bits of DC coefficients.
pub(super) struct DcFirst<'a> {
    planes: &'a mut [CoefficientPlane],
    tables: Vec<SymbolTable>,
    low: u8,
    predictions: [i32; COMPONENTS_MAX],
}

impl<'a> DcFirst<'a> {
    /// Tables are by component of the scan.
    pub(super) fn new(
        planes: &'a mut [CoefficientPlane],
        tables: Vec<SymbolTable>,
        scan: &Scan,
    ) -> Self {
        Self { planes, tables, low: scan.low, predictions: [0; COMPONENTS_MAX] }
    }
}

impl ReadBlock for DcFirst<'_> {
    fn restart(&mut self) {
        self.predictions = [0; COMPONENTS_MAX];
    }

    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault> {
        let prediction = &mut self.predictions[cell.slot];
        *prediction += difference(&self.tables[cell.slot], bits)?;
        // Checked before the shift too, so that the sum stays bounded in a long scan.
        if prediction.abs() > DC_MAX || (*prediction << self.low).abs() > DC_MAX {
            return Err(Fault::TooLarge);
        }
        self.planes[cell.component].blocks[block].0[0] = (*prediction << self.low) as i16;
        Ok(())
    }
}

/// One more bit of DC coefficients.
pub(super) struct DcRefine<'a> {
    planes: &'a mut [CoefficientPlane],
    bit: i16,
}

impl<'a> DcRefine<'a> {
    pub(super) fn new(planes: &'a mut [CoefficientPlane], scan: &Scan) -> Self {
        Self { planes, bit: 1 << scan.low }
    }
}

impl ReadBlock for DcRefine<'_> {
    fn restart(&mut self) {}

    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault> {
        if bits.take_bit() {
            if i32::from(self.bit) > DC_MAX {
                return Err(Fault::TooLarge);
            }
            self.planes[cell.component].blocks[block].0[0] |= self.bit;
        }
        Ok(())
    }
}

/// The band of coefficients of a scan, and the run of blocks without any more of them.
struct Band<'a> {
    planes: &'a mut [CoefficientPlane],
    table: SymbolTable,
    first: usize,
    last: usize,
    low: u8,
    /// Blocks, from the next on, that end here.
    run: u32,
}

impl<'a> Band<'a> {
    fn new(planes: &'a mut [CoefficientPlane], table: SymbolTable, scan: &Scan) -> Self {
        let (first, last) = (usize::from(scan.first), usize::from(scan.last));
        Self { planes, table, first, last, low: scan.low, run: 0 }
    }

    /// The blocks of a run whose length has `size` bits below its top one.
    #[inline(always)]
    fn run_of_blocks(bits: &mut Bits<'_>, size: u32) -> u32 {
        1 << size | if size > 0 { bits.take(size) } else { 0 }
    }
}

/// The upper bits of AC coefficients.
pub(super) struct AcFirst<'a>(Band<'a>);

impl<'a> AcFirst<'a> {
    pub(super) fn new(planes: &'a mut [CoefficientPlane], table: SymbolTable, scan: &Scan) -> Self {
        Self(Band::new(planes, table, scan))
    }
}

impl ReadBlock for AcFirst<'_> {
    fn restart(&mut self) {
        self.0.run = 0;
    }

    #[inline(always)]
    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault> {
        let band = &mut self.0;
        if band.run > 0 {
            band.run -= 1;
            return Ok(());
        }
        let coefficients = &mut band.planes[cell.component].blocks[block].0;
        let mut position = band.first;
        while position <= band.last {
            bits.refill_half();
            let symbol = u32::from(band.table.take(bits)?);
            match (symbol >> 4, symbol & 15) {
                (15, 0) => {
                    position += 16;
                    if position > band.last + 1 {
                        return Err(Fault::TooFar);
                    }
                }
                (size, 0) => {
                    band.run = Band::run_of_blocks(bits, size) - 1;
                    return Ok(());
                }
                (_, size) if size > AC_SIZE_MAX => return Err(Fault::TooLarge),
                (run, size) => {
                    position += run as usize;
                    if position > band.last {
                        return Err(Fault::TooFar);
                    }
                    let value = bits.take_signed(size) << band.low;
                    if value.abs() > AC_MAX {
                        return Err(Fault::TooLarge);
                    }
                    coefficients[usize::from(NATURAL[position])] = value as i16;
                    position += 1;
                }
            }
        }
        Ok(())
    }
}

/// One more bit of AC coefficients, and those that this bit makes differ from zero.
pub(super) struct AcRefine<'a>(Band<'a>);

impl<'a> AcRefine<'a> {
    pub(super) fn new(planes: &'a mut [CoefficientPlane], table: SymbolTable, scan: &Scan) -> Self {
        Self(Band::new(planes, table, scan))
    }
}

impl ReadBlock for AcRefine<'_> {
    fn restart(&mut self) {
        self.0.run = 0;
    }

    fn read(&mut self, bits: &mut Bits<'_>, cell: &Cell, block: usize) -> Result<(), Fault> {
        let band = &mut self.0;
        let bit = 1_i16 << band.low;
        let coefficients = &mut band.planes[cell.component].blocks[block].0;
        let mut position = band.first;
        while band.run == 0 && position <= band.last {
            bits.refill_half();
            let symbol = u32::from(band.table.take(bits)?);
            let (zeros, value) = match (symbol >> 4, symbol & 15) {
                (15, 0) => (15, 0),
                (size, 0) => {
                    band.run = Band::run_of_blocks(bits, size);
                    break;
                }
                (_, 1) if i32::from(bit) > AC_MAX => return Err(Fault::TooLarge),
                (zeros, 1) => (zeros, if bits.take_bit() { bit } else { -bit }),
                _ => return Err(Fault::NoMeaning),
            };
            position = correct(bits, coefficients, position..band.last + 1, zeros, bit);
            if value != 0 {
                if position > band.last {
                    return Err(Fault::TooFar);
                }
                coefficients[usize::from(NATURAL[position])] = value;
            }
            position += 1;
        }
        if band.run > 0 {
            // Most blocks of a run have nothing to correct.
            if coefficients[1..].iter().fold(0, |any, coefficient| any | coefficient) != 0 {
                correct(bits, coefficients, position..band.last + 1, u32::MAX, bit);
            }
            band.run -= 1;
        }
        Ok(())
    }
}

/// Reads the next bit of the non-zero coefficients, skipping `zeros` zeros, and returns the
/// position of the next zero or the end.
#[inline(always)]
fn correct(
    bits: &mut Bits<'_>,
    coefficients: &mut [i16; 64],
    positions: std::ops::Range<usize>,
    mut zeros: u32,
    bit: i16,
) -> usize {
    for position in positions.clone() {
        let coefficient = &mut coefficients[usize::from(NATURAL[position])];
        if *coefficient == 0 {
            if zeros == 0 {
                return position;
            }
            zeros -= 1;
        } else if bits.take_bit() {
            *coefficient += if *coefficient > 0 { bit } else { -bit };
        }
    }
    positions.end
}
