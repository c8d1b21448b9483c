//! The contents of a slot as messages, for a host that shares no memory with the device.

use bytes::Bytes;
use meetpoint_format::wire::device_message::Message;
use meetpoint_format::wire::{DeviceMessage, SLOT_DATA_BYTES_MAX, SlotData};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tokio::sync::mpsc::Sender;
use tonic::Status;

/// Longest wait between two heartbeats.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// A message to the host, or the status that ends the stream.
pub(crate) type OutgoingMessage = Result<DeviceMessage, Status>;

/// Called while waiting; `false` cancels what can be cancelled. It also sends heartbeats.
pub(crate) type GoOn<'a> = &'a mut dyn FnMut() -> bool;

/// Pieces of a slot that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<(u64, Bytes)>);

impl Pieces {
    /// Adds bytes of a slot that begin at `offset`.
    pub(crate) fn add(&mut self, offset: u64, bytes: &[u8]) {
        let begins = (offset..).step_by(SLOT_DATA_BYTES_MAX);
        let chunks = bytes.chunks(SLOT_DATA_BYTES_MAX).map(Bytes::copy_from_slice);
        self.0.extend(begins.zip(chunks));
    }

    /// Total bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, data)| data.len() as u64).sum()
    }

    /// Sends all pieces and discards them, whatever the result: `false` if `go_on` cancelled it or
    /// the host has disconnected.
    pub(crate) fn send(
        &mut self,
        slot: u32,
        to: &Sender<OutgoingMessage>,
        go_on: GoOn<'_>,
    ) -> bool {
        self.0.drain(..).all(|(offset, data)| {
            let message = Some(Message::SlotData(SlotData { slot, offset, data }));
            go_on() && send_one(to, Ok(DeviceMessage { message }), go_on)
        })
    }
}

/// Sends a message as soon as there is room for it.
fn send_one(to: &Sender<OutgoingMessage>, message: OutgoingMessage, go_on: GoOn<'_>) -> bool {
    let mut room = pin!(to.reserve());
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match room.as_mut().poll(&mut context) {
            Poll::Ready(Ok(permit)) => {
                permit.send(message);
                return true;
            }
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => std::thread::park_timeout(WAIT_SLICE),
        }
        if !go_on() {
            return false;
        }
    }
}

/// Wakes a thread that is parked.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Pieces, SLOT_DATA_BYTES_MAX};
    use tokio::sync::mpsc;

    #[test]
    fn pieces_are_contiguous_and_no_longer_than_a_message_may_be() {
        let (sender, mut receiver) = mpsc::channel(8);
        let payload: Vec<u8> = (0..SLOT_DATA_BYTES_MAX * 2 + 5).map(|at| at as u8).collect();
        let mut pieces = Pieces::default();
        pieces.add(4096, &payload);
        assert!(pieces.send(3, &sender, &mut || true));
        let mut got = Vec::new();
        while let Ok(Ok(message)) = receiver.try_recv() {
            let Some(Message::SlotData(data)) = message.message else { panic!("{message:?}") };
            assert_eq!((data.slot, data.offset), (3, 4096 + got.len() as u64));
            assert!(data.data.len() <= SLOT_DATA_BYTES_MAX);
            got.extend_from_slice(&data.data);
        }
        assert!(got == payload);
        assert!(pieces.send(3, &sender, &mut || true), "there is nothing more to send");
        assert!(receiver.try_recv().is_err());
    }

    #[test]
    fn a_full_connection_is_waited_for_until_the_batch_is_void() {
        let (sender, receiver) = mpsc::channel(1);
        let mut pieces = Pieces::default();
        pieces.add(0, &[0; 2 * SLOT_DATA_BYTES_MAX]);
        let mut looks = 0;
        let sent = pieces.send(0, &sender, &mut || {
            looks += 1;
            looks < 4
        });
        assert!(!sent && looks == 4);
        drop(receiver);
        pieces.add(0, &[0; 1]);
        assert!(!pieces.send(0, &sender, &mut || true), "the host has disconnected");
    }

    #[test]
    fn a_sender_that_waits_goes_on_as_soon_as_there_is_room() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut pieces = Pieces::default();
        pieces.add(0, &[0; 20 * SLOT_DATA_BYTES_MAX]);
        let reader = std::thread::spawn(move || {
            let mut count = 0;
            while receiver.blocking_recv().is_some() {
                count += 1;
            }
            count
        });
        assert!(pieces.send(0, &sender, &mut || true));
        drop(sender);
        assert_eq!(reader.join().unwrap(), 20);
    }
}
