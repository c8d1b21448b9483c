//! What each strategy and each report does, one case at a time.

use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, BatchIndex, Config, DeviceConfig, DeviceDecision, DeviceId,
    DeviceOnly, Epoch, Error, Generation, Holders, HostDecision, HostOnly, Learned, Mte,
    OptionTooLarge, Outcome, Profile, Source, Split, StrategyName, Tail, VoidReason, WorkRun, Wrr,
};

const DEVICE: DeviceId = DeviceId(0);
const SECOND: u64 = 1_000_000_000;

fn config(strategy: AnyStrategy, batches: u32) -> Config {
    Config {
        batches,
        strategy,
        host_ahead: 1,
        fetch_ahead: 2,
        devices: vec![DeviceConfig { ahead: 2, spool_slots: 8, first_generation: 5 }],
        holders: Holders::Shared,
        stall_timeout_ns: SECOND,
        stalls_max: 2,
        profile_batches: 2,
        learned: Learned::nothing(),
        replay: None,
        ranks: 1,
        costs: None,
    }
}

fn profiled(mut config: Config, host_ns: u64, device_ns: u64, ready_ns: u64) -> Config {
    config.learned = Learned::from_profile(&Profile { host_ns, device_ns, ready_ns }, 1);
    config
}

/// With a different lookahead and spool of the only device.
fn with_device(mut config: Config, ahead: u32, spool_slots: u32) -> Config {
    config.devices[0] = DeviceConfig { ahead, spool_slots, ..config.devices[0] };
    config
}

fn mte(split: Split, tail: Tail) -> AnyStrategy {
    AnyStrategy::Mte(Mte { split, tail })
}

fn epoch(config: Config) -> Epoch {
    Epoch::new(config).expect("the configuration can be run")
}

fn work(first: u32, count: u32, descending: bool, generation: u32) -> DeviceDecision {
    let run = WorkRun { first: BatchIndex(first), count, descending };
    DeviceDecision::Work(run, Generation(generation))
}

/// Publishes and fetches a batch.
fn deliver(epoch: &mut Epoch, now: u64, batch: u32, generation: u32) {
    let (index, fence) = (BatchIndex(batch), Generation(generation));
    assert_eq!(epoch.device_published(now, DEVICE, index, fence), Outcome::Accepted);
    assert_eq!(epoch.fetch(now), Some((index, DEVICE, fence)));
    assert_eq!(epoch.device_fetched(now, DEVICE, index, fence), Outcome::Accepted);
}

fn prepare(epoch: &mut Epoch, now: u64, batch: u32) {
    assert_eq!(epoch.host(now), HostDecision::Prepare(BatchIndex(batch)));
    assert_eq!(epoch.host_finished(now, BatchIndex(batch)), Outcome::Accepted);
}

fn consumed(epoch: &mut Epoch, now: u64) -> (u32, Source) {
    match epoch.accelerator(now) {
        AcceleratorDecision::Consume(batch, source) => (batch.0, source),
        other => panic!("{other:?}"),
    }
}

#[test]
fn configurations_that_cannot_be_run_are_refused_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config(AnyStrategy::Wrr(Wrr), 10);
        change(&mut config);
        Epoch::new(config).expect_err("it cannot be run")
    };
    let small = |field| Error::TooSmall { field, got: 0, least: 1 };
    assert_eq!(refused(|c| c.batches = 0), Error::NoBatches);
    assert_eq!(refused(|c| c.devices.clear()), Error::NeedsDevice { strategy: StrategyName::Wrr });
    assert_eq!(refused(|c| c.host_ahead = 0), small("host_ahead"));
    assert_eq!(refused(|c| c.devices[0].ahead = 0), small("devices.ahead"));
    assert_eq!(refused(|c| c.devices[0].spool_slots = 0), small("devices.spool_slots"));
    assert_eq!(refused(|c| c.fetch_ahead = 0), small("fetch_ahead"));
    assert_eq!(refused(|c| c.stall_timeout_ns = 0), small("stall_timeout_ns"));
    assert_eq!(refused(|c| c.stalls_max = 0), small("stalls_max"));
    let too_large = refused(|c| c.strategy = mte(Split::Fixed(11), Tail::Ascending));
    let (strategy, option) = (StrategyName::Mte, "split");
    assert_eq!(too_large, OptionTooLarge { strategy, option, asked: 11, batches: 10 }.into());
    let unprofiled = refused(|c| {
        c.strategy = mte(Split::EqualFinish, Tail::Ascending);
        c.profile_batches = 0;
    });
    assert_eq!(unprofiled, small("profile_batches"));
}

