//! Deliveries to the CPU that runs the kernels, through a device that records its calls.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversion;
mod recorded;
mod resident;

use crate::delivery::streams::{ConsumerStream, Export};
use crate::delivery::{Delivery, DeliveryError, DeliveryLimits, Piece, Target};
use crate::{Compute, DeviceMemory, Error};
use recorded::{Recorded, lines, recorded};
use std::time::Duration;

const NEVER: &dyn Fn() -> bool = &|| false;

/// Downloads the content of a batch.
fn content(delivery: &mut Delivery<Recorded>, address: u64, bytes: usize) -> Vec<u8> {
    let memory = DeviceMemory::new(address, bytes, Box::new(()));
    let mut out = vec![0; bytes];
    delivery.streams().download(&memory, 0, &mut out).unwrap();
    out
}

/// Bytes without a pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ count as u64;
    std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(count)
    .collect()
}

#[test]
fn pieces_that_are_copied_keep_their_bytes_and_large_ones_go_in_chunks() {
    let (streams, log) = recorded();
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    let (large, small) = (noise(9 << 20), noise(333));
    let at = |offset| Target::Copied { offset };
    let pieces = [Piece::new(&large, at(64)), Piece::new(&small, at(10 << 20))];
    let batch = delivery.deliver(&pieces, 11 << 20, NEVER).unwrap();
    assert!(content(&mut delivery, batch.address() + 64, large.len()) == large);
    assert!(content(&mut delivery, batch.address() + (10 << 20), small.len()) == small);
    // Copies that are done at once need one chunk.
    assert_eq!(lines(&log).iter().filter(|line| *line == "allocate pinned").count(), 1);
    let delivered = delivery.delivered().unwrap();
    assert_eq!((delivered.batches, delivered.bytes), (1, (9 << 20) + 333));
    assert_eq!(delivered.pinned_bytes, 4 << 20);
}

#[test]
fn a_chunk_is_filled_again_only_after_its_copy() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { staging_bytes: 0, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    log.lock().unwrap().is_slow = true;
    let bytes = noise(12 << 20);
    let piece = Piece::new(&bytes, Target::Copied { offset: 0 });
    let batch = delivery.deliver(&[piece], 12 << 20, NEVER).unwrap();
    let found = lines(&log);
    let pinned = found.iter().filter(|line| *line == "allocate pinned").count();
    assert_eq!(pinned, 2, "the limit is two chunks");
    // Event 0 is the beginning of the batch, 1 and 2 the first two copies.
    assert!(found.contains(&"asked for 1".to_owned()), "{found:?}");
    assert!(content(&mut delivery, batch.address(), bytes.len()) == bytes);
}

#[test]
fn locked_memory_is_copied_from_where_it_is_and_waited_for() {
    let (streams, log) = recorded();
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    log.lock().unwrap().is_slow = true;
    let (large, small) = (noise(9 << 20), noise(333));
    let _locked = delivery.streams().lock_pages(&large).unwrap();
    let at = |offset| Target::Copied { offset };
    let pieces =
        [Piece { is_locked: true, ..Piece::new(&large, at(0)) }, Piece::new(&small, at(9 << 20))];
    let batch = delivery.deliver(&pieces, 10 << 20, NEVER).unwrap();
    // Event 0 is the beginning, 1 the copy of the small piece, 2 the end of the copies.
    let found = lines(&log);
    assert!(found.contains(&"wait for 2".to_owned()), "{found:?}");
    assert!(content(&mut delivery, batch.address(), large.len()) == large);
    assert!(content(&mut delivery, batch.address() + (9 << 20), small.len()) == small);
    let delivered = delivery.delivered().unwrap();
    assert_eq!((delivered.bytes, delivered.direct_bytes), ((9 << 20) + 333, 9 << 20));
    // A loader that is closed meanwhile waits for the device first.
    log.lock().unwrap().is_stuck = true;
    let stopped = delivery.deliver(&pieces, 10 << 20, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped));
}

fn small(delivery: &mut Delivery<Recorded>) -> Result<super::DeviceBatch<Recorded>, DeliveryError> {
    let piece = Piece::new(&[1, 2, 3], Target::Copied { offset: 0 });
    delivery.deliver(&[piece], 3, NEVER)
}

