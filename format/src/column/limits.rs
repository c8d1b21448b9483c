//! Limits of columns, which the header of a slot sets.

/// Most columns of a batch: as many as the header of a slot describes.
pub const COLUMNS_MAX: usize = 60;

/// Most axes of the value of one sample.
pub const AXES_MAX: usize = 6;

/// Stands for the length of an axis that is not the same for every sample.
pub const VARIES: u32 = 0;
