//! Deliveries to the CPU that runs the kernels, and to a device that records what is done.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::streams::{ConsumerStream, Consumers, Event, Export, Streams};
use super::{
    Arithmetic, Conversion, Delivery, DeliveryError, DeliveryLimits, ElementBytes, Float, Order,
    Piece, Target, bfloat16_bits,
};
use crate::{Compute, DeviceMemory, Error, HostMemory, Launch, PageLock, Shim};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The CPU, with events that a test controls.
struct Recorded {
    shim: Shim,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    events: u32,
    /// Events that are not done.
    pending: BTreeSet<u32>,
    /// What was done, in order.
    lines: Vec<String>,
    /// Streams that do not exist any more.
    destroyed: BTreeSet<u64>,
    /// Whether events are not done when they are asked for the first time.
    is_slow: bool,
    /// Whether they are never done then.
    is_stuck: bool,
}

#[derive(Debug)]
struct Point {
    number: u32,
    log: Arc<Mutex<Log>>,
}

#[derive(Debug, Clone)]
struct Others(Arc<Mutex<Log>>);

fn point(log: &Arc<Mutex<Log>>, of: &str) -> Point {
    let mut entered = log.lock().unwrap();
    let number = entered.events;
    entered.events += 1;
    if entered.is_slow {
        entered.pending.insert(number);
    }
    entered.lines.push(format!("{of}: event {number}"));
    Point { number, log: Arc::clone(log) }
}

impl Event for Point {
    fn is_done(&self) -> Result<bool, Error> {
        let mut log = self.log.lock().unwrap();
        let is_done = !log.pending.contains(&self.number);
        if !is_done && !log.is_stuck {
            // Done when it is asked again.
            log.lines.push(format!("asked for {}", self.number));
            log.pending.remove(&self.number);
        }
        Ok(is_done)
    }

    fn wait_unless(&self, _limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut log = self.log.lock().unwrap();
        if log.is_stuck && log.pending.contains(&self.number) {
            // Like a device whose work never completes.
            assert!(is_stopped(), "the wait would never end");
            return Err(Error::Stopped);
        }
        log.lines.push(format!("wait for {}", self.number));
        log.pending.remove(&self.number);
        Ok(())
    }

    fn since(&self, earlier: &Self) -> Result<Duration, Error> {
        Ok(Duration::from_nanos(u64::from(self.number - earlier.number)))
    }
}

impl Consumers for Others {
    type Event = Point;

    fn device(&self) -> u32 {
        3
    }

    fn order(&self, stream: ConsumerStream, after: &Point) -> Result<(), Error> {
        let line = format!("stream {} after event {}", stream.raw(), after.number);
        self.0.lock().unwrap().lines.push(line);
        Ok(())
    }

    fn record(&self, stream: ConsumerStream) -> Result<Point, Error> {
        if self.0.lock().unwrap().destroyed.contains(&stream.raw()) {
            let (name, what) = ("CUDA_ERROR_INVALID_HANDLE".to_owned(), String::new());
            return Err(Error::Driver { call: "cuEventRecord", name, what });
        }
        Ok(point(&self.0, &format!("stream {}", stream.raw())))
    }

    fn settle(&self, _is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        self.0.lock().unwrap().lines.push("settle".to_owned());
        Ok(())
    }
}