#[test]
fn host_only_needs_no_device_and_respects_its_lookahead() {
    let mut epoch = epoch(Config {
        devices: Vec::new(),
        host_ahead: 2,
        fetch_ahead: 0,
        ..config(AnyStrategy::HostOnly(HostOnly), 3)
    });
    assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(0)));
    assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(1)));
    assert_eq!(epoch.host(0), HostDecision::Idle);
    epoch.host_finished(1, BatchIndex(1));
    assert_eq!(epoch.accelerator(1), AcceleratorDecision::WaitUntil(1 + SECOND));
    epoch.host_finished(2, BatchIndex(0));
    assert_eq!(consumed(&mut epoch, 2), (0, Source::Host));
    assert_eq!(consumed(&mut epoch, 2), (1, Source::Host));
    prepare(&mut epoch, 3, 2);
    assert_eq!(epoch.host(3), HostDecision::Done);
    assert_eq!(consumed(&mut epoch, 3), (2, Source::Host));
    assert_eq!(epoch.accelerator(3), AcceleratorDecision::Done);
    assert_eq!(epoch.device(3, DEVICE), DeviceDecision::Idle);
}

#[test]
fn every_wrong_report_is_void_with_a_reason() {
    let mut epoch = epoch(config(mte(Split::Fixed(2), Tail::Descending), 4));
    assert_eq!(epoch.device(0, DEVICE), work(3, 2, true, 5));
    let mut published = |device: u16, batch: u32, generation: u32| {
        epoch.device_published(1, DeviceId(device), BatchIndex(batch), Generation(generation))
    };
    assert_eq!(published(1, 3, 5), Outcome::Void(VoidReason::NotClaimed));
    assert_eq!(published(0, 4, 5), Outcome::Void(VoidReason::OutOfRange));
    assert_eq!(published(0, 1, 5), Outcome::Void(VoidReason::NotClaimed));
    assert_eq!(published(0, 3, 4), Outcome::Void(VoidReason::OldGeneration));
    assert_eq!(published(0, 3, 6), Outcome::Void(VoidReason::NotClaimed));
    assert_eq!(published(0, 3, 5), Outcome::Accepted);
    assert_eq!(published(0, 3, 5), Outcome::Void(VoidReason::NotClaimed));
    let unfetched = epoch.device_fetched(1, DEVICE, BatchIndex(3), Generation(5));
    assert_eq!(unfetched, Outcome::Void(VoidReason::NotClaimed));
    let unclaimed = epoch.host_finished(1, BatchIndex(0));
    assert_eq!(unclaimed, Outcome::Void(VoidReason::NotClaimed));
    assert_eq!(epoch.host_finished(1, BatchIndex(9)), Outcome::Void(VoidReason::OutOfRange));
    let devices_own = epoch.host_finished(1, BatchIndex(2));
    assert_eq!(devices_own, Outcome::Void(VoidReason::NotClaimed));
    epoch.device_lost(2, DEVICE);
    let lost = epoch.device_published(2, DEVICE, BatchIndex(2), Generation(5));
    assert_eq!(lost, Outcome::Void(VoidReason::DeviceLost));
    assert_eq!(epoch.summary().void_reports, 11);
    epoch.check_invariants();
}

