//! Runs a test kernel on a GPU and checks its results.

use super::gpu::Gpu;
use crate::{Compute as _, Error, KernelName, Launch};
use std::sync::Arc;

/// More than one block, the last one not full.
const COUNT: u32 = 1000;
/// Threads of a block.
const BLOCK: u32 = 128;

impl Gpu {
    /// Compiles a small kernel, runs it and checks its results. A request to stop ends the wait.
    pub fn self_test(self: &Arc<Self>, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut compute = self.compute()?;
        let squares = compute.allocate(COUNT as usize * 4)?;
        compute.fill(&squares, 0, squares.bytes(), 0xff)?;
        compute.launch(&Launch {
            kernel: KernelName { module: "probe", name: "probe_squares" },
            grid: [COUNT.div_ceil(BLOCK), 1, 1],
            block: [BLOCK, 1, 1],
            shared_bytes: 0,
            arguments: &[(&squares).into(), COUNT.into()],
        })?;
        compute.wait_before_free(self.hang_limit, is_stopped)?;
        let mut bytes = vec![0; squares.bytes()];
        compute.download(&squares, 0, &mut bytes)?;
        let mut found = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        match (0..COUNT).find(|at| found.next() != Some(at * at)) {
            None => Ok(()),
            Some(at) => Err(Error::WrongResults {
                gpu: self.info().name.clone(),
                what: format!("the square of {at} in a test kernel"),
            }),
        }
    }
}
