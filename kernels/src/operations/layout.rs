//! Executes `layout`.

use super::ElementOperation;
use crate::tensor::ElementTable;
use meetpoint_format::recipe::Layout;

impl ElementOperation for Layout {
    fn fold(&self, table: &mut ElementTable) {
        table.set_layout(*self);
    }
}
