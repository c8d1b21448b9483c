//! A dataset of which folders are in stores: waits, prefetching, and reads that are repeated.

use crate::remote::{PartFile, RemoteEngine, RemoteFolder, RemoteUse};
use crate::{Dataset, Error};
use meetpoint_format::dataset::SampleLocation;
use meetpoint_kernels::Interrupt;
use meetpoint_storage::Engine;
use std::ops::Range;
use std::sync::Arc;

impl Dataset {
    /// The folders in stores, and the index of the first part of each.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = (usize, &Arc<dyn RemoteFolder>)> {
        self.members().filter_map(|(first_part, member)| Some((first_part, member.remote()?)))
    }

    /// Whether a folder is in a store.
    pub fn is_remote(&self) -> bool {
        self.reading().is_some()
    }

    /// Fails if a cache of a store cannot hold what `readers` readers in each of `processes`
    /// processes need at once.
    pub fn check_remote(&self, readers: u64, processes: u64) -> Result<(), Error> {
        for (_, folder) in self.remotes() {
            folder.check_room(readers, processes).map_err(|source| {
                let path = self.path().to_path_buf();
                Error::Open { path, source }
            })?;
        }
        Ok(())
    }

    /// What reading from stores took so far; `None` if no folder is in one.
    pub fn remote_use(&self) -> Option<RemoteUse> {
        self.remotes().map(|(_, folder)| folder.usage()).reduce(|all, one| all + one)
    }

    /// Ends all waits for stores once `interrupt` is raised.
    pub fn set_remote_interrupt(&self, interrupt: &Interrupt) {
        self.remotes().for_each(|(_, folder)| folder.set_interrupt(interrupt.clone()));
    }

    /// Ends all waits for stores, and prefetching.
    pub fn stop_remote(&self) {
        self.remotes().for_each(|(_, folder)| folder.stop());
        if let Some(reading) = self.reading() {
            reading.stop();
        }
    }

    /// The engine for the parts. Without a folder in a store, this is `engine`, limited to the
    /// extents of a dataset that is read by them.
    pub(crate) fn engine(&self, engine: Box<dyn Engine>) -> Box<dyn Engine> {
        if !self.is_remote() {
            return self.limited_to_extents(engine);
        }
        let parts = self.remotes().flat_map(|(first, folder)| {
            let parts = self.member_of_part(first).0.manifest().parts.len();
            (0..parts).map(move |part| PartFile {
                path: self.part_path(first + part),
                folder: Arc::clone(folder),
                part,
            })
        });
        Box::new(RemoteEngine::new(parts, engine.limits().depth))
    }

    /// Reads bytes of a part synchronously.
    pub fn read_part(&self, part: usize, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        let (member, own, _) = self.member_of_part(part);
        Ok(member.read_part(own, offset, into)?)
    }

    /// Removes a part from the cache of its store.
    pub fn discard_part(&self, part: usize) {
        let (member, own, _) = self.member_of_part(part);
        if let Some(folder) = member.remote() {
            folder.discard(own, 0..self.manifest().parts[part].bytes);
        }
    }

    /// Begins to fetch bytes of a part, if it is in a store and its cache has space.
    pub fn begin_part(&self, part: usize, range: Range<u64>) {
        self.prefetch(&[(part, range)]);
    }

    /// The samples that bytes of a part in a store belong to.
    pub(crate) fn samples_of_bytes(&self, part: usize, range: &Range<u64>) -> Range<u64> {
        let (member, own, _) = self.member_of_part(part);
        let samples = member.samples_of_bytes(own, range);
        let before = self.first_sample_of_part(part);
        samples.start + before..samples.end + before
    }

    /// The record batch of a sample in a store, if its table was not read yet: its part, and its
    /// bytes there.
    pub(crate) fn unread_table(&self, sample: u64) -> Option<(usize, Range<u64>)> {
        let (member, own, first_part) = self.member_of_sample(sample).ok()?;
        let (part, range, is_read) = member.extent_beside(own).ok()?;
        (!is_read).then_some((first_part + part, range))
    }

    /// Reads the footers that these samples in a store need and that were not read yet, together.
    pub(crate) fn read_footers_of(&self, samples: &[u64]) -> Result<(), Error> {
        let mut parts: Vec<(usize, usize)> = Vec::new();
        for sample in samples {
            let (member, own, first_part) = self.member_of_sample(*sample)?;
            parts.push((first_part, member.part_of(own)?));
        }
        for (first_part, member) in self.members() {
            let own = parts.iter().filter(|(first, _)| *first == first_part);
            member.read_footers(own.map(|(_, part)| *part))?;
        }
        Ok(())
    }

    /// Begins to fetch ranges of parts that will be needed; returns how many of them are in the
    /// cache or on their way.
    pub(crate) fn prefetch(&self, ranges: &[(usize, Range<u64>)]) -> usize {
        let mut done = 0;
        while done < ranges.len() {
            let (member, _, first) = self.member_of_part(ranges[done].0);
            let same =
                ranges[done..].iter().take_while(|(part, _)| self.member_of_part(*part).2 == first);
            let own: Vec<_> = same.map(|(part, range)| (part - first, range.clone())).collect();
            let Some(folder) = member.remote() else {
                done += own.len();
                continue;
            };
            let taken = folder.prefetch(&own);
            done += taken;
            if taken < own.len() {
                break;
            }
        }
        done
    }

    /// A sample whose bytes did not match their checksum, fetched again if it is in a store; else
    /// the same error.
    pub(crate) fn read_again(
        &self,
        sample: u64,
        location: &SampleLocation,
        error: Error,
    ) -> Result<Vec<u8>, Error> {
        let (member, own, _) = self.member_of_part(location.part);
        let Some(folder) = member.remote() else { return Err(error) };
        folder.discard(own, location.offset..location.offset + location.bytes);
        let mut bytes = vec![0; usize::try_from(location.bytes).expect("at most 256 MiB")];
        self.read_image(sample, location, &mut bytes)?;
        self.check_image(sample, location, &bytes)?;
        Ok(bytes)
    }
}
