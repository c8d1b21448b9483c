//! Executes `normalize`.

use super::ElementOperation;
use crate::tensor::ElementTable;
use meetpoint_format::recipe::Normalize;

impl ElementOperation for Normalize {
    fn fold(&self, table: &mut ElementTable) {
        let [mean, std] = [self.mean, self.std].map(|it| [0, 1, 2].map(|at| it.channel(at) as f32));
        table.normalize(mean, std);
    }
}
