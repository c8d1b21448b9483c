//! The memory of batches, and its kind.

use meetpoint_gpu::resident::ResidentTensors;
use meetpoint_storage::AlignedBuffer;
use serde::{Deserialize, Serialize};

/// A kind of memory for batches. A variant for accelerator memory would name the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// Host memory of this process.
    Host,
    /// Host memory that this process shares with a device.
    Shared,
}

impl MemoryKind {
    /// Its name in reports and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Shared => "shared",
        }
    }
}

/// Memory into which a batch is prepared, and which contains it afterwards.
///
/// ```
/// use meetpoint_prepare::{BatchMemory, MemoryKind};
///
/// let mut memory = vec![0_u8; 16];
/// assert_eq!(memory.kind(), MemoryKind::Host);
/// assert_eq!(memory.bytes_mut().len(), 16);
/// ```
pub trait BatchMemory: Send {
    /// Its kind.
    fn kind(&self) -> MemoryKind;

    /// All of its bytes.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// Receives the tensors that stay on a GPU, instead of their positions in the bytes. `None` if
    /// all tensors must be in the bytes.
    fn on_gpu(&mut self) -> Option<&mut Option<ResidentTensors>> {
        None
    }

    /// Whether [`Self::grow`] may succeed.
    fn may_grow(&self) -> bool {
        false
    }

    /// Enlarges it for a batch of a given number of bytes, whose size was not known before its
    /// pictures were decoded; its content is lost. `false` if it cannot be enlarged.
    fn grow(&mut self, _bytes: usize) -> bool {
        false
    }
}

impl BatchMemory for Vec<u8> {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn may_grow(&self) -> bool {
        true
    }

    fn grow(&mut self, bytes: usize) -> bool {
        self.resize(bytes.max(self.len()), 0);
        true
    }
}

impl BatchMemory for AlignedBuffer {
    fn kind(&self) -> MemoryKind {
        MemoryKind::Host
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}
