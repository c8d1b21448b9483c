//! The reference implementation of look-ups.

use crate::colour::tables::Table;

/// Replaces every value by its entry in a table.
pub(super) fn look_up(table: &Table, values: &mut [u8]) {
    for value in values {
        *value = table[usize::from(*value)];
    }
}
