//! The frame of a JPEG: its size, its components, and how they divide into MCUs.

/// Maximum components of a supported frame: CMYK has four.
pub const COMPONENTS_MAX: usize = 4;

/// How the coefficients are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Coding {
    /// SOF0.
    #[default]
    Baseline,
    /// SOF1: sequential, up to four tables of each kind.
    Extended,
    /// SOF2.
    Progressive,
}

/// A component of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Component {
    /// Identifier that scans name it by.
    pub(crate) id: u8,
    /// Horizontal sampling factor, 1..=4.
    pub(crate) h: u32,
    /// Vertical sampling factor, 1..=4.
    pub(crate) v: u32,
    /// Index of its quantisation table, 0..=3.
    pub(crate) table: usize,
    /// Columns of samples that are not padding.
    pub(crate) width: u32,
    /// Rows of samples that are not padding.
    pub(crate) height: u32,
    /// Columns of blocks, padded to whole MCUs of the frame.
    pub(crate) blocks_wide: u32,
    /// Rows of blocks, padded to whole MCUs of the frame.
    pub(crate) blocks_high: u32,
}

impl Component {
    /// Columns and rows of blocks in a scan of this component alone.
    pub(crate) fn blocks_alone(&self) -> (u32, u32) {
        (self.width.div_ceil(8), self.height.div_ceil(8))
    }
}

/// The frame header.
///
/// A frame of one component has sampling factors 1 regardless of the file, where they have no
/// meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    pub(crate) coding: Coding,
    /// Columns of pixels, not 0.
    pub(crate) width: u32,
    /// Rows of pixels, not 0.
    pub(crate) height: u32,
    /// Number of components: 1, 3 or 4.
    pub(crate) count: usize,
    all: [Component; COMPONENTS_MAX],
    /// Largest horizontal sampling factor.
    pub(crate) h_max: u32,
    /// Largest vertical sampling factor.
    pub(crate) v_max: u32,
    /// MCUs in a row of a scan of all components.
    pub(crate) mcus_wide: u32,
    /// Rows of such MCUs.
    pub(crate) mcus_high: u32,
}

impl Frame {
    /// A frame of up to four components; only their identifiers, sampling factors and tables are
    /// used.
    pub(crate) fn new(
        coding: Coding,
        (width, height): (u32, u32),
        components: &[Component],
    ) -> Self {
        let mut all = [Component::default(); COMPONENTS_MAX];
        all[..components.len()].copy_from_slice(components);
        let h_max = components.iter().map(|c| c.h).max().unwrap_or(1);
        let v_max = components.iter().map(|c| c.v).max().unwrap_or(1);
        let mcus_wide = width.div_ceil(8 * h_max);
        let mcus_high = height.div_ceil(8 * v_max);
        for component in &mut all[..components.len()] {
            component.width = (width * component.h).div_ceil(h_max);
            component.height = (height * component.v).div_ceil(v_max);
            component.blocks_wide = mcus_wide * component.h;
            component.blocks_high = mcus_high * component.v;
        }
        let count = components.len();
        Self { coding, width, height, count, all, h_max, v_max, mcus_wide, mcus_high }
    }

    /// Columns and rows of pixels.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The components.
    pub(crate) fn components(&self) -> &[Component] {
        &self.all[..self.count]
    }
}
