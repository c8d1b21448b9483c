//! One rank of several, one case at a time: what it does between an agreement and its step.

use meetpoint_scheduler::{
    AcceleratorDecision, AnyStrategy, Config, DeviceConfig, DeviceDecision, DeviceId, Epoch,
    Holders, HostDecision, Learned, Mte, MteFeedback, Outcome, Split, Tail, Wrr, WrrFrozen,
};

const DEVICE: DeviceId = DeviceId(0);

/// An epoch of one of two ranks, without workers.
fn epoch(strategy: AnyStrategy) -> Epoch {
    let config = Config {
        batches: 12,
        strategy,
        host_ahead: 1,
        fetch_ahead: 2,
        devices: vec![DeviceConfig { ahead: 2, spool_slots: 8, first_generation: 5 }],
        holders: Holders::Shared,
        stall_timeout_ns: 1_000_000_000,
        stalls_max: 2,
        profile_batches: 2,
        learned: Learned::nothing(),
        replay: None,
        ranks: 2,
        costs: None,
    };
    Epoch::new(config).expect("the configuration can be run")
}

/// The other rank proposes the same.
fn agree(epoch: &mut Epoch, now: u64) {
    let AcceleratorDecision::Agree(proposal) = epoch.accelerator(now) else {
        panic!("there is nothing to agree on at {now}");
    };
    assert_eq!(epoch.agreed(now, proposal.agreement()), Outcome::Accepted);
}

/// Prepares the batch assigned to the host, consumes it, and ends the step.
fn host_step(epoch: &mut Epoch, now: u64) -> u32 {
    if let HostDecision::Prepare(batch) = epoch.host(now) {
        assert_eq!(epoch.host_finished(now + 1, batch), Outcome::Accepted);
    }
    let AcceleratorDecision::Consume(batch, _) = epoch.accelerator(now + 2) else {
        panic!("the host's batch is ready, and nothing is consumed: {epoch:?}");
    };
    epoch.accelerator_ready(now + 3);
    batch.0
}

/// The order is fixed when the last device is lost, and the next batch may then differ from the one
/// assigned to the host, which must not take the host's only slot.
#[test]
fn a_device_that_dies_between_an_agreement_and_the_hosts_claim_takes_no_batch_from_it() {
    let mte = AnyStrategy::Mte(Mte { split: Split::EqualFinish, tail: Tail::Descending });
    for strategy in [
        AnyStrategy::Wrr(Wrr),
        mte,
        AnyStrategy::WrrFrozen(WrrFrozen),
        AnyStrategy::MteFeedback(MteFeedback),
    ] {
        for dies_at_step in 0..4_u64 {
            let mut epoch = epoch(strategy);
            epoch.accelerator_ready(0);
            assert!(matches!(epoch.device(0, DEVICE), DeviceDecision::Work(..)));
            let mut consumed = Vec::new();
            for step in 0..12_u64 {
                let now = 10 * (step + 1);
                agree(&mut epoch, now);
                if step == dies_at_step {
                    epoch.device_lost(now + 1, DEVICE);
                }
                consumed.push(host_step(&mut epoch, now + 2));
            }
            assert_eq!(epoch.accelerator(200), AcceleratorDecision::Done);
            consumed.sort_unstable();
            assert_eq!(consumed, (0..12).collect::<Vec<u32>>(), "{strategy:?}");
        }
    }
}
