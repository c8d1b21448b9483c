//! One connection to a device: the messages sent to it, and the slots that it has published.
#![expect(unsafe_code, reason = "lends the slots, which are shared memory, as slices")]

use super::pieces::{Piece, SlotPieces};
use crate::causes::{Breach, LossCause};
use crate::page_locks::{LockBudget, Unlocked};
use crate::spool::Spool;
use meetpoint_format::slot::HEADER_BYTES;
use meetpoint_format::wire::{
    HostMessage, Meters, Release, Revoke, SlotData, StartEpoch, Work, host_message,
};
use meetpoint_gpu::Compute;
use meetpoint_scheduler::{DeviceId, Generation, WorkRun};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, mpsc};

/// Maximum number of messages that wait to be sent, besides one release for each slot. A device
/// that leaves more unread is considered dead.
const UNREAD_MAX: usize = 256;

/// A connection, shared by all threads that send to the device or hold one of its slots.
#[derive(Debug)]
pub(crate) struct Session {
    device: DeviceId,
    spool: Spool,
    outbound: Mutex<Option<mpsc::Sender<HostMessage>>>,
    /// For each slot, whether the device has published it and the host has not released it.
    leased: Mutex<Vec<bool>>,
    /// Leases that the consumer holds.
    in_use: AtomicU32,
    /// Batches that are retained for another epoch, or will be once their lease is dropped.
    retained: Mutex<Retained>,
    /// Whether sending has ended.
    is_closed: AtomicBool,
    /// Why this side closed it after an error; `None` while open, or if it was closed as planned.
    broken_off: Mutex<Option<LossCause>>,
    /// Wakes the link's thread when this side closed it.
    closing: Notify,
    meters: Mutex<Meters>,
    /// The state of the slots whose contents the device sends.
    pieces: Option<Mutex<SlotPieces>>,
}

impl Session {
    /// A session with a device over `spool`, and the messages to be sent.
    pub(crate) fn new(
        device: DeviceId,
        spool: Spool,
        is_stream: bool,
    ) -> (Arc<Self>, mpsc::Receiver<HostMessage>) {
        let limits = spool.limits();
        let slots = limits.slots as usize;
        let pieces = is_stream.then(|| SlotPieces::new(limits.slots, limits.slot_bytes));
        let (sender, receiver) = mpsc::channel(slots + UNREAD_MAX);
        let session = Self {
            device,
            spool,
            outbound: Mutex::new(Some(sender)),
            leased: Mutex::new(vec![false; slots]),
            in_use: AtomicU32::new(0),
            retained: Mutex::new(Retained::default()),
            is_closed: AtomicBool::new(false),
            broken_off: Mutex::new(None),
            closing: Notify::new(),
            meters: Mutex::new(Meters::default()),
            pieces: pieces.map(Mutex::new),
        };
        (Arc::new(session), receiver)
    }

