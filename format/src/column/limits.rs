//! Limits of columns, set by the header of a slot.

/// Maximum number of columns of a batch: the number that the header of a slot can describe.
pub const COLUMNS_MAX: usize = 60;

/// Maximum number of axes of the value of one sample.
pub const AXES_MAX: usize = 6;

/// Marks an axis whose length differs between samples.
pub const VARIES: u32 = 0;
