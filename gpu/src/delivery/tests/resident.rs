//! Deliveries of batches whose tensors are partly on the device.

use super::{NEVER, content, noise};
use crate::Compute;
use crate::delivery::tests::recorded::{Recorded, lines, recorded};
use crate::delivery::{Conversion, Delivery, DeliveryLimits, ElementBytes, Order, Piece, Target};
use crate::resident::{ResidentColumn, ResidentTensors, TensorPool};
use proptest::prelude::*;
use std::sync::Arc;

/// Bytes of a tensor.
const EACH: usize = 48;

/// Puts the tensors at some positions of a batch on the device; overwrites them on the host.
fn moved(
    pool: &Arc<TensorPool>,
    queue: &mut Recorded,
    tensors: &mut [u8],
    positions: &[usize],
) -> ResidentTensors {
    let memory = pool.take(tensors.len(), queue).unwrap().unwrap();
    for position in positions {
        let range = position * EACH..(position + 1) * EACH;
        queue.upload(&tensors[range.clone()], memory.memory(), range.start).unwrap();
        tensors[range].fill(0xee);
    }
    let ready = memory.written_by(queue).unwrap();
    let columns = vec![ResidentColumn { offset: 0, sample_bytes: EACH }];
    ResidentTensors::new(memory, ready, columns, positions.iter().copied())
}

/// Delivers tensors unchanged, of which those at some positions are on the device.
fn compare(samples: usize, positions: &[usize], is_locked: bool) {
    let (streams, log) = recorded();
    let mut queue = streams.queue("decoder");
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    let expected = noise(samples * EACH);
    let mut bytes = expected.clone();
    let pool = Arc::new(TensorPool::new(1 << 20));
    let resident = moved(&pool, &mut queue, &mut bytes, positions);
    log.lock().unwrap().uploaded = 0;
    let target = Target::Copied { offset: 256 };
    let piece =
        Piece { resident: Some(resident.column(0)), is_locked, ..Piece::new(&bytes, target) };
    let batch = delivery.deliver(&[piece], 256 + bytes.len(), NEVER).unwrap();
    assert!(content(&mut delivery, batch.address() + 256, bytes.len()) == expected);
    let on_device = positions.len() * EACH;
    assert_eq!(log.lock().unwrap().uploaded, expected.len() - on_device);
    let delivered = delivery.delivered().unwrap();
    assert_eq!(delivered.resident_bytes, on_device as u64);
    assert_eq!(delivered.bytes, (expected.len() - on_device) as u64);
    assert_eq!(delivered.direct_bytes, if is_locked { delivered.bytes } else { 0 });
}

