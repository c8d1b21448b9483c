//! Executes `normalize`.

use super::ElementOperation;
use crate::tensor::ElementTable;
use meetpoint_format::recipe::Normalize;

impl ElementOperation for Normalize {
    fn fold(&self, table: &mut ElementTable) {
        // Channels beyond those of the picture use the values of its last one.
        let [mean, std] = [self.mean, self.std].map(|it| {
            let numbers = it.as_slice();
            [0, 1, 2, 3].map(|channel: usize| numbers[channel.min(numbers.len() - 1)] as f32)
        });
        table.normalize(mean, std);
    }
}