#[test]
fn a_consumer_waits_for_the_copy_and_the_next_copy_for_the_consumer() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    let batch = small(&mut delivery).unwrap();
    assert_eq!(batch.device(), 3);
    lines(&log);
    batch.export(Export::Stream(ConsumerStream::Handle(77))).unwrap();
    batch.export(Export::Stream(ConsumerStream::PerThreadDefault)).unwrap();
    let found = lines(&log);
    assert!(found[0].starts_with("stream 77 after event "), "{found:?}");
    assert!(found[1].starts_with("stream 2 after event "), "{found:?}");
    drop(batch);
    let found = lines(&log);
    // The default streams of all threads are reached through the legacy one.
    let [first, second] = &found[..] else { panic!("{found:?}") };
    let event = |line: &str, stream: &str| {
        line.strip_prefix(&format!("{stream}: event ")).expect("an event").to_owned()
    };
    let events = [event(first, "stream 1"), event(second, "stream 77")];
    small(&mut delivery).unwrap();
    let found = lines(&log);
    for event in events {
        assert!(found.contains(&format!("own after event {event}")), "{found:?}");
    }
    assert!(!found.iter().any(|line| line.starts_with("allocate")), "{found:?}");
}

#[test]
fn time_in_which_the_stream_of_the_consumer_has_no_work_is_measured() {
    let (streams, log) = recorded();
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    let stream = Export::Stream(ConsumerStream::Handle(9));
    // Nothing is known before the first export.
    delivery.note_asked();
    let first = small(&mut delivery).unwrap();
    delivery.note_handed(&first);
    first.export(stream).unwrap();
    lines(&log);
    delivery.note_asked();
    let asked = log.lock().unwrap().events - 1;
    assert_eq!(lines(&log), [format!("stream 9: event {asked}")]);
    let second = small(&mut delivery).unwrap();
    delivery.note_handed(&second);
    let delivered = delivery.delivered().unwrap();
    // Times of this device are numbers of events.
    let ready = log.lock().unwrap().events - 1;
    assert_eq!((delivered.idle_ns, delivered.idle_measured), (u64::from(ready - asked), 1));
    // A batch that is dropped before has marked the end itself: its stream may not exist any more.
    second.export(stream).unwrap();
    drop(second);
    log.lock().unwrap().destroyed.insert(9);
    lines(&log);
    delivery.note_asked();
    assert!(lines(&log).is_empty());
    let third = small(&mut delivery).unwrap();
    delivery.note_handed(&third);
    assert_eq!(delivery.delivered().unwrap().idle_measured, 2);
    // An earlier batch does not name the stream.
    first.export(Export::Stream(ConsumerStream::Handle(5))).unwrap();
    third.export(Export::Unordered).unwrap();
    lines(&log);
    delivery.note_asked();
    assert!(lines(&log).is_empty());
    delivery.note_handed(&third);
    assert_eq!(delivery.delivered().unwrap().idle_measured, 2);
}

#[test]
fn unknown_consumers_and_destroyed_streams_are_waited_for_as_a_whole() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    small(&mut delivery).unwrap().export(Export::Unordered).unwrap();
    lines(&log);
    let batch = small(&mut delivery).unwrap();
    assert_eq!(lines(&log)[0], "settle");
    batch.export(Export::Stream(ConsumerStream::Handle(5))).unwrap();
    log.lock().unwrap().destroyed.insert(5);
    drop(batch);
    lines(&log);
    let batch = small(&mut delivery).unwrap();
    assert_eq!(lines(&log)[0], "settle");
    // It was not delivered, so it may be overwritten at once.
    drop(batch);
    lines(&log);
    small(&mut delivery).unwrap();
    assert!(lines(&log)[0].starts_with("own: event"));
}

