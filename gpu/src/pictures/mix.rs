//! Samples of a batch mixed with one another.

use super::TensorFormat;
use super::jobs::{BLOCK, mix_words};
use super::program::SampleMix;
use crate::{Argument, Compute, DeviceMemory, Error, HostMemory, KernelName, Launch};

/// The partner with which each sample is mixed, in its state before the mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// The previous sample; the last one for the first.
    Previous,
    /// The sample at the same distance from the other end. The middle one does not change.
    Mirrored,
}

/// The tensors of a batch, one after another.
#[derive(Debug, Clone, Copy)]
pub struct BatchOnDevice {
    /// Address of the first one in device memory; a multiple of 4.
    pub address: u64,
    /// Height and width of each.
    pub size: (u32, u32),
}

/// Mixes batches one after another and reuses its memory.
#[derive(Debug, Default)]
pub struct SampleMixer {
    staging: Option<HostMemory>,
    uploaded: Option<DeviceMemory>,
    used: usize,
}

const MIX: KernelName = KernelName { module: "finish", name: "mix_samples" };

impl SampleMixer {
    /// Call it when all started work has completed.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Starts mixing the samples of a batch in place, one for each mix. Several mixes may be
    /// started one after another; [`Self::clear`] is called when they are done. `mixes_max` of the
    /// first call limits their number.
    pub fn mix(
        &mut self,
        compute: &mut dyn Compute,
        (batch, format): (BatchOnDevice, &TensorFormat),
        (partner, mixes, mixes_max): (Partner, &[SampleMix], usize),
    ) -> Result<(), Error> {
        if mixes.len() < 2 {
            return Ok(());
        }
        let words: Vec<u8> =
            mixes.iter().flat_map(|mix| mix_words(*mix)).flat_map(u32::to_le_bytes).collect();
        if self.used == 0 {
            let bytes = mixes_max * words.len();
            if self.staging.as_ref().is_none_or(|staging| staging.len() < bytes) {
                self.staging = None;
                self.staging = Some(compute.allocate_host(bytes.next_power_of_two())?);
            }
            if self.uploaded.as_ref().is_none_or(|uploaded| uploaded.bytes() < bytes) {
                self.uploaded = None;
                self.uploaded = Some(compute.allocate(bytes.next_power_of_two())?);
            }
        }
        let (Some(staging), Some(uploaded)) = (&mut self.staging, &self.uploaded) else {
            unreachable!("memory was taken by the first call")
        };
        let at = self.used;
        staging[at..][..words.len()].copy_from_slice(&words);
        compute.upload(&staging[at..][..words.len()], uploaded, at)?;
        self.used += words.len();
        let (height, width) = batch.size;
        let TensorFormat { element_bytes, is_interleaved, channels, .. } = *format;
        let sample_bytes = height * width * channels * element_bytes;
        let group_bytes = if sample_bytes % 4 == 0 { 4 } else { element_bytes };
        let is_mirrored = partner == Partner::Mirrored;
        let numbers = [
            mixes.len() as u32,
            sample_bytes,
            width,
            height,
            channels,
            element_bytes,
            u32::from(is_interleaved),
            u32::from(is_mirrored),
        ];
        let addresses = [batch.address, uploaded.address() + at as u64].map(Argument::Address);
        let arguments = [&addresses[..], &numbers.map(Argument::Word)].concat();
        compute.launch(&Launch {
            kernel: MIX,
            grid: [(sample_bytes / group_bytes).div_ceil(BLOCK), 1, 1],
            block: [BLOCK, 1, 1],
            shared_bytes: 0,
            arguments: &arguments,
        })
    }
}
