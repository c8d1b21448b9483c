//! What one epoch learned, for the next to begin with.

use crate::types::Profile;

/// Times of one batch, in nanoseconds; 0 where not known. A prior: what is measured within the
/// epoch displaces it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Learned {
    /// t_c: one step on a batch that the host prepares.
    pub host_ns: u64,
    /// t_g: one step on a batch that a device had ready.
    pub ready_ns: u64,
    /// Preparation of one host batch by one worker, begin to end.
    pub preparation_ns: u64,
    /// t_s of each device: one batch at it. May be shorter than the devices are many.
    pub device_ns: Vec<u64>,
}

impl Learned {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// From t_c, t_s of each of so many like devices, and t_g.
    pub fn from_profile(profile: &Profile, devices: usize) -> Self {
        Self {
            host_ns: profile.host_ns,
            ready_ns: profile.ready_ns,
            preparation_ns: 0,
            device_ns: vec![profile.device_ns; devices],
        }
    }

    /// t_s of a device, 0 where not known.
    pub fn device_ns(&self, device: usize) -> u64 {
        self.device_ns.get(device).copied().unwrap_or(0)
    }
}
