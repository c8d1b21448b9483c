//! Batches reused from earlier epochs, and epochs that begin before the accelerator does.

use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, BatchIndex, Config, DeviceConfig, DeviceDecision, DeviceId,
    Epoch, Generation, Holders, HostDecision, HostOnly, Learned, Mte, Outcome, Profile, Source,
    Split, Tail, VoidReason, Wrr,
};

use crate::driver::holders;

const DEVICE: DeviceId = DeviceId(0);

fn config(strategy: AnyStrategy, batches: u32) -> Config {
    let profile = Profile { host_ns: 100, device_ns: 200, ready_ns: 30 };
    Config {
        batches,
        strategy,
        host_ahead: 1,
        fetch_ahead: 4,
        devices: vec![DeviceConfig { ahead: 2, spool_slots: 3, first_generation: 5 }],
        holders: Holders::Shared,
        stall_timeout_ns: 1_000_000,
        stalls_max: 2,
        profile_batches: 2,
        learned: Learned::from_profile(&profile, 1),
        replay: None,
        ranks: 1,
        costs: None,
    }
}

fn epoch(strategy: AnyStrategy, batches: u32) -> Epoch {
    Epoch::new(config(strategy, batches)).expect("it can be run")
}

#[test]
fn a_reused_batch_is_fetched_and_consumed_and_takes_a_slot() {
    let mut epoch = epoch(AnyStrategy::Wrr(Wrr), 10);
    for batch in [9, 4] {
        assert_eq!(epoch.preloaded(0, DEVICE, BatchIndex(batch)), Outcome::Accepted);
    }
    let again = epoch.preloaded(0, DEVICE, BatchIndex(4));
    assert_eq!(again, Outcome::Void(VoidReason::NoPlace));
    // Two of three slots are taken: one batch is granted, below the reused one.
    let DeviceDecision::Work(run, _) = epoch.device(0, DEVICE) else { panic!("one slot is free") };
    assert_eq!((run.first, run.count), (BatchIndex(8), 1));
    assert_eq!(epoch.preloaded(0, DEVICE, BatchIndex(3)), Outcome::Void(VoidReason::NoPlace));
    assert_eq!(epoch.fetch(0), Some((BatchIndex(9), DEVICE, Generation(5))));
    epoch.device_fetched(1, DEVICE, BatchIndex(9), Generation(5));
    let first = AcceleratorDecision::Consume(BatchIndex(9), Source::Device(DEVICE));
    assert_eq!(epoch.accelerator(1), first);
    assert_eq!(epoch.fetch(2), Some((BatchIndex(4), DEVICE, Generation(5))));
    // The host redoes a torn one.
    epoch.device_rejected(2, DEVICE, BatchIndex(4), Generation(5));
    assert_eq!(epoch.host(3), HostDecision::Prepare(BatchIndex(4)));
    epoch.check_invariants();
}

#[test]
fn batches_without_a_slot_are_refused() {
    let none = Outcome::Void(VoidReason::NoPlace);
    let mut alone = epoch(AnyStrategy::HostOnly(HostOnly), 10);
    assert_eq!(alone.preloaded(0, DEVICE, BatchIndex(9)), none);
    // A fixed split of three: only its own, from the back.
    let split = AnyStrategy::Mte(Mte { split: Split::Fixed(3), tail: Tail::Descending });
    let mut mte = epoch(split, 10);
    assert_eq!(mte.preloaded(0, DEVICE, BatchIndex(8)), none);
    for batch in [9, 8, 7] {
        assert_eq!(mte.preloaded(0, DEVICE, BatchIndex(batch)), Outcome::Accepted);
    }
    assert_eq!(mte.preloaded(0, DEVICE, BatchIndex(6)), none);
    let far = mte.preloaded(0, DEVICE, BatchIndex(10));
    assert_eq!(far, Outcome::Void(VoidReason::OutOfRange));
    let nobody = mte.preloaded(0, DeviceId(3), BatchIndex(6));
    assert_eq!(nobody, Outcome::Void(VoidReason::NotClaimed));
    // Another device's.
    let mut held = config(AnyStrategy::Wrr(Wrr), 10);
    held.devices.push(held.devices[0]);
    held.holders = holders::by_turns(10, 2);
    let mut held = Epoch::new(held).expect("it can be run");
    assert_eq!(held.preloaded(0, DEVICE, BatchIndex(9)), none);
    assert_eq!(held.preloaded(0, DEVICE, BatchIndex(8)), Outcome::Accepted);
}

#[test]
fn devices_may_be_granted_work_long_before_the_accelerator_is_ready() {
    let mut config = config(AnyStrategy::Wrr(Wrr), 100);
    config.learned = Learned::nothing();
    let mut epoch = Epoch::new(config).expect("it can be run");
    let DeviceDecision::Work(run, generation) = epoch.device(1_000, DEVICE) else {
        panic!("there is work")
    };
    assert_eq!((run.first, run.count), (BatchIndex(99), 2));
    epoch.device_published(1_200, DEVICE, BatchIndex(99), generation);
    epoch.device_published(1_400, DEVICE, BatchIndex(98), generation);
    // Waiting for the accelerator is neither a stall nor part of a step.
    epoch.tick(900_000_000);
    assert_eq!(epoch.summary().stalls, 0);
    epoch.accelerator_ready(900_000_000);
    assert_eq!(epoch.host(900_000_000), HostDecision::Prepare(BatchIndex(0)));
    epoch.host_finished(900_000_070, BatchIndex(0));
    assert!(matches!(epoch.accelerator(900_000_070), AcceleratorDecision::Consume(..)));
    epoch.accelerator_ready(900_000_100);
    assert_eq!(epoch.learned().host_ns, 100);
    assert_eq!(epoch.learned().device_ns, [200]);
}