    /// The device.
    pub(crate) fn device(&self) -> DeviceId {
        self.device
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(crate) fn start_epoch(&self, epoch: u32, generation: u32) {
        self.send(host_message::Message::StartEpoch(StartEpoch { epoch, generation }));
    }

    pub(crate) fn work(&self, epoch: u32, run: WorkRun, generation: Generation) {
        self.send(host_message::Message::Work(Work {
            epoch,
            generation: generation.0,
            first: run.first.0,
            count: run.count,
            descending: run.descending,
        }));
    }

    pub(crate) fn revoke(&self, epoch: u32, generation: u32) {
        self.send(host_message::Message::Revoke(Revoke { epoch, generation }));
    }

    /// Queues a message; never waits.
    pub(crate) fn send(&self, message: host_message::Message) {
        let outbound = lock(&self.outbound);
        let Some(sender) = outbound.as_ref() else { return };
        if sender.try_send(HostMessage { message: Some(message) }).is_err() {
            drop(outbound);
            self.break_off(Breach::MessagesUnread.into());
        }
    }

    /// Closes the session because the device cannot be used. Only the first cause is retained.
    pub(crate) fn break_off(&self, cause: LossCause) {
        lock(&self.broken_off).get_or_insert(cause);
        self.close();
    }

    /// Stops sending; the link's thread then closes the connection.
    pub(crate) fn close(&self) {
        // Set first, since the device may react and close the link from its side.
        self.is_closed.store(true, Ordering::SeqCst);
        lock(&self.outbound).take();
        self.closing.notify_one();
    }

    /// Returns once this side closed the session.
    pub(crate) async fn closed(&self) {
        self.closing.notified().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Why this side closed the session; `None` if that was planned.
    pub(crate) fn broken_off(&self) -> Option<LossCause> {
        lock(&self.broken_off).clone()
    }

    /// Whether the device sends the contents of slots, and therefore has its own clock.
    pub(crate) fn is_stream(&self) -> bool {
        self.pieces.is_some()
    }

    /// Writes a piece of a slot that the device sends; an error if the piece is not allowed. Called
    /// only by the link's thread, so that no slot is leased meanwhile.
    pub(crate) fn take_piece(&self, data: &SlotData) -> Result<(), LossCause> {
        let slot = data.slot;
        let Some(pieces) = &self.pieces else { return Err(Breach::SlotShared { slot }.into()) };
        let piece = lock(pieces).accept(slot, data.offset, data.data.len())?;
        if lock(&self.leased)[slot as usize] {
            return Err(Breach::SlotGivenAway { slot }.into());
        }
        let begin = self.spool.offset(slot);
        let cleared = match piece {
            // A partially received batch must not be mistaken for the previous one.
            Piece::Begins => self.spool.file().write_all_at(&[0; HEADER_BYTES], begin),
            Piece::Continues => Ok(()),
        };
        cleared
            .and_then(|()| self.spool.file().write_all_at(&data.data, begin + data.offset))
            .map_err(|error| LossCause::NotStored { error: error.into() })
    }

    /// Takes over a slot that the device claims to have published; `None` if the device does not
    /// own it.
    pub(crate) fn lease(self: &Arc<Self>, slot: u32) -> Option<SlotLease> {
        let mut leased = lock(&self.leased);
        let entry = leased.get_mut(slot as usize).filter(|is_leased| !**is_leased)?;
        *entry = true;
        Some(SlotLease { session: Arc::clone(self), slot, is_kept: false, contents: None })
    }

    /// Number of slots that the device published and the host has not released.
    pub(crate) fn leased(&self) -> u32 {
        lock(&self.leased).iter().map(|&is_leased| u32::from(is_leased)).sum()
    }

    /// Retains up to a given number of batches for other epochs.
    pub(crate) fn retain_at_most(&self, most: u32) {
        lock(&self.retained).most = most;
    }

    /// The retained batches, the highest first; their slots are leased again.
    pub(crate) fn take_retained(self: &Arc<Self>) -> Vec<(SlotLease, SlotContents)> {
        let mut retained = lock(&self.retained);
        let mut slots = std::mem::take(&mut retained.slots);
        retained.count -= u32::try_from(slots.len()).expect("slots have 32 bits");
        slots.sort_unstable_by_key(|(_, contents)| std::cmp::Reverse(contents.batch));
        let lease = |(slot, contents)| {
            let session = Arc::clone(self);
            (SlotLease { session, slot, is_kept: false, contents: None }, contents)
        };
        slots.into_iter().map(lease).collect()
    }

    /// Number of leases that the consumer holds.
    pub(crate) fn in_use(&self) -> u32 {
        self.in_use.load(Ordering::SeqCst)
    }

    pub(crate) fn set_meters(&self, meters: Meters) {
        *lock(&self.meters) = meters;
    }

    pub(crate) fn meters(&self) -> Meters {
        *lock(&self.meters)
    }
}

/// The contents of a slot, and the numbers (epoch, generation) with which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotContents {
    pub(crate) epoch: u32,
    pub(crate) generation: u32,
    pub(crate) batch: u32,
    /// When the device began and published it, by [`crate::clock::monotonic_ns`].
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Unused slots whose batches are retained for another epoch.
#[derive(Debug, Default)]
struct Retained {
    most: u32,
    /// The batches in `slots` and those that are still in use.
    count: u32,
    slots: Vec<(u32, SlotContents)>,
}

/// A published slot. Dropping it releases the slot to the device, or retains its batch.
#[derive(Debug)]
pub(crate) struct SlotLease {
    session: Arc<Session>,
    slot: u32,
    is_kept: bool,
    /// The contents with which it is retained for another epoch; `None` if it is not retained.
    contents: Option<SlotContents>,
}

impl SlotLease {
    /// Number of the slot.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The slot's bytes, if the spool is in memory.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        let slot = self.session.spool.slot(self.slot)?;
        // SAFETY: the session keeps the spool mapped, no device writes to a slot that it published,
        // and a slot has one lease, which is written to only through `&mut`.
        Some(unsafe { slot.as_ref() })
    }

    /// Page-locks the slot until the spool is dropped, so that a GPU copies from it directly.
    pub(crate) fn lock_pages(
        &self,
        compute: &mut (impl Compute + ?Sized),
        budget: &mut LockBudget,
    ) -> Result<(), Unlocked> {
        let bytes = self.bytes().ok_or(Unlocked::NotInSlot)?;
        self.session.spool.page_locks().lock(self.slot as usize, bytes, compute, budget)
    }

    /// The slot's bytes for writing, if the spool is in memory. The batch is then not retained for
    /// another epoch.
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let mut slot = self.session.spool.slot(self.slot)?;
        if self.contents.take().is_some() {
            lock(&self.session.retained).count -= 1;
        }
        // SAFETY: as in `bytes`, and the exclusive borrow prevents any other access.
        Some(unsafe { slot.as_mut() })
    }