impl Compute for Recorded {
    fn name(&self) -> &str {
        self.shim.name()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory, Error> {
        self.log.lock().unwrap().lines.push(format!("allocate {bytes}"));
        self.shim.allocate(bytes)
    }

    fn allocate_host(&mut self, bytes: usize) -> Result<HostMemory, Error> {
        self.log.lock().unwrap().lines.push("allocate pinned".to_owned());
        self.shim.allocate_host(bytes)
    }

    fn lock_pages(&mut self, memory: &[u8]) -> Result<PageLock, Error> {
        self.shim.lock_pages(memory)
    }

    fn upload(&mut self, from: &[u8], to: &DeviceMemory, offset: usize) -> Result<(), Error> {
        self.shim.upload(from, to, offset)
    }

    fn download(&mut self, from: &DeviceMemory, offset: usize, to: &mut [u8]) -> Result<(), Error> {
        self.shim.download(from, offset, to)
    }

    fn fill(&mut self, m: &DeviceMemory, offset: usize, n: usize, value: u8) -> Result<(), Error> {
        self.shim.fill(m, offset, n, value)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), Error> {
        self.shim.launch(launch)
    }

    fn is_done(&mut self) -> Result<bool, Error> {
        self.shim.is_done()
    }

    fn wait_unless(&mut self, limit: Duration, is_stopped: &dyn Fn() -> bool) -> Result<(), Error> {
        if self.log.lock().unwrap().is_stuck {
            return Err(if is_stopped() { Error::Stopped } else { Error::Hung { seconds: 0.0 } });
        }
        self.shim.wait_unless(limit, is_stopped)
    }
}

impl Streams for Recorded {
    type Event = Point;
    type Consumers = Others;

    fn record(&mut self) -> Result<Point, Error> {
        Ok(point(&self.log, "own"))
    }

    fn wait_for(&mut self, event: &Point) -> Result<(), Error> {
        self.log.lock().unwrap().lines.push(format!("own after event {}", event.number));
        Ok(())
    }

    fn consumers(&self) -> Others {
        Others(Arc::clone(&self.log))
    }
}

fn recorded() -> (Recorded, Arc<Mutex<Log>>) {
    let log = Arc::new(Mutex::new(Log::default()));
    // Of this copy of the sources; others have other kernels.
    let sources = env!("CARGO_MANIFEST_DIR").replace('/', "-");
    let folder = std::env::temp_dir().join(format!("meetpoint-shim{sources}"));
    (Recorded { shim: Shim::start(&folder).unwrap(), log: Arc::clone(&log) }, log)
}

fn lines(log: &Arc<Mutex<Log>>) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap().lines)
}

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

const ARITHMETIC: Arithmetic = Arithmetic {
    scale: 1.0 / 255.0,
    divides: false,
    mean: [0.485, 0.456, 0.406],
    std: [0.229, 0.224, 0.225],
};

/// What a picture of a batch becomes: an independent way.
fn expected(conversion: &Conversion, bytes: &[u8], plane: usize, samples: usize) -> Vec<u8> {
    let channels = conversion.channels as usize;
    let is_planes = conversion.order == Order::Planes || channels == 1;
    let mut out = Vec::new();
    for sample in 0..samples {
        let picture = &bytes[sample * plane * channels..][..plane * channels];
        for at in 0..plane * channels {
            let (channel, byte) = match conversion.order {
                _ if is_planes => (at / plane, picture[at]),
                Order::Pixels => (at % 3, picture[at]),
                Order::PixelsToPlanes => (at / plane, picture[3 * (at % plane) + at / plane]),
                Order::Planes => unreachable!("handled above"),
            };
            let index = 256 * channel + usize::from(byte);
            match &conversion.elements {
                ElementBytes::Table32(table) => out.extend(table[index].to_le_bytes()),
                ElementBytes::Table16(table) => out.extend(table[index].to_le_bytes()),
                ElementBytes::Arithmetic(it, float) => {
                    let value = it.element(channel, byte);
                    match float {
                        Float::Float32 => out.extend(value.to_le_bytes()),
                        Float::Bfloat16 => out.extend(bfloat16_bits(value).to_le_bytes()),
                    }
                }
            }
        }
    }
    out
}