#[test]
fn a_stalled_device_is_fenced_and_works_again_only_after_a_heartbeat() {
    let mut epoch = epoch(config(AnyStrategy::DeviceOnly(DeviceOnly), 4));
    assert_eq!(epoch.device(0, DEVICE), work(0, 2, false, 5));
    assert_eq!(epoch.accelerator(0), AcceleratorDecision::WaitUntil(SECOND));
    epoch.device_progress(SECOND / 2, DEVICE);
    epoch.tick(SECOND);
    assert_eq!(epoch.summary().stalls, 0);
    epoch.tick(SECOND * 3 / 2);
    assert_eq!((epoch.summary().stalls, epoch.summary().revoked), (1, 2));
    let now = SECOND * 2;
    assert_eq!(epoch.device(now, DEVICE), DeviceDecision::Revoke(Generation(6)));
    assert_eq!(epoch.device(now, DEVICE), DeviceDecision::Idle);
    prepare(&mut epoch, now, 0);
    let late = epoch.device_published(now, DEVICE, BatchIndex(1), Generation(5));
    assert_eq!(late, Outcome::Void(VoidReason::OldGeneration));
    assert_eq!(epoch.device(now, DEVICE), work(2, 2, false, 6));
    assert_eq!(consumed(&mut epoch, now), (0, Source::Host));
    prepare(&mut epoch, now, 1);
    assert_eq!(consumed(&mut epoch, now), (1, Source::Host));
    deliver(&mut epoch, now, 2, 6);
    assert_eq!(consumed(&mut epoch, now), (2, Source::Device(DEVICE)));
    // The second stall exceeds the limit.
    epoch.tick(now + SECOND);
    assert!(epoch.summary().device_lost);
    assert_eq!(epoch.summary().last_generation, 7);
    assert_eq!(epoch.device(now + SECOND, DEVICE), DeviceDecision::Revoke(Generation(7)));
    assert_eq!(epoch.device(now + SECOND, DEVICE), DeviceDecision::Stop);
    assert_eq!(epoch.device(now + SECOND, DEVICE), DeviceDecision::Idle);
    prepare(&mut epoch, now + SECOND, 3);
    assert_eq!(consumed(&mut epoch, now + SECOND), (3, Source::Host));
}

#[test]
fn published_batches_survive_a_stall_and_fetched_ones_survive_a_loss() {
    for lost in [false, true] {
        let fixed = config(mte(Split::Fixed(3), Tail::Descending), 4);
        let mut epoch = epoch(Config { fetch_ahead: 1, ..with_device(fixed, 3, 8) });
        assert_eq!(epoch.device(0, DEVICE), work(3, 3, true, 5));
        deliver(&mut epoch, 1, 3, 5);
        epoch.device_published(2, DEVICE, BatchIndex(2), Generation(5));
        if lost {
            epoch.device_lost(3, DEVICE);
        } else {
            epoch.tick(2 + SECOND);
        }
        assert_eq!(epoch.summary().revoked, if lost { 2 } else { 1 });
        let now = 3 + SECOND;
        prepare(&mut epoch, now, 0);
        assert_eq!(consumed(&mut epoch, now), (0, Source::Host));
        assert_eq!(consumed(&mut epoch, now), (3, Source::Device(DEVICE)));
        if lost {
            assert_eq!(epoch.fetch(now), None);
            prepare(&mut epoch, now, 2);
            assert_eq!(consumed(&mut epoch, now), (2, Source::Host));
        } else {
            assert_eq!(epoch.fetch(now), Some((BatchIndex(2), DEVICE, Generation(5))));
            epoch.device_fetched(now, DEVICE, BatchIndex(2), Generation(5));
            assert_eq!(consumed(&mut epoch, now), (2, Source::Device(DEVICE)));
        }
        epoch.check_invariants();
    }
}

#[test]
fn a_rejected_batch_is_redone_by_the_host_in_order() {
    let mut epoch = epoch(config(mte(Split::Fixed(2), Tail::Descending), 3));
    assert_eq!(epoch.device(0, DEVICE), work(2, 2, true, 5));
    prepare(&mut epoch, 0, 0);
    epoch.device_published(1, DEVICE, BatchIndex(2), Generation(5));
    assert_eq!(epoch.fetch(1), Some((BatchIndex(2), DEVICE, Generation(5))));
    let torn = epoch.device_rejected(2, DEVICE, BatchIndex(2), Generation(5));
    assert_eq!(torn, Outcome::Accepted);
    deliver(&mut epoch, 3, 1, 5);
    assert_eq!(consumed(&mut epoch, 3), (0, Source::Host));
    assert!(matches!(epoch.accelerator(3), AcceleratorDecision::WaitUntil(_)));
    prepare(&mut epoch, 4, 2);
    assert_eq!(consumed(&mut epoch, 4), (2, Source::Host));
    assert_eq!(consumed(&mut epoch, 4), (1, Source::Device(DEVICE)));
}

#[test]
fn with_one_slot_the_host_redoes_only_the_batch_that_is_due() {
    let mut epoch = epoch(config(mte(Split::Fixed(2), Tail::Descending), 2));
    assert_eq!(epoch.device(0, DEVICE), work(1, 2, true, 5));
    // Batch 0 is consumed last. Using its slot now would leave none for batch 1 if that fails.
    epoch.device_rejected(1, DEVICE, BatchIndex(0), Generation(5));
    assert_eq!(epoch.host(1), HostDecision::Idle);
    epoch.device_rejected(2, DEVICE, BatchIndex(1), Generation(5));
    prepare(&mut epoch, 2, 1);
    assert_eq!(consumed(&mut epoch, 2), (1, Source::Host));
    prepare(&mut epoch, 2, 0);
    assert_eq!(consumed(&mut epoch, 2), (0, Source::Host));
}

