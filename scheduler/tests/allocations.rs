//! Counts allocations: decisions and events allocate nothing.
#![expect(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, Auto, BatchIndex, Config, DeviceConfig, DeviceDecision,
    DeviceId, DeviceOnly, Epoch, Generation, Goal, Holders, HostDecision, HostOnly, Learned, Mte,
    MteFeedback, Order, Profile, Split, Tail, Windowed, Wrr, WrrFrozen,
};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system's allocator unchanged; the counter is a constant-
// initialised thread local without a destructor, which itself never allocates.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        BYTES.set(BYTES.get() + layout.size());
        // SAFETY: the caller upholds the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DEVICE: DeviceId = DeviceId(0);
const BATCHES: u32 = 3_000;
/// Host step and device batch.
const TICK_NS: u64 = 1_000;

fn config(strategy: AnyStrategy) -> Config {
    let profile = Profile { host_ns: TICK_NS, device_ns: 2 * TICK_NS, ready_ns: TICK_NS / 2 };
    Config {
        batches: BATCHES,
        strategy,
        host_ahead: 2,
        fetch_ahead: 4,
        devices: vec![DeviceConfig { ahead: 4, spool_slots: 16, first_generation: 0 }],
        holders: Holders::Shared,
        stall_timeout_ns: 50 * TICK_NS,
        stalls_max: 1_000,
        profile_batches: 4,
        learned: Learned::from_profile(&profile, 1),
        replay: None,
        ranks: 1,
        costs: None,
    }
}

/// A fixed-size queue of the batches granted to the device.
struct Queue {
    batches: [(BatchIndex, Generation); 16],
    len: usize,
}

impl Queue {
    fn push(&mut self, batch: u32, generation: Generation) {
        self.batches[self.len] = (BatchIndex(batch), generation);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<(BatchIndex, Generation)> {
        (self.len > 0).then(|| {
            self.batches.rotate_left(1);
            self.len -= 1;
            self.batches[15]
        })
    }
}

fn take_decisions(epoch: &mut Epoch, now: u64, queue: &mut Queue) {
    loop {
        match epoch.device(now, DEVICE) {
            DeviceDecision::Work(run, generation) => {
                for batch in run.batches() {
                    queue.push(batch.0, generation);
                }
            }
            DeviceDecision::Revoke(_) => queue.len = 0,
            DeviceDecision::Stop | DeviceDecision::Idle => break,
        }
    }
}

/// Runs the epoch with failures, duplicates and stalls among the reports.
fn work_through(epoch: &mut Epoch) -> u32 {
    let mut queue = Queue { batches: [(BatchIndex(0), Generation(0)); 16], len: 0 };
    let (mut now, mut consumed) = (0, 0);
    for round in 0_u64.. {
        now += TICK_NS;
        take_decisions(epoch, now, &mut queue);
        // Now and then the device is silent for longer than a stall.
        let silent = round % 500 > 430;
        if silent {
            epoch.tick(now);
        } else {
            epoch.device_progress(now, DEVICE);
        }
        if round % 2 == 0
            && !silent
            && let Some((batch, generation)) = queue.pop()
        {
            if round % 22 == 0 {
                epoch.device_rejected(now, DEVICE, batch, generation);
            } else {
                epoch.device_published(now, DEVICE, batch, generation);
                epoch.device_published(now, DEVICE, batch, generation);
            }
        }
        if round % 3 != 0
            && let Some((batch, device, generation)) = epoch.fetch(now)
        {
            if round % 26 == 0 {
                epoch.device_rejected(now, device, batch, generation);
            } else {
                epoch.device_fetched(now, device, batch, generation);
            }
        }
        if let HostDecision::Prepare(batch) = epoch.host(now) {
            epoch.host_finished(now, batch);
        }
        epoch.accelerator_ready(now);
        match epoch.accelerator(now) {
            AcceleratorDecision::Consume(..) => consumed += 1,
            AcceleratorDecision::WaitUntil(_) => {}
            AcceleratorDecision::Agree(_) => panic!("one rank decides alone"),
            AcceleratorDecision::Done => break,
        }
        assert!(round < 100 * u64::from(BATCHES), "no end");
    }
    consumed
}

fn strategies() -> [AnyStrategy; 12] {
    [
        AnyStrategy::HostOnly(HostOnly),
        AnyStrategy::DeviceOnly(DeviceOnly),
        AnyStrategy::Mte(Mte { split: Split::Fixed(1_000), tail: Tail::Descending }),
        AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Ascending }),
        AnyStrategy::Mte(Mte { split: Split::Optimal, tail: Tail::Descending }),
        AnyStrategy::Wrr(Wrr),
        AnyStrategy::WrrFrozen(WrrFrozen),
        AnyStrategy::MteFeedback(MteFeedback),
        AnyStrategy::Windowed(Windowed { window: 64 }),
        AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Any }),
        AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Replayable }),
        AnyStrategy::Auto(Auto { goal: Goal::Throughput, order: Order::Baseline }),
    ]
}

#[test]
fn nothing_is_allocated_after_the_epoch_was_created() {
    for strategy in strategies() {
        let mut epoch = Epoch::new(config(strategy)).expect("it can be run");
        let before = ALLOCATIONS.get();
        let consumed = work_through(&mut epoch);
        let summary = epoch.summary();
        assert_eq!(ALLOCATIONS.get() - before, 0, "{strategy:?}");
        assert_eq!(consumed, BATCHES, "{strategy:?}");
        if strategy != AnyStrategy::HostOnly(HostOnly) {
            assert!(summary.device_batches > 0 && summary.revoked > 0, "{summary:?}");
            assert!(summary.void_reports > 0, "{summary:?}");
        }
    }
    // The counter works.
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1_u8)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}

/// Memory is proportional to devices and open batches: equal for ten thousand and for ten million
/// batches.
#[test]
fn an_epoch_takes_no_more_memory_for_more_batches() {
    let bytes = |strategy, batches| {
        let before = BYTES.get();
        let epoch = Epoch::new(Config { batches, ..config(strategy) }).expect("it can be run");
        let taken = BYTES.get() - before;
        drop(epoch);
        taken
    };
    for strategy in strategies() {
        let (few, many) = (bytes(strategy, 10_000), bytes(strategy, 10_000_000));
        assert!(many <= few && many < 40_000, "{strategy:?}: {few} and {many} bytes");
    }
}