#[test]
fn memory_is_bounded_and_used_again() {
    let (streams, log) = recorded();
    let wait = Duration::from_millis(1);
    let limits = DeliveryLimits { device_bytes: 4 << 20, wait, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    let held = [small(&mut delivery).unwrap(), small(&mut delivery).unwrap()];
    let refused = small(&mut delivery).unwrap_err();
    assert!(matches!(refused, DeliveryError::NoMemory { lent: 2, .. }), "{refused}");
    drop(held);
    lines(&log);
    for _ in 0..10 {
        small(&mut delivery).unwrap();
    }
    assert!(!lines(&log).iter().any(|line| line.starts_with("allocate")));
    let delivered = delivery.delivered().unwrap();
    assert_eq!((delivered.device_bytes_max, delivered.allocations), (4 << 20, 2));
    assert_eq!((delivered.in_use, delivered.measured), (0, delivered.batches));
    // A larger batch takes the room of smaller ones.
    let piece = Piece::new(&[1], Target::Copied { offset: 3 << 20 });
    delivery.deliver(&[piece], 4 << 20, NEVER).unwrap();
    let refused = delivery.deliver(&[piece], 5 << 20, NEVER).unwrap_err();
    assert!(matches!(refused, DeliveryError::TooLarge { .. }), "{refused}");
}

#[test]
fn memory_that_consumers_work_on_is_waited_for_only_when_enough_is_allocated() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { buffers: 3, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    // The program drops batches at once, and its work on them does not end.
    log.lock().unwrap().is_slow = true;
    log.lock().unwrap().is_stuck = true;
    for number in 0..3 {
        assert!(delivery.has_room(3), "batch {number}");
        let batch = small(&mut delivery).unwrap();
        batch.export(Export::Stream(ConsumerStream::Handle(7))).unwrap();
    }
    assert!(!delivery.has_room(3));
    assert_eq!(delivery.delivered().unwrap().allocations, 3);
    // Now the copy comes after the oldest work.
    lines(&log);
    let batch = small(&mut delivery).unwrap();
    let waits = lines(&log).iter().filter(|line| line.starts_with("own after event")).count();
    assert_eq!((waits, delivery.delivered().unwrap().allocations), (1, 3));
    drop(batch);
    log.lock().unwrap().pending.clear();
    assert!(delivery.has_room(3));
    // Batches that the program holds do not count: there is no other memory.
    let held: Vec<_> = (0..5).map(|_| small(&mut delivery).unwrap()).collect();
    assert_eq!(delivery.delivered().unwrap().in_use, 5);
    drop(held);
}

#[test]
fn a_wait_for_a_batch_ends_when_the_loader_is_closed() {
    let (streams, log) = recorded();
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    log.lock().unwrap().is_slow = true;
    log.lock().unwrap().is_stuck = true;
    let batch = small(&mut delivery).unwrap();
    let stopped = delivery.wait_for(&batch, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped), "{stopped}");
}

#[test]
fn memory_that_work_which_hangs_may_use_is_not_used_again() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    small(&mut delivery).unwrap().export(Export::Unordered).unwrap();
    log.lock().unwrap().is_stuck = true;
    for _ in 0..2 {
        lines(&log);
        let refused = small(&mut delivery).unwrap_err();
        assert!(matches!(refused, DeliveryError::Gpu(Error::Hung { .. })), "{refused}");
        assert_eq!(lines(&log), ["settle"]);
        let delivered = delivery.delivered().unwrap();
        assert_eq!((delivered.device_bytes, delivered.in_use), (2 << 20, 0));
    }
    log.lock().unwrap().is_stuck = false;
    small(&mut delivery).unwrap();
    assert_eq!(lines(&log)[0], "settle");
    assert_eq!(delivery.delivered().unwrap().allocations, 1);
}

#[test]
fn a_wait_for_a_copy_ends_when_the_loader_is_closed() {
    let (streams, log) = recorded();
    let limits =
        DeliveryLimits { staging_bytes: 0, device_bytes: 12 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    log.lock().unwrap().is_slow = true;
    log.lock().unwrap().is_stuck = true;
    let bytes = noise(12 << 20);
    let piece = Piece::new(&bytes, Target::Copied { offset: 0 });
    let stopped = delivery.deliver(&[piece], 12 << 20, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped));
    // What was started may still write to the memory: it is used again after all work.
    assert_eq!(delivery.delivered().unwrap().device_bytes, 12 << 20);
    log.lock().unwrap().is_stuck = false;
    lines(&log);
    small(&mut delivery).unwrap();
    assert_eq!(lines(&log)[0], "settle");
}

#[test]
fn a_wait_for_memory_ends_when_the_loader_is_closed_or_a_batch_is_dropped() {
    let (streams, _log) = recorded();
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    let batch = small(&mut delivery).unwrap();
    let piece = Piece::new(&[1], Target::Copied { offset: 0 });
    let stopped = delivery.deliver(&[piece], 1, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped));
    let other = std::thread::spawn(move || drop(batch));
    delivery.deliver(&[piece], 1, NEVER).unwrap();
    other.join().unwrap();
}