#[test]
fn a_slot_is_reserved_for_a_batch_that_the_device_may_still_be_granted() {
    let fixed = mte(Split::Fixed(2), Tail::Ascending);
    let mut epoch = epoch(with_device(config(fixed, 2), 1, 8));
    assert_eq!(epoch.device(0, DEVICE), work(1, 1, true, 5));
    epoch.device_rejected(1, DEVICE, BatchIndex(1), Generation(5));
    assert_eq!(epoch.host(1), HostDecision::Idle);
    assert_eq!(epoch.device(1, DEVICE), work(0, 1, true, 5));
    epoch.device_rejected(2, DEVICE, BatchIndex(0), Generation(5));
    prepare(&mut epoch, 2, 0);
    assert_eq!(consumed(&mut epoch, 2), (0, Source::Host));
    prepare(&mut epoch, 2, 1);
}

#[test]
fn a_device_that_only_sends_progress_is_eventually_fenced_off() {
    for strategy in [AnyStrategy::DeviceOnly(DeviceOnly), mte(Split::Fixed(1), Tail::Descending)] {
        let mut epoch = epoch(Config { stalls_max: 1, ..config(strategy, 1) });
        assert!(matches!(epoch.device(0, DEVICE), DeviceDecision::Work(..)));
        let mut now = 0;
        while epoch.host(now) == HostDecision::Done {
            now += SECOND / 2;
            assert!(now < 60 * SECOND, "it is never fenced off");
            epoch.device_progress(now, DEVICE);
            epoch.accelerator(now);
        }
        assert_eq!(now, 30 * SECOND);
        assert!(epoch.summary().device_lost);
    }
}

#[test]
fn an_equal_finish_is_taken_from_the_profile() {
    let strategy = mte(Split::EqualFinish, Tail::Descending);
    let equal = epoch(profiled(config(strategy, 9), 10, 20, 0));
    assert_eq!(equal.summary().split, Some(3));
    assert!(!equal.summary().split_limited_by_spool);
    let limited = epoch(profiled(with_device(config(strategy, 9), 2, 2), 10, 20, 0));
    assert_eq!(limited.summary().split, Some(2));
    assert!(limited.summary().split_limited_by_spool);
}

#[test]
fn an_ascending_part_is_never_larger_than_the_spool_that_must_hold_it() {
    let fixed = mte(Split::Fixed(9), Tail::Ascending);
    let limited = epoch(with_device(config(fixed, 20), 2, 4));
    assert_eq!(limited.summary().split, Some(4));
    assert!(limited.summary().split_limited_by_spool);
}

#[test]
fn without_a_profile_both_ends_work_until_enough_was_measured() {
    let strategy = mte(Split::EqualFinish, Tail::Descending);
    let mut epoch = epoch(with_device(config(strategy, 30), 2, 64));
    assert_eq!(epoch.device(0, DEVICE), work(29, 2, true, 5));
    epoch.accelerator_ready(0);
    for step in 0..4 {
        assert_eq!(epoch.summary().split, None, "{step}");
        let now = u64::from(step) * 100;
        prepare(&mut epoch, now + 70, step);
        consumed(&mut epoch, now + 70);
        if step % 2 == 1 {
            let batch = BatchIndex(29 - step / 2);
            epoch.device_published(now + 100, DEVICE, batch, Generation(5));
        }
        epoch.accelerator_ready(now + 100);
    }
    // t_c 100, t_s 200: a third of 30.
    assert_eq!(epoch.summary().split, Some(10));
    assert_eq!(epoch.summary().measured, Profile { host_ns: 100, device_ns: 200, ready_ns: 0 });
}

#[test]
fn a_device_lost_before_the_split_is_known_retains_its_claims() {
    let strategy = mte(Split::EqualFinish, Tail::Descending);
    let mut epoch = epoch(config(strategy, 30));
    assert_eq!(epoch.device(0, DEVICE), work(29, 2, true, 5));
    epoch.device_lost(1, DEVICE);
    assert_eq!(epoch.summary().split, Some(2));
}

