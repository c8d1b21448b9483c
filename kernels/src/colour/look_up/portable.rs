//! The meaning of a look-up.

use crate::colour::tables::Table;

/// Replaces every value by that of a table.
pub(super) fn look_up(table: &Table, values: &mut [u8]) {
    for value in values {
        *value = table[usize::from(*value)];
    }
}
