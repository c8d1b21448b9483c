//! What a dataset retains in memory: entry points, further columns, and record batches of small
//! samples.

use super::Dataset;
use crate::column_cache::ColumnsReadAgain;
use crate::dataset_folder::DatasetFolder;
use crate::small_samples::{BUFFER_EXTRA_BYTES, Content, SmallSamples, may_be_small};
use meetpoint_storage::MemoryLimit;
use meetpoint_storage::files::FileState;

impl Dataset {
    /// Caches entry points from now on, in at most `bytes_max` bytes of memory, divided among
    /// several folders in proportion to their samples.
    pub fn keep_entry_points(&self, bytes_max: u64) {
        let samples = u128::from(self.len().max(1));
        for member in &self.members {
            let share = u128::from(bytes_max) * u128::from(member.len()) / samples;
            member.keep_entry_points(u64::try_from(share).expect("at most all of them"));
        }
    }

    /// Caches further columns in at most `bytes_max` bytes of memory from now on.
    pub fn keep_columns(&self, bytes_max: usize) {
        self.column_cache.set_bytes_max(bytes_max);
    }

    /// From now on, retains record batches of small samples, which preparers read whole, in at most
    /// `bytes_max` bytes of memory. Has no effect on a dataset whose content stays in place, is in
    /// a store or is read by its extents.
    pub fn keep_small_samples(&self, bytes_max: u64) {
        if self.has_small_samples() {
            self.small_samples.grant(bytes_max, self.record_batches());
        }
    }

    /// As [`Self::keep_small_samples`], with [`Self::small_samples_bytes_max`]. Has no effect if
    /// [`Self::keep_small_samples`] was called before.
    pub fn keep_small_samples_by_memory(&self) {
        if !self.small_samples.is_decided() {
            self.keep_small_samples(self.small_samples_bytes_max(u64::MAX));
        }
    }

    /// The memory for small samples in a process that grants them at most `bytes_max`: no more than
    /// all of them take, and no more than [`MemoryLimit::for_small_samples`]. 0 if there are none.
    pub fn small_samples_bytes_max(&self, bytes_max: u64) -> u64 {
        if bytes_max == 0 || !self.has_small_samples() {
            return 0;
        }
        // The limit is read from several files.
        let share = MemoryLimit::of_this_process().for_small_samples();
        share.min(self.small_samples_bytes_of(bytes_max))
    }

    /// The memory for small samples: `bytes_max`, but no more than all of them take.
    pub fn small_samples_bytes_of(&self, bytes_max: u64) -> u64 {
        if bytes_max == 0 || !self.has_small_samples() {
            return 0;
        }
        let all = self.manifest().image_bytes + BUFFER_EXTRA_BYTES * self.record_batches() as u64;
        all.min(bytes_max)
    }

    /// Bytes of memory of the retained small samples.
    pub fn small_samples_bytes(&self) -> u64 {
        self.small_samples.held()
    }

    /// The current state of the file of every part; `None` if it cannot be determined.
    pub(crate) fn part_states(&self) -> Vec<Option<FileState>> {
        let states = |member: &DatasetFolder| {
            (0..member.manifest().parts.len())
                .map(|part| member.part_state(part))
                .collect::<Vec<_>>()
        };
        self.members.iter().flat_map(states).collect()
    }

    /// Whether some samples may be small, according to the lengths of the parts.
    pub(super) fn has_small_samples(&self) -> bool {
        let parts = &self.manifest().parts;
        // The cache of a store already retains whole blocks. Extents have no file state that would
        // reveal a change.
        let is_read_here =
            self.content_root().is_none() && !self.is_remote() && !self.has_extents();
        is_read_here && parts.iter().any(|it| may_be_small(it.bytes, it.samples))
    }

    pub(crate) fn small_samples(&self) -> &SmallSamples {
        &self.small_samples
    }

    /// The content of a record batch of small samples, one of which was located.
    pub(crate) fn small_content(&self, record_batch: usize) -> Option<Content> {
        let (member, own) = self.of_record_batch(record_batch);
        let (part, range) = self.members[member].content_of(own)?;
        let samples = self.members[member].samples_of(own);
        let (part, rows) = (part + self.offset_of(member).part, samples.end - samples.start);
        Some(Content { part, range, rows }).filter(Content::is_small)
    }

    /// Statistics of further columns that were read again since the previous call, because the
    /// cache is too small, if these exceed the requested columns; reported only once.
    pub fn take_columns_read_again(&self) -> Option<ColumnsReadAgain> {
        self.column_cache.take_read_again()
    }

    /// Bytes of memory of the cached entry points.
    pub fn entry_points_bytes(&self) -> u64 {
        self.members.iter().map(DatasetFolder::entry_points_bytes).sum()
    }
}
