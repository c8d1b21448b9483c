//! What a device of tests does: it prepares, publishes, and misbehaves.

use super::{Answers, Behaviour, Fault};
use meetpoint_format::checksum::crc32c;
use meetpoint_format::slot::{HEADER_BYTES, SlotColumn, SlotHeader};
use meetpoint_format::wire::device_message::Message;
use meetpoint_format::wire::{
    DeviceMessage, Failed, Meters, Progress, Published, SLOT_DATA_BYTES_MAX, SlotData, host_message,
};
use meetpoint_prepare::{CpuPreparer, Job, Preparer};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The entries of a table, with checksums of the ranges that they describe, if these are inside the
/// payload.
fn misdescribed(mut columns: Vec<SlotColumn>, payload: &[u8]) -> Vec<SlotColumn> {
    for column in &mut columns {
        let start = column.extent.offset as usize;
        let end = start.saturating_add(column.extent.bytes as usize);
        column.crc32c = payload.get(start..end).map_or(0, crc32c);
    }
    columns
}

pub(super) struct Worker {
    pub(super) preparer: CpuPreparer,
    pub(super) job: Job,
    /// Absent over a network.
    pub(super) spool: Option<File>,
    pub(super) slot_bytes: u64,
    pub(super) is_free: Vec<bool>,
    pub(super) last_slot: u32,
    pub(super) queue: VecDeque<u32>,
    pub(super) epoch: u32,
    pub(super) generation: u32,
    pub(super) is_silent: bool,
    pub(super) answers: Answers,
    pub(super) messages: Receiver<host_message::Message>,
    pub(super) behaviour: Behaviour,
    /// The index of the device, and the number of devices that hold different parts.
    pub(super) device: u32,
    pub(super) devices: u32,
    pub(super) batches: Arc<Mutex<u32>>,
    pub(super) meters: Meters,
}

/// A slot as a device sends it.
fn pieces(slot: u32, payload: &[u8], header: &[u8]) -> Vec<SlotData> {
    let begins = (HEADER_BYTES as u64..).step_by(SLOT_DATA_BYTES_MAX);
    let chunks = begins.zip(payload.chunks(SLOT_DATA_BYTES_MAX));
    let all = chunks.chain([(0, header)]);
    all.map(|(offset, data)| SlotData { slot, offset, data: data.to_vec().into() }).collect()
}

/// The link has ended.
struct LinkEnded;

impl Worker {
    pub(super) fn run(mut self) {
        while self.turn().is_ok() {}
    }

    fn turn(&mut self) -> Result<(), LinkEnded> {
        let free = self.is_free.iter().position(|is_free| *is_free);
        let (Some(slot), false, Some(&batch)) = (free, self.is_silent, self.queue.front()) else {
            return self.listen(Duration::from_millis(50));
        };
        self.listen(Duration::ZERO)?;
        if self.queue.front() != Some(&batch) || !self.is_free[slot] {
            return Ok(());
        }
        self.queue.pop_front();
        let number = {
            let mut batches = self.batches.lock().unwrap();
            *batches += 1;
            *batches
        };
        let faults = &self.behaviour.faults;
        let fault = faults.iter().find(|(at, _)| *at == number).map(|(_, fault)| *fault);
        self.publish(batch, slot, fault)
    }

    /// Receives one message, or sends progress if none arrives for a while.
    fn listen(&mut self, limit: Duration) -> Result<(), LinkEnded> {
        match self.messages.recv_timeout(limit) {
            Ok(message) => {
                self.obey(message);
                Ok(())
            }
            Err(RecvTimeoutError::Disconnected) => Err(LinkEnded),
            Err(RecvTimeoutError::Timeout) if self.is_silent || self.queue.is_empty() => Ok(()),
            Err(RecvTimeoutError::Timeout) => self.say(Message::Progress(Progress::default())),
        }
    }

    fn obey(&mut self, message: host_message::Message) {
        match message {
            host_message::Message::StartEpoch(start) => {
                self.queue.clear();
                (self.epoch, self.generation) = (start.epoch, start.generation);
                self.is_silent = false;
            }
            host_message::Message::Work(work) => {
                assert_eq!((work.epoch, work.generation), (self.epoch, self.generation));
                let run = (0..work.count).map(|step| match work.descending {
                    true => work.first - step,
                    false => work.first + step,
                });
                self.queue.extend(run);
            }
            host_message::Message::Revoke(revoke) if revoke.epoch < self.epoch => {}
            host_message::Message::Revoke(revoke) => {
                assert!(revoke.generation > self.generation);
                self.queue.clear();
                self.generation = revoke.generation;
                self.is_silent = false;
                // Sends progress, so that the host may grant work again.
                let _ = self.say(Message::Progress(Progress::default()));
            }
            host_message::Message::Release(release) => {
                let is_free = &mut self.is_free[release.slot as usize];
                assert!(!*is_free, "a slot is released once");
                *is_free = true;
            }
            host_message::Message::Stop(_) => self.queue.clear(),
        }
    }

