//! The order in which a scan codes its blocks (T.81, A.2).

use super::super::markers::Frame;

/// Maximum number of blocks of an MCU (T.81, B.2.3).
const CELLS_MAX: usize = 10;

/// A block's position in every MCU.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cell {
    /// Index of its component among those of the scan.
    pub(crate) slot: usize,
    /// Index of its component among those of the frame.
    pub(crate) component: usize,
    /// Blocks of the component in an MCU, across and down.
    step: [usize; 2],
    /// Column and row inside the MCU.
    inside: [usize; 2],
    /// Blocks in a row of the plane.
    pitch: usize,
}

impl Cell {
    /// Index in the plane of the block in an MCU.
    #[inline(always)]
    pub(crate) fn block(&self, mcu_x: usize, mcu_y: usize) -> usize {
        (mcu_y * self.step[1] + self.inside[1]) * self.pitch + mcu_x * self.step[0] + self.inside[0]
    }
}

/// The MCUs of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) mcus_wide: usize,
    pub(crate) mcus_high: usize,
    cells: [Cell; CELLS_MAX],
    count: usize,
}

impl Order {
    /// The order of a scan of these components. A scan of one component has one block in an MCU and
    /// no padding; a scan of several has all blocks up to whole MCUs.
    ///
    /// # Panics
    /// With more blocks in an MCU than the format allows.
    pub(crate) fn of(frame: &Frame, components: &[usize]) -> Self {
        let mut order = Self {
            mcus_wide: frame.mcus_wide as usize,
            mcus_high: frame.mcus_high as usize,
            cells: [Cell::default(); CELLS_MAX],
            count: 0,
        };
        for (slot, index) in components.iter().enumerate() {
            let component = &frame.components()[*index];
            let pitch = component.blocks_wide as usize;
            let mut step = [component.h as usize, component.v as usize];
            if components.len() == 1 {
                let (wide, high) = component.blocks_alone();
                (order.mcus_wide, order.mcus_high) = (wide as usize, high as usize);
                step = [1, 1];
            }
            for inside in (0..step[1]).flat_map(|y| (0..step[0]).map(move |x| [x, y])) {
                order.cells[order.count] = Cell { slot, component: *index, step, inside, pitch };
                order.count += 1;
            }
        }
        order
    }

    /// The blocks of an MCU in their order.
    #[inline(always)]
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells[..self.count]
    }

    /// Number of MCUs.
    pub(crate) fn mcus(&self) -> usize {
        self.mcus_wide * self.mcus_high
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.mcus() * self.count
    }
}
