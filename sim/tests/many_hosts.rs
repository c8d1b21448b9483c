//! Many hosts, agents, links and stores against arithmetic: what is symmetric has a closed form.

use meetpoint_sim::scenario::{
    Bandwidth, Bytes, Cache, Device, Distribution, Scenario, Serve, Span, Stores, StrategyName,
};
use meetpoint_sim::studies::hosts::{self, Elements};
use meetpoint_sim::{Outcome, Recording, Resource, run, run_keeping};

const MS: u64 = 1_000_000;
const BATCHES: u32 = 400;

fn ms(count: u64) -> Distribution {
    Distribution::constant_ns(count * MS)
}

/// A host with one rank and eight workers, and an agent of `cores` cores for `agent_ms`.
fn machine(strategy: StrategyName, hosts: u32, agents: u32, cores: u32) -> Scenario {
    let mut scenario = Scenario::new(BATCHES, ms(160), ms(10));
    scenario.host.workers = 8;
    scenario.strategy = strategy;
    scenario.hosts.count = hosts;
    scenario.storage.batch_bytes = Bytes(40_000_000);
    scenario.storage.read_bytes = Bytes(25_000_000);
    scenario.serve = Serve::OwnRanks;
    let agent = Device { count: agents, cores, ahead: 2 * cores, ..Device::new(ms(400)) };
    scenario.devices = if agents > 0 { vec![agent] } else { Vec::new() };
    scenario
}

fn simulated(scenario: &Scenario) -> Outcome {
    run(scenario, 0).unwrap_or_else(|error| panic!("{error}"))
}

fn total_ms(scenario: &Scenario) -> f64 {
    simulated(scenario).total_ns as f64 / MS as f64
}

/// Within 1 %, and the ends of an epoch.
fn is_about(scenario: &Scenario, wanted_ms: f64, ends_ms: f64) {
    let found = total_ms(scenario);
    let off = (found - wanted_ms).abs();
    assert!(off <= wanted_ms * 0.01 + ends_ms, "{found} ms is not {wanted_ms} ms: {scenario:?}");
}

fn use_of(outcome: &Outcome, resource: Resource) -> f64 {
    outcome.uses.iter().find(|it| it.resource == resource).expect("it has a limit").mean
}

#[test]
fn identical_hosts_with_an_agent_each_take_the_time_of_one() {
    for strategy in [StrategyName::Wrr, StrategyName::Mte, StrategyName::Auto] {
        let one = total_ms(&machine(strategy, 1, 1, 16));
        for together in [true, false] {
            let mut many = machine(strategy, 50, 50, 16);
            many.hosts.together = together;
            // `auto` rounds the times that ranks agree on.
            is_about(&many, one, 0.0);
        }
    }
}

#[test]
fn hosts_on_one_agent_share_its_time() {
    for (hosts, cores) in [(1, 1), (4, 1), (4, 8), (32, 16)] {
        let scenario = machine(StrategyName::DeviceOnly, hosts, 1, cores);
        let wanted = f64::from(BATCHES * hosts) * 400.0 / f64::from(cores);
        is_about(&scenario, wanted, 800.0);
        assert!(use_of(&simulated(&scenario), Resource::Devices) > 0.95);
    }
}

#[test]
fn an_agent_of_many_cores_is_as_fast_as_many_agents() {
    let mut many = machine(StrategyName::DeviceOnly, 1, 8, 1);
    many.devices[0].ahead = 2;
    let one = machine(StrategyName::DeviceOnly, 1, 1, 8);
    is_about(&one, total_ms(&many), 400.0);
}