#[test]
fn only_what_is_on_the_host_is_uploaded() {
    for is_locked in [false, true] {
        compare(8, &[0, 1, 2, 3, 4, 5, 6, 7], is_locked);
        compare(8, &[0, 1, 2, 3], is_locked);
        compare(8, &[1, 2, 4, 7], is_locked);
        compare(8, &[], is_locked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn tensors_move_up_with_the_samples_that_stay(
        places in prop::collection::vec((any::<bool>(), any::<bool>()), 1..20),
    ) {
        let (streams, _log) = recorded();
        let mut queue = streams.queue("decoder");
        let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
        let bytes = noise(places.len() * EACH);
        let chosen = |which: fn(&(bool, bool)) -> bool| -> Vec<usize> {
            (0..places.len()).filter(|at| which(&places[*at])).collect()
        };
        let (on_device, kept) = (chosen(|it| it.0), chosen(|it| it.1));
        let pool = Arc::new(TensorPool::new(1 << 20));
        let mut host = bytes.clone();
        let mut resident = moved(&pool, &mut queue, &mut host, &on_device);
        resident.close_up(&kept);
        let of_kept = |from: &[u8]| -> Vec<u8> {
            kept.iter().flat_map(|at| from[at * EACH..(at + 1) * EACH].to_vec()).collect()
        };
        let (expected, host) = (of_kept(&bytes), of_kept(&host));
        prop_assert_eq!(resident.len(), chosen(|it| it.0 && it.1).len());
        let target = Target::Copied { offset: 0 };
        let piece = Piece { resident: Some(resident.column(0)), ..Piece::new(&host, target) };
        let batch = delivery.deliver(&[piece], host.len(), NEVER).unwrap();
        prop_assert!(content(&mut delivery, batch.address(), host.len()) == expected);
    }
}

#[test]
fn tensors_on_the_device_are_converted_with_the_others() {
    let elements = std::array::from_fn(|at| (at as f32 / 7.0).to_bits());
    let elements = ElementBytes::Table32(Box::new(elements));
    let conversion = Conversion { elements, order: Order::Pixels, channels: 3 };
    let mut contents = Vec::new();
    for positions in [&[][..], &[0, 1, 3][..]] {
        let (streams, _log) = recorded();
        let mut queue = streams.queue("decoder");
        let limits = DeliveryLimits::default();
        let mut delivery =
            Delivery::new(streams, std::slice::from_ref(&conversion), limits).unwrap();
        let mut bytes = noise(4 * EACH);
        let pool = Arc::new(TensorPool::new(1 << 20));
        let resident = moved(&pool, &mut queue, &mut bytes, positions);
        let target = Target::Converted {
            offset: 0,
            conversion: 0,
            plane: 16,
            samples: 4,
            is_rounded: false,
        };
        let piece = Piece {
            resident: Some(resident.column(0)),
            is_locked: true,
            ..Piece::new(&bytes, target)
        };
        let batch = delivery.deliver(&[piece], 4 * bytes.len(), NEVER).unwrap();
        contents.push(content(&mut delivery, batch.address(), 4 * bytes.len()));
    }
    assert!(contents[0] == contents[1]);
}

#[test]
fn the_streams_wait_for_each_other_and_the_host_for_neither() {
    let (streams, log) = recorded();
    let mut queue = streams.queue("decoder");
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    let pool = Arc::new(TensorPool::new(1 << 20));
    let mut bytes = noise(2 * EACH);
    lines(&log);
    log.lock().unwrap().is_slow = true;
    log.lock().unwrap().is_stuck = true;
    let resident = moved(&pool, &mut queue, &mut bytes, &[0, 1]);
    let written = log.lock().unwrap().events - 1;
    let target = Target::Copied { offset: 0 };
    let piece = Piece { resident: Some(resident.column(0)), ..Piece::new(&bytes, target) };
    // No work ends, and the host does not wait for it.
    let batch = delivery.deliver(&[piece], bytes.len(), NEVER).unwrap();
    let found = lines(&log);
    let at = |line: &str| found.iter().position(|it| it == line).unwrap();
    assert!(at(&format!("own after event {written}")) < at("copy 96"), "{found:?}");
    let read = found[at("copy 96") + 1].strip_prefix("own: ").unwrap().to_owned();
    // The batch was discarded here, before its copy is done.
    drop(resident);
    moved(&pool, &mut queue, &mut bytes, &[0]);
    let found = lines(&log);
    assert_eq!(found[0], format!("decoder after event {written}"));
    assert_eq!(found[1], format!("decoder after {read}"));
    assert_eq!(pool.usage().allocations, 1);
    log.lock().unwrap().is_stuck = false;
    drop(batch);
}

#[test]
fn memory_of_tensors_is_bounded_reused_and_never_reused_after_a_failure() {
    let (streams, log) = recorded();
    let mut queue = streams.queue("decoder");
    let pool = Arc::new(TensorPool::new(1000));
    let first = pool.take(600, &mut queue).unwrap().unwrap();
    assert!(pool.take(600, &mut queue).unwrap().is_none());
    drop(first);
    // Its slack is enough for a batch with a larger share.
    for bytes in [600, 750, 100] {
        assert!(pool.take(bytes, &mut queue).unwrap().is_some());
    }
    assert_eq!((pool.usage().allocations, pool.usage().bytes_max), (1, 750));
    // What is too small makes room.
    drop(pool.take(800, &mut queue).unwrap().unwrap());
    assert_eq!((pool.usage().allocations, pool.usage().bytes), (2, 1000));
    let lost = pool.take(800, &mut queue).unwrap().unwrap();
    log.lock().unwrap().has_failed = true;
    assert!(lost.written_by(&mut queue).is_err());
    drop(lost);
    assert!(pool.take(1, &mut queue).unwrap().is_none());
}