#[test]
fn every_order_and_element_type_is_converted_at_every_size() {
    let divided = Arithmetic { scale: 255.0, divides: true, ..ARITHMETIC };
    let overflowing = Arithmetic { scale: 1e36, std: [1e-10; 3], ..ARITHMETIC };
    let all_elements = [
        ElementBytes::Table32(Box::new(std::array::from_fn(|at| 0x3f00_0000 + 7919 * at as u32))),
        ElementBytes::Table16(Box::new(std::array::from_fn(|at| (at * 83) as u16))),
        ElementBytes::Arithmetic(ARITHMETIC, Float::Float32),
        ElementBytes::Arithmetic(divided, Float::Float32),
        ElementBytes::Arithmetic(ARITHMETIC, Float::Bfloat16),
        ElementBytes::Arithmetic(divided, Float::Bfloat16),
        // Numbers for which products with reciprocals are not exact.
        ElementBytes::Arithmetic(overflowing, Float::Float32),
    ];
    let orders = [Order::Planes, Order::Pixels, Order::PixelsToPlanes];
    let mut conversions = Vec::new();
    for elements in &all_elements {
        for order in orders {
            for channels in [1, 3] {
                conversions.push(Conversion { elements: elements.clone(), order, channels });
            }
        }
    }
    let (streams, _log) = recorded();
    let mut delivery = Delivery::new(streams, &conversions, DeliveryLimits::default()).unwrap();
    for (plane, samples) in [
        (1, 1),
        (1, 7),
        (2, 3),
        (3, 2),
        (4, 1),
        (5, 5),
        (8, 3),
        (15, 2),
        (16, 2),
        (64, 3),
        (77, 2),
        (840, 2),
    ] {
        for (number, conversion) in conversions.iter().enumerate() {
            let count = plane * samples * conversion.channels as usize;
            let bytes = noise(count);
            let target = Target::Converted {
                offset: 256,
                conversion: number,
                plane: plane as u32,
                samples: samples as u32,
            };
            let size = delivery.element_bytes(number) * count;
            let piece = Piece { bytes: &bytes, target, is_locked: false };
            let batch = delivery.deliver(&[piece], 256 + size, NEVER).unwrap();
            let found = content(&mut delivery, batch.address() + 256, size);
            let expected = expected(conversion, &bytes, plane, samples);
            assert!(found == expected, "{conversion:?}, {samples} pictures of {plane} pixels");
        }
    }
}

#[test]
fn arithmetic_agrees_with_all_256_values() {
    let divided = Arithmetic { scale: 255.0, divides: true, ..ARITHMETIC };
    for arithmetic in [ARITHMETIC, divided] {
        assert!(arithmetic.without_division().is_some(), "not by a table: {arithmetic:?}");
        for float in [Float::Float32, Float::Bfloat16] {
            let elements = ElementBytes::Arithmetic(arithmetic, float);
            let size = elements.bytes();
            let conversion = Conversion { elements, order: Order::Pixels, channels: 3 };
            let (streams, _log) = recorded();
            let conversions = std::slice::from_ref(&conversion);
            let mut delivery =
                Delivery::new(streams, conversions, DeliveryLimits::default()).unwrap();
            let bytes: Vec<u8> = (0..768).map(|at| (at / 3) as u8).collect();
            let target = Target::Converted { offset: 0, conversion: 0, plane: 256, samples: 1 };
            let piece = Piece { bytes: &bytes, is_locked: false, target };
            let batch = delivery.deliver(&[piece], 768 * size, NEVER).unwrap();
            let found = content(&mut delivery, batch.address(), 768 * size);
            assert!(found == expected(&conversion, &bytes, 256, 1), "{conversion:?}");
        }
    }
}

#[test]
fn a_large_batch_is_divided_between_blocks_and_rounds() {
    let elements = ElementBytes::Arithmetic(ARITHMETIC, Float::Float32);
    for order in [Order::Planes, Order::Pixels] {
        let conversion = Conversion { elements: elements.clone(), order, channels: 3 };
        let (streams, _log) = recorded();
        let conversions = std::slice::from_ref(&conversion);
        let mut delivery = Delivery::new(streams, conversions, DeliveryLimits::default()).unwrap();
        let (plane, samples) = (10_004, 1);
        let bytes = noise(3 * plane);
        let target = Target::Converted { offset: 0, conversion: 0, plane: plane as u32, samples };
        let piece = Piece { bytes: &bytes, is_locked: false, target };
        let batch = delivery.deliver(&[piece], 12 * plane, NEVER).unwrap();
        let found = content(&mut delivery, batch.address(), 12 * plane);
        assert!(found == expected(&conversion, &bytes, plane, 1), "{order:?}");
    }
}