#[test]
fn agents_for_some_ranks_are_as_fast_as_agents_for_all() {
    let mut scenario = machine(StrategyName::Wrr, 6, 4, 8);
    scenario.devices[0].ahead = 4;
    scenario.serve = Serve::AllRanks;
    let all = total_ms(&scenario);
    scenario.devices_per_rank = Some(2);
    let some = simulated(&scenario);
    let alone = Scenario { devices: Vec::new(), ..scenario.under(meetpoint_scheduler::HostOnly) };
    assert_eq!(simulated(&alone).device_share(), 0.0, "it is ignored without devices");
    let ratio = some.total_ns as f64 / MS as f64 / all;
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
    // Rank r uses agents 2r and 2r+1 of 4: each agent serves three ranks, as much as any other.
    let published: Vec<u32> = some.epochs[0].devices.iter().map(|it| it.published).collect();
    let (least, most) = (published.iter().min().unwrap(), published.iter().max().unwrap());
    assert!(f64::from(*least) > f64::from(*most) * 0.9, "{published:?}");
}

#[test]
fn a_link_that_limits_determines_the_time() {
    let bandwidth = Some(Bandwidth(1_000_000_000));
    // A batch takes 40 ms on a link of its own; agents need 25 ms for it, and are faster.
    let base = |hosts, agents| machine(StrategyName::DeviceOnly, hosts, agents, 16);
    let mut host_link = base(4, 8);
    host_link.hosts.link_bandwidth = bandwidth;
    is_about(&host_link, f64::from(BATCHES) * 40.0, 900.0);
    assert_eq!(simulated(&host_link).binding().unwrap().resource, Resource::HostLinks);
    let mut agent_link = base(4, 2);
    agent_link.devices[0].cores = 64;
    agent_link.devices[0].ahead = 256;
    agent_link.devices[0].link_bandwidth = bandwidth;
    is_about(&agent_link, f64::from(BATCHES) * 2.0 * 40.0, 900.0);
    assert_eq!(simulated(&agent_link).binding().unwrap().resource, Resource::DeviceLinks);
    let mut core = base(4, 8);
    core.network.core_bandwidth = bandwidth;
    core.hosts.link_bandwidth = bandwidth;
    is_about(&core, f64::from(BATCHES) * 4.0 * 40.0, 900.0);
    let outcome = simulated(&core);
    assert_eq!(outcome.binding().unwrap().resource, Resource::Core);
    assert!((use_of(&outcome, Resource::HostLinks) - 0.25).abs() < 0.02);
    assert_eq!(outcome.bytes().network_send, u64::from(BATCHES) * 4 * 40_000_000);
}

/// Hosts that read from stores, and prepare in no time.
fn readers(hosts: u32, stores: Stores) -> Scenario {
    let mut scenario = machine(StrategyName::HostOnly, hosts, 0, 1);
    scenario.host.preparation = ms(1);
    scenario.accelerator.step = ms(1);
    scenario.stores = Some(stores);
    scenario
}

#[test]
fn a_store_that_limits_determines_the_time() {
    let each = Some(Bandwidth(1_000_000_000));
    for (hosts, count) in [(1, 1), (8, 1), (8, 4)] {
        let scenario = readers(hosts, Stores { count, bandwidth: each, ..Stores::default() });
        // 25 MB take 25 ms at one store.
        let wanted = f64::from(BATCHES * hosts) * 25.0 / f64::from(count);
        is_about(&scenario, wanted, 400.0);
        let outcome = simulated(&scenario);
        assert_eq!(outcome.binding().unwrap().resource, Resource::Stores);
        assert_eq!(outcome.bytes().store_read, u64::from(BATCHES * hosts) * 25_000_000);
    }
}

#[test]
fn rejected_requests_are_sent_again_until_all_are_answered() {
    let stores = Stores {
        requests: 10,
        requests_per_second: Some(100),
        latency: Span(20 * MS),
        ..Stores::default()
    };
    let scenario = readers(10, stores);
    let outcome = simulated(&scenario);
    // 40,000 requests at 100 a second; a bucket holds the requests of a second, and of the last
    // requests some wait for a backoff that is longer than necessary.
    let wanted_s = f64::from(BATCHES) * 10.0 * 10.0 / 100.0 - 1.0;
    let found_s = outcome.total_ns as f64 / 1e9;
    assert!(found_s >= wanted_s && found_s < wanted_s * 1.05 + 40.0, "{found_s} s, {wanted_s} s");
    assert!(outcome.throttled > 0);
    assert!(use_of(&outcome, Resource::StoreRequests) > 0.9);
    assert_eq!(outcome.batches(), u64::from(BATCHES) * 10);
}