    /// Retains the batch in its slot for another epoch, if the limit allows it.
    pub(crate) fn retain(&mut self, contents: SlotContents) {
        let mut retained = lock(&self.session.retained);
        if self.contents.is_none() && retained.count < retained.most {
            retained.count += 1;
            self.contents = Some(contents);
        }
    }

    /// Marks the lease as held by the consumer.
    pub(crate) fn keep(&mut self) {
        if !std::mem::replace(&mut self.is_kept, true) {
            self.session.in_use.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        if self.is_kept {
            self.session.in_use.fetch_sub(1, Ordering::SeqCst);
        }
        if let Some(contents) = self.contents.take() {
            lock(&self.session.retained).slots.push((self.slot, contents));
            return;
        }
        // Cleared before the device can learn that it owns the slot again.
        lock(&self.session.leased)[self.slot as usize] = false;
        self.session.send(host_message::Message::Release(Release { slot: self.slot }));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while one of these is held leaves the state consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SpoolConfig, SpoolKind};
    use crate::limits::SpoolLimits;

    fn session(slots: u32) -> (Arc<Session>, mpsc::Receiver<HostMessage>) {
        let limits = SpoolLimits { slots, slot_bytes: 8192, slots_scheduled: slots };
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        Session::new(DeviceId(0), Spool::create(&config, limits).unwrap(), false)
    }

    #[test]
    fn a_slot_is_given_away_once_and_released_when_its_lease_is_dropped() {
        let (session, mut sent) = session(2);
        let mut lease = session.lease(1).unwrap();
        assert!(session.lease(1).is_none(), "it was given away already");
        assert!(session.lease(2).is_none(), "there is no such slot");
        lease.keep();
        lease.keep();
        assert_eq!(session.in_use(), 1);
        drop(lease);
        assert_eq!(session.in_use(), 0);
        let released = host_message::Message::Release(Release { slot: 1 });
        assert_eq!(sent.try_recv().unwrap().message, Some(released));
        assert!(session.lease(1).is_some());
    }

    #[test]
    fn a_device_that_reads_nothing_breaks_the_session_and_nobody_waits() {
        let (session, _sent) = session(1);
        for _ in 0..=UNREAD_MAX + 1 {
            assert!(!session.is_closed());
            session.revoke(0, 1);
        }
        assert!(session.is_closed());
        assert_eq!(session.broken_off(), Some(Breach::MessagesUnread.into()));
        session.revoke(0, 1);
    }

    #[test]
    fn a_retained_batch_is_returned_and_its_slot_is_not_released_meanwhile() {
        let (session, mut sent) = session(4);
        session.retain_at_most(2);
        let contents =
            |batch| SlotContents { epoch: 0, generation: 1, batch, start_ns: 0, end_ns: 1 };
        for slot in 0..4 {
            let mut lease = session.lease(slot).unwrap();
            lease.retain(contents(slot));
            lease.retain(contents(slot));
        }
        let mut released = || match sent.try_recv().ok()?.message? {
            host_message::Message::Release(release) => Some(release.slot),
            other => panic!("{other:?}"),
        };
        assert_eq!([released(), released(), released()], [Some(2), Some(3), None]);
        assert!(session.lease(1).is_none(), "it is retained");
        let retained = session.take_retained();
        let batches: Vec<u32> = retained.iter().map(|(_, contents)| contents.batch).collect();
        assert_eq!(batches, [1, 0]);
        drop(retained);
        assert_eq!([released(), released(), released()], [Some(1), Some(0), None]);
        assert!(session.take_retained().is_empty());
    }

    #[test]
    fn a_slot_that_was_written_to_is_not_retained_and_its_next_batch_is_the_devices() {
        let (session, mut sent) = session(2);
        session.retain_at_most(1);
        let contents = SlotContents { epoch: 0, generation: 1, batch: 0, start_ns: 0, end_ns: 1 };
        let spool = session.spool();
        spool.file().write_all_at(&[9; 8192], spool.offset(1)).unwrap();
        let mut lease = session.lease(1).unwrap();
        lease.retain(contents);
        lease.bytes_mut().unwrap().fill(3);
        assert!(lease.bytes().unwrap().iter().all(|&byte| byte == 3));
        drop(lease);
        let released = host_message::Message::Release(Release { slot: 1 });
        assert_eq!(sent.try_recv().unwrap().message, Some(released));
        assert!(session.take_retained().is_empty());
        spool.file().write_all_at(&[7; 8192], spool.offset(1)).unwrap();
        let mut again = session.lease(1).unwrap();
        assert!(again.bytes().unwrap().iter().all(|&byte| byte == 7));
        again.retain(contents);
        drop(again);
        assert_eq!(session.take_retained().len(), 1, "there is room for one again");
    }

    #[test]
    fn leases_outlive_a_session_that_ended() {
        let (session, sent) = session(1);
        let lease = session.lease(0).unwrap();
        session.close();
        drop((session, sent));
        assert_eq!(lease.bytes().unwrap().len(), 8192);
    }

    #[test]
    fn what_a_device_sends_lands_in_its_slots_and_in_no_other() {
        let limits = SpoolLimits { slots: 2, slot_bytes: 8192, slots_scheduled: 2 };
        let config = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 1 << 20 };
        let spool = Spool::create(&config, limits).unwrap();
        let (session, _sent) = Session::new(DeviceId(0), spool, true);
        let piece =
            |slot, offset, byte, count| SlotData { slot, offset, data: vec![byte; count].into() };
        session.take_piece(&piece(1, 4096, 7, 4096)).unwrap();
        session.take_piece(&piece(1, 0, 9, 4096)).unwrap();
        let lease = session.lease(1).unwrap();
        let expected = [[9; 4096], [7; 4096]].concat();
        assert_eq!(lease.bytes().unwrap(), expected);
        assert!(session.take_piece(&piece(1, 4096, 1, 4096)).is_err(), "it gave the slot away");
        assert!(session.take_piece(&piece(2, 4096, 1, 1)).is_err());
        assert_eq!(lease.bytes().unwrap(), expected);
        drop(lease);
        session.take_piece(&piece(1, 4096, 1, 4096)).unwrap();
        let lease = session.lease(1).unwrap();
        assert_eq!(lease.bytes().unwrap()[..4096], [0; 4096], "the header before is gone");
        let (shared, _sent) = self::session(1);
        assert!(shared.take_piece(&piece(0, 4096, 1, 1)).is_err(), "nothing is sent there");
    }
}
