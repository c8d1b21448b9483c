//! The GPUs that are open in this process, each once.

use super::gpu::Gpu;
use super::options::Options;
use crate::{Error, GpuIndex};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

static OPENED: Mutex<BTreeMap<GpuIndex, Weak<Gpu>>> = Mutex::new(BTreeMap::new());

impl Gpu {
    /// The GPU with this index, opened by the first call and closed with its last handle. Until
    /// then, it has the options of the first call, and its kernels are loaded once.
    ///
    /// If a failure has made it unusable, it is opened again.
    pub fn shared(index: GpuIndex, options: &Options) -> Result<Arc<Self>, Error> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = opened.get(&index).and_then(Weak::upgrade)
            && gpu.check().is_ok()
        {
            return Ok(gpu);
        }
        let gpu = Self::open(index.0, options)?;
        opened.insert(index, Arc::downgrade(&gpu));
        Ok(gpu)
    }
}
