//! Generated pictures, and tests of the form on them.

mod golden;
mod hostile;
mod property;
mod rows;

use super::{Colour, Form, FormComponent, Frame};
use crate::{Block, CoefficientPlane, Coefficients, QuantTable};

/// Both forms.
const FORMS: [Form; 2] = [Form::Fast, Form::Compact];

/// The distribution of the coefficients of a generated picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockContent {
    /// Nothing but zeros.
    Empty,
    /// A DC and few others, as in smooth pictures.
    Sparse,
    /// As in photographs: large and dense at low frequencies.
    Photo,
    /// Every coefficient within a few bits.
    Dense,
    /// Any 16 bits, the extremes too.
    Extreme,
}

const BLOCK_CONTENTS: [BlockContent; 5] = [
    BlockContent::Empty,
    BlockContent::Sparse,
    BlockContent::Photo,
    BlockContent::Dense,
    BlockContent::Extreme,
];

/// A frame of this size; sampling factors by component, horizontal and vertical.
fn frame(width: u32, height: u32, sampling: &[(u8, u8)]) -> Frame {
    let components = sampling.iter().enumerate().map(|(index, (horizontal, vertical))| {
        let quant_table = index.min(1) as u8;
        FormComponent { horizontal: *horizontal, vertical: *vertical, quant_table }
    });
    let colour = [Colour::None, Colour::YCbCr, Colour::YCbCr, Colour::Ycck][sampling.len() - 1];
    let step = |table: usize| QuantTable(std::array::from_fn(|at| (1 + at + 300 * table) as u16));
    let quant_tables = [step(0), step(1)].into_iter().collect();
    Frame { width, height, colour, components: components.collect(), quant_tables }
}

/// A deterministic random number generator.
struct Numbers(u32);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }

    fn below(&mut self, end: u32) -> i32 {
        (self.next() % end) as i32
    }
}

/// Coefficients for a frame.
fn coefficients(frame: &Frame, content: BlockContent, seed: u32) -> Coefficients {
    let mut numbers = Numbers(seed);
    let (wide, high) = frame.mcus();
    let planes = frame.components.iter().map(|component| {
        let blocks_wide = wide * u32::from(component.horizontal);
        let blocks_high = high * u32::from(component.vertical);
        let blocks = (0..blocks_wide * blocks_high).map(|_| block(&mut numbers, content)).collect();
        CoefficientPlane { blocks_wide, blocks_high, blocks }
    });
    Coefficients { planes: planes.collect() }
}

fn block(numbers: &mut Numbers, content: BlockContent) -> Block {
    let mut block = Block([0; 64]);
    let end = numbers.below(65) as usize;
    for zigzag in 0..end {
        let value = match content {
            BlockContent::Empty => 0,
            BlockContent::Sparse if zigzag == 0 => numbers.below(400) - 200,
            BlockContent::Sparse if numbers.below(8) == 0 => numbers.below(3) - 1,
            BlockContent::Sparse => 0,
            BlockContent::Photo => {
                let range = 1200 / (1 + zigzag as u32 * zigzag as u32) + 3;
                (numbers.below(range) - range as i32 / 2) * numbers.below(3)
            }
            BlockContent::Dense => numbers.below(255) - 127,
            BlockContent::Extreme => match numbers.below(4) {
                0 => 32767,
                1 => -32768,
                2 => -128,
                _ => numbers.below(65536) - 32768,
            },
        };
        block.0[usize::from(crate::markers::NATURAL[zigzag])] = value as i16;
    }
    block
}