#[test]
fn a_cache_takes_its_share_from_the_second_epoch_on() {
    let bandwidth = Some(Bandwidth(1_000_000_000));
    let mut scenario = readers(4, Stores { bandwidth, ..Stores::default() });
    scenario.epochs = 2;
    scenario.cache = Some(Cache { hit_rate: Some(0.75), ..Cache::default() });
    let outcome = simulated(&scenario);
    let (first, second) = (outcome.epochs[0].total_ns, outcome.epochs[1].total_ns);
    assert!((second as f64 / first as f64 - 0.25).abs() < 0.01, "{first} {second}");
    let bytes = outcome.bytes();
    assert_eq!(bytes.cache_read, bytes.store_read * 3 / 5);
    // Half of the bytes of an epoch of all hosts.
    let half = Bytes(u64::from(BATCHES) * 4 * 25_000_000 / 2);
    scenario.cache = Some(Cache { bytes: Some(half), ..Cache::default() });
    assert!((scenario.hit_rate(1) - 0.5).abs() < 1e-9);
    assert!(scenario.hit_rate(0).abs() < 1e-9);
}

#[test]
fn agents_without_drives_read_from_the_stores() {
    let mut scenario = machine(StrategyName::DeviceOnly, 2, 2, 16);
    scenario.stores = Some(Stores { bandwidth: Some(Bandwidth(500_000_000)), ..Stores::default() });
    scenario.storage.overlap = true;
    // 25 MB take 50 ms at the store, which is slower than the agents.
    is_about(&scenario, f64::from(BATCHES) * 2.0 * 50.0, 2_000.0);
    scenario.devices[0].read_bandwidth = Some(Bandwidth(25_000_000_000));
    let outcome = simulated(&scenario);
    assert_eq!(outcome.bytes().store_read, 0);
    is_about(&scenario, f64::from(BATCHES) * 400.0 / 16.0, 900.0);
}

#[test]
fn hosts_of_other_trainings_do_not_wait_for_each_other() {
    let mut scenario = machine(StrategyName::HostOnly, 8, 0, 1);
    scenario.host.preparation = ms(1);
    scenario.accelerator.step = Distribution::Uniform { low: Span(10 * MS), high: Span(30 * MS) };
    scenario.hosts.together = false;
    let alone = total_ms(&scenario);
    scenario.hosts.together = true;
    let together = total_ms(&scenario);
    // The mean is 20 ms, the mean of the slowest of eight 10 + 20·8/9.
    assert!((alone / f64::from(BATCHES) - 20.0).abs() < 1.0, "{alone}");
    assert!((together / f64::from(BATCHES) - (10.0 + 160.0 / 9.0)).abs() < 0.5, "{together}");
}

#[test]
fn a_failed_host_delays_its_training_by_the_restart_and_a_step() {
    let mut scenario = machine(StrategyName::HostOnly, 4, 0, 1);
    scenario.host.preparation = ms(8);
    let base = total_ms(&scenario);
    scenario.hosts.time_to_failure = Some(Span(4_000 * MS));
    scenario.hosts.time_to_restart = Span(250 * MS);
    let outcome = simulated(&scenario);
    let failures = f64::from(outcome.host_failures);
    assert!(failures >= 2.0, "{failures}");
    let found = outcome.total_ns as f64 / MS as f64;
    // Failures during a restart do not add to it.
    let most = base + failures * (250.0 + 10.0);
    assert!(found > base + 250.0 && found <= most + 1.0, "{found} {base} {failures}");
    assert_eq!(outcome.batches(), u64::from(BATCHES) * 4);
}