#[test]
fn bfloat16_is_rounded_to_nearest_even() {
    for (value, bits) in [
        (1.0, 0x3f80),
        (f32::from_bits(0x3f80_8000), 0x3f80),
        (f32::from_bits(0x3f80_8001), 0x3f81),
        (f32::from_bits(0x3f81_8000), 0x3f82),
        (-0.0, 0x8000),
        (f32::MAX, 0x7f80),
        (f32::from_bits(0x7f80_0001), 0x7fc0),
    ] {
        assert_eq!(bfloat16_bits(value), bits, "{value}");
    }
}

#[test]
fn pieces_that_are_copied_keep_their_bytes_and_large_ones_go_in_chunks() {
    let (streams, log) = recorded();
    let mut delivery = Delivery::new(streams, &[], DeliveryLimits::default()).unwrap();
    let (large, small) = (noise(9 << 20), noise(333));
    let at = |offset| Target::Copied { offset };
    let pieces = [
        Piece { bytes: &large, target: at(64), is_locked: false },
        Piece { bytes: &small, target: at(10 << 20), is_locked: false },
    ];
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
    let piece = Piece { bytes: &bytes, target: Target::Copied { offset: 0 }, is_locked: false };
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
    let pieces = [
        Piece { bytes: &large, target: at(0), is_locked: true },
        Piece { bytes: &small, target: at(9 << 20), is_locked: false },
    ];
    let batch = delivery.deliver(&pieces, 10 << 20, NEVER).unwrap();
    // Event 0 is the beginning, 1 the copy of the small piece, 2 the end of the copies.
    let found = lines(&log);
    assert!(found.contains(&"asked for 2".to_owned()), "{found:?}");
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
    let piece = Piece { bytes: &[1, 2, 3], target: Target::Copied { offset: 0 }, is_locked: false };
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
    let piece = Piece { bytes: &[1], target: Target::Copied { offset: 3 << 20 }, is_locked: false };
    delivery.deliver(&[piece], 4 << 20, NEVER).unwrap();
    let refused = delivery.deliver(&[piece], 5 << 20, NEVER).unwrap_err();
    assert!(matches!(refused, DeliveryError::NoMemory { lent: 0, .. }), "{refused}");
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
fn a_wait_for_a_copy_ends_when_the_loader_is_closed() {
    let (streams, log) = recorded();
    let limits = DeliveryLimits { staging_bytes: 0, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    log.lock().unwrap().is_slow = true;
    log.lock().unwrap().is_stuck = true;
    let bytes = noise(12 << 20);
    let piece = Piece { bytes: &bytes, target: Target::Copied { offset: 0 }, is_locked: false };
    let stopped = delivery.deliver(&[piece], 12 << 20, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped));
}

#[test]
fn a_wait_for_memory_ends_when_the_loader_is_closed_or_a_batch_is_dropped() {
    let (streams, _log) = recorded();
    let limits = DeliveryLimits { device_bytes: 2 << 20, ..DeliveryLimits::default() };
    let mut delivery = Delivery::new(streams, &[], limits).unwrap();
    let batch = small(&mut delivery).unwrap();
    let piece = Piece { bytes: &[1], target: Target::Copied { offset: 0 }, is_locked: false };
    let stopped = delivery.deliver(&[piece], 1, &|| true).unwrap_err();
    assert!(matches!(stopped, DeliveryError::Stopped));
    let other = std::thread::spawn(move || drop(batch));
    delivery.deliver(&[piece], 1, NEVER).unwrap();
    other.join().unwrap();
}