    fn publish(&mut self, batch: u32, slot: usize, fault: Option<Fault>) -> Result<(), LinkEnded> {
        let Job { recipe, batching, .. } = &self.job;
        let is_own = self.devices == 1 || u32::from(batching.holder(batch).0) == self.device;
        assert!(is_own, "device {} was given batch {batch}, which it does not hold", self.device);
        let mut payload = vec![0; usize::try_from(self.slot_bytes).unwrap() - HEADER_BYTES];
        let (epoch, generation) = (self.epoch, self.generation);
        let prepared = self.preparer.prepare(epoch, batch, &mut payload, &mut |_| true);
        let layout = match prepared {
            Ok(prepared) => prepared.layout,
            Err(error) => {
                let (reason, is_damage) = (error.to_string(), error.is_damage());
                let failed =
                    Failed { epoch, batch, generation, reason, is_damage, exceeds_slot: false };
                return self.say(Message::Failed(failed));
            }
        };
        std::thread::sleep(self.behaviour.pause);
        let columns = self.preparer.columns();
        payload.truncate(usize::try_from(layout.bytes()).unwrap());
        let mut header = SlotHeader {
            epoch,
            batch,
            generation,
            samples: layout.samples(),
            seed: batching.seed(),
            recipe: recipe.hash(),
            payload_bytes: layout.bytes(),
            columns: SlotHeader::table(columns, &layout, &payload),
        };
        if let Some(Fault::Lies(lie)) = fault {
            lie(&mut header, &mut payload);
            header.columns = misdescribed(header.columns, &payload);
        }
        let mut header = header.encode();
        let clock_ns = self.behaviour.clock_ns.unwrap_or_else(meetpoint_host::clock::monotonic_ns);
        let mut published = Published {
            epoch,
            batch,
            generation,
            slot: slot as u32,
            busy_ns: 1,
            started_ns: clock_ns,
            published_ns: clock_ns,
        };
        match fault {
            None => {}
            Some(Fault::Lies(_) | Fault::Sends(_)) => {}
            Some(Fault::Corrupt) => payload[100] ^= 4,
            Some(Fault::Torn) => header[HEADER_BYTES / 2..].fill(0),
            Some(Fault::Failed) => {
                let reason = "it would not decode".to_owned();
                let failed = Failed {
                    epoch,
                    batch,
                    generation,
                    reason,
                    is_damage: false,
                    exceeds_slot: false,
                };
                return self.say(Message::Failed(failed));
            }
            Some(Fault::Silent) => {
                self.is_silent = true;
                return Ok(());
            }
            Some(Fault::Hang) => {
                // Until the host disconnects, which ends the channel.
                while self.messages.recv().is_ok() {}
                return Err(LinkEnded);
            }
            Some(Fault::Drop) => return Err(LinkEnded),
            Some(Fault::Steal) => published.slot = self.last_slot,
            Some(Fault::OldGeneration) => published.generation -= 1,
            Some(Fault::OtherEpoch) => published.epoch += 1,
        }
        let offset = slot as u64 * self.slot_bytes;
        match &self.spool {
            Some(spool) => {
                spool.write_all_at(&payload, offset + HEADER_BYTES as u64).unwrap();
                spool.write_all_at(&header[..], offset).unwrap();
            }
            None => {
                let mut pieces = pieces(published.slot, &payload, &header[..]);
                if let Some(Fault::Sends(change)) = fault {
                    change(&mut pieces);
                }
                pieces.into_iter().try_for_each(|piece| self.say(Message::SlotData(piece)))?;
            }
        }
        self.is_free[slot] = false;
        self.last_slot = slot as u32;
        self.meters.batches += 1;
        self.meters.spool_bytes_written += (HEADER_BYTES + payload.len()) as u64;
        self.say(Message::Published(published))?;
        self.say(Message::Meters(self.meters))
    }

    fn say(&self, message: Message) -> Result<(), LinkEnded> {
        self.answers.send(Ok(DeviceMessage { message: Some(message) })).map_err(|_| LinkEnded)
    }
}