#[test]
fn failed_agents_are_used_again_in_a_later_epoch() {
    let mut scenario = machine(StrategyName::Wrr, 8, 8, 16);
    scenario.epochs = 6;
    scenario.devices[0].time_to_failure = Some(Span(10_000 * MS));
    scenario.devices[0].time_to_restart = Span(1);
    let outcome = simulated(&scenario);
    assert_eq!(outcome.batches(), u64::from(BATCHES) * 8 * 6);
    let failures = outcome.sum_devices(|device| device.failures.into());
    assert!(failures >= 8, "{failures}");
    for device in 0..8 {
        let of = |epoch: &meetpoint_sim::EpochOutcome| epoch.devices[device].clone();
        // Those that do not fail early in an epoch publish batches in it.
        let found: Vec<_> = outcome.epochs.iter().map(of).collect();
        assert!(found.iter().all(|it| it.published > 0 || it.failures > 0), "{device}: {found:?}");
    }
}

#[test]
fn a_thousand_hosts_cost_no_more_events_for_each_batch_than_ten() {
    let events = |hosts: u32| {
        let mut scenario = machine(StrategyName::Auto, hosts, hosts / 2, 16);
        scenario.batches = 100;
        scenario.hosts.link_bandwidth = Some(Bandwidth(3_125_000_000));
        scenario.network.core_bandwidth = Some(Bandwidth(u64::from(hosts) * 1_000_000_000));
        scenario.devices[0].link_bandwidth = Some(Bandwidth(12_500_000_000));
        scenario.stores = Some(Stores::default());
        let outcome = simulated(&scenario);
        assert_eq!(outcome.batches(), 100 * u64::from(hosts));
        outcome.events as f64 / outcome.batches() as f64
    };
    let (ten, thousand) = (events(10), events(1_000));
    assert!(thousand < ten * 1.2, "{thousand} and {ten} events for each batch");
}

#[test]
fn the_middle_half_by_itself_does_not_include_the_start() {
    let mut scenario = machine(StrategyName::HostOnly, 3, 0, 1);
    scenario.hosts.together = false;
    let keep = Recording { middle_half: true, ..Recording::default() };
    let outcome = run_keeping(&scenario, 0, keep).unwrap();
    let half = outcome.middle_half.expect("it was recorded");
    assert_eq!(half.steps, 3 * u64::from(BATCHES) / 2);
    // Eight workers prepare a batch every 20 ms.
    let per_step = half.total_ns as f64 / MS as f64 / f64::from(BATCHES / 2);
    assert!((per_step - 20.0).abs() < 0.3, "{per_step}");
    let hosts = half.uses.iter().find(|it| it.resource == Resource::Hosts).unwrap();
    assert!((hosts.mean - 1.0).abs() < 0.05, "{hosts:?}");
}

#[test]
fn auto_is_not_slower_than_the_host_alone_on_links_that_agents_saturate() {
    for (hosts, agents, each, mbit) in
        [(1, 2, 2, 10_000), (1, 3, 3, 10_000), (8, 12, 3, 10_000), (1, 1, 1, 1_000), (1, 1, 1, 100)]
    {
        // Epochs that are long beside the batches that are open.
        let auto = hosts::scenario(Elements::Float32, hosts, (agents, each), mbit, 1_600);
        let alone = Scenario { strategy: StrategyName::HostOnly, ..auto.clone() };
        let wrr = Scenario { strategy: StrategyName::Wrr, ..auto.clone() };
        let alone = total_ms(&alone);
        let (auto, wrr) = (total_ms(&auto) / alone, total_ms(&wrr) / alone);
        assert!(auto < 1.02, "{hosts} hosts, {agents} agents, {mbit} Mbit/s: {auto}");
        assert!(auto <= wrr, "{hosts} hosts, {agents} agents, {mbit} Mbit/s: {auto}, wrr {wrr}");
        // A link of 10 Gbit/s carries a third more than the host alone prepares.
        assert!(mbit < 10_000 || auto < 0.95, "{hosts} hosts, {agents} agents: {auto}");
    }
}