#[test]
fn wrr_takes_a_device_batch_when_one_is_ready() {
    let workers = Config { host_ahead: 2, ..config(AnyStrategy::Wrr(Wrr), 10) };
    let mut epoch = epoch(profiled(workers, 100, 200, 30));
    assert_eq!(epoch.device(0, DEVICE), work(9, 2, true, 5));
    prepare(&mut epoch, 70, 0);
    deliver(&mut epoch, 70, 9, 5);
    assert_eq!(consumed(&mut epoch, 70), (9, Source::Device(DEVICE)));
    assert_eq!(consumed(&mut epoch, 100), (0, Source::Host));
}

#[test]
fn wrr_without_workers_consumes_the_batch_prepared_for_this_step() {
    let mut epoch = epoch(profiled(config(AnyStrategy::Wrr(Wrr), 10), 100, 200, 30));
    assert_eq!(epoch.device(0, DEVICE), work(9, 2, true, 5));
    prepare(&mut epoch, 70, 0);
    deliver(&mut epoch, 70, 9, 5);
    assert_eq!(consumed(&mut epoch, 70), (0, Source::Host));
    assert_eq!(consumed(&mut epoch, 100), (9, Source::Device(DEVICE)));
}

#[test]
fn wrr_grants_nothing_that_the_host_would_wait_for() {
    let slow = |batches| epoch(profiled(config(AnyStrategy::Wrr(Wrr), batches), 100, 1_000, 30));
    // Ten batches take the host 1,000. One takes the device 1,000, and 30 to consume.
    let mut refused = slow(10);
    assert_eq!(refused.device(0, DEVICE), DeviceDecision::Idle);
    let mut granted = slow(11);
    assert_eq!(granted.device(0, DEVICE), work(10, 1, true, 5));
    assert_eq!(granted.device(0, DEVICE), DeviceDecision::Idle);
}

#[test]
fn wrr_takes_the_last_batch_back_from_a_device_that_slowed_down() {
    let mut epoch = epoch(profiled(config(AnyStrategy::Wrr(Wrr), 2), 100, 150, 30));
    epoch.accelerator_ready(0);
    assert_eq!(epoch.device(0, DEVICE), work(1, 1, true, 5));
    assert_eq!(epoch.host(0), HostDecision::Prepare(BatchIndex(0)));
    epoch.host_finished(70, BatchIndex(0));
    assert_eq!(consumed(&mut epoch, 70), (0, Source::Host));
    epoch.accelerator_ready(100);
    // Expected at 150; then it gets the 70 that redoing takes.
    assert_eq!(epoch.accelerator(100), AcceleratorDecision::WaitUntil(220));
    assert_eq!(epoch.host(100), HostDecision::Done);
    assert!(matches!(epoch.accelerator(220), AcceleratorDecision::WaitUntil(_)));
    assert_eq!(epoch.device(220, DEVICE), DeviceDecision::Revoke(Generation(6)));
    assert_eq!(epoch.device(220, DEVICE), DeviceDecision::Stop);
    prepare(&mut epoch, 290, 1);
    assert_eq!(consumed(&mut epoch, 290), (1, Source::Host));
    assert_eq!(epoch.accelerator(290), AcceleratorDecision::Done);
    assert_eq!(epoch.summary().stalls, 0);
}

#[test]
fn slots_rejected_before_fetching_do_not_accumulate() {
    let one_slot = with_device(config(AnyStrategy::Wrr(Wrr), 200), 2, 1);
    let mut epoch = epoch(profiled(one_slot, 100, 100, 30));
    for now in 0..100 {
        let DeviceDecision::Work(run, generation) = epoch.device(now, DEVICE) else {
            panic!("there is room for one batch")
        };
        epoch.device_published(now, DEVICE, run.first, generation);
        epoch.device_rejected(now, DEVICE, run.first, generation);
    }
    let DeviceDecision::Work(run, generation) = epoch.device(100, DEVICE) else {
        panic!("there is room for one batch")
    };
    deliver(&mut epoch, 100, run.first.0, generation.0);
    assert_eq!(consumed(&mut epoch, 100), (run.first.0, Source::Device(DEVICE)));
    assert_eq!(epoch.summary().revoked, 100);
    epoch.check_invariants();
}

#[test]
fn a_time_before_the_latest_counts_as_the_latest() {
    let mut epoch = epoch(config(AnyStrategy::DeviceOnly(DeviceOnly), 2));
    epoch.device(5 * SECOND, DEVICE);
    assert_eq!(epoch.accelerator(0), AcceleratorDecision::WaitUntil(6 * SECOND));
}
