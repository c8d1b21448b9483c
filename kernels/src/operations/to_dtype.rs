//! Executes `to_dtype`.

use super::ElementOperation;
use crate::tensor::ElementTable;
use meetpoint_format::recipe::ToDtype;

impl ElementOperation for ToDtype {
    fn fold(&self, table: &mut ElementTable) {
        table.convert(self.dtype, self.scale);
    }
}
