//! The network of many hosts: links, the core, stores that reject requests, and caches.
//!
//! A transfer uses each link on its way at once, and ends when the slowest has moved its bytes. So
//! the most used link determines the throughput, and a link that is not never delays a transfer by
//! more than its own time.

use meetpoint_scheduler::Time;

use super::draw::Stream;
use super::layout::Layout;
use super::operation::{PARTS, Part, Stages};
use super::queue::Event;
use super::shared::Shared;
use super::{Resources, World};
use crate::scenario::{Bandwidth, Scenario, Stores};

/// Who reads samples from a store.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader {
    /// A rank.
    Rank(u32),
    /// A device, for a rank.
    Device(u32, u32),
}

/// Shared resources of the network; `None`: not limited.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) core: Option<u32>,
    /// What each host receives.
    pub(super) hosts: Vec<Option<u32>>,
    /// What each device sends.
    pub(super) devices_out: Vec<Option<u32>>,
    /// What each device receives.
    pub(super) devices_in: Vec<Option<u32>>,
    /// The cache of each host.
    pub(super) caches: Vec<Option<u32>>,
    pub(super) stores: Vec<Option<u32>>,
    /// Whether prepared batches travel over links.
    pub(super) sends: bool,
}

/// Requests that a store still accepts: a bucket that holds those of one second.
#[derive(Debug, Clone)]
pub(super) struct Throttle {
    per_second: f64,
    left: f64,
    updated: Time,
    accepted: u64,
    pub(super) rejected: u64,
}

impl Throttle {
    pub(super) fn all(stores: Option<&Stores>) -> Vec<Self> {
        let Some(stores) = stores else { return Vec::new() };
        let per_second = stores.requests_per_second.map_or(f64::INFINITY, f64::from);
        let one = Self { per_second, left: per_second, updated: 0, accepted: 0, rejected: 0 };
        vec![one; stores.count as usize]
    }

    /// Accepts as many of these requests as it may, and returns the others.
    fn reject(&mut self, now: Time, asked: u32) -> u32 {
        if self.per_second.is_infinite() {
            return 0;
        }
        let since = now.saturating_sub(self.updated) as f64 / 1e9;
        self.left = (self.left + since * self.per_second).min(self.per_second.max(1.0));
        self.updated = now;
        let accepted = asked.min(self.left as u32);
        self.left -= f64::from(accepted);
        let rejected = asked - accepted;
        self.accepted += u64::from(accepted);
        self.rejected += u64::from(rejected);
        rejected
    }

    /// Time in which it may accept what it has accepted; `None` without a limit.
    pub(super) fn busy_ns(&self) -> Option<f64> {
        self.per_second.is_finite().then(|| self.accepted as f64 * 1e9 / self.per_second)
    }
}

impl Links {
    pub(super) fn new(scenario: &Scenario, layout: &Layout, all: &mut Vec<Shared>) -> Self {
        let mut leg = |bandwidth: Option<Bandwidth>| {
            let bandwidth = bandwidth?;
            all.push(Shared::bandwidth(bandwidth.0));
            Some(u32::try_from(all.len() - 1).expect("a few for each host and device"))
        };
        let hosts = 0..scenario.hosts.count;
        let devices = || (0..layout.devices()).map(|it| &scenario.devices[layout.kind(it)]);
        let stores = scenario.stores.as_ref();
        let cache = scenario.cache.as_ref().and_then(|cache| cache.bandwidth);
        let limits = devices().any(|device| device.link_bandwidth.is_some());
        let core = scenario.network.core_bandwidth;
        let host = scenario.hosts.link_bandwidth;
        Self {
            core: leg(core),
            hosts: hosts.clone().map(|_| leg(host)).collect(),
            devices_out: devices().map(|device| leg(device.link_bandwidth)).collect(),
            devices_in: devices().map(|device| leg(device.link_bandwidth)).collect(),
            caches: hosts.map(|_| leg(cache)).collect(),
            stores: stores
                .map(|stores| (0..stores.count).map(|_| leg(stores.bandwidth)).collect())
                .unwrap_or_default(),
            sends: limits || core.is_some() || host.is_some(),
        }
    }
}

/// A part of a transfer; none if the resource is not limited.
fn over(resource: Option<u32>, bytes: f64) -> Part {
    match resource {
        Some(resource) if bytes > 0.0 => Part::Shared { resource, work: bytes, latency_ns: 0 },
        _ => Part::None,
    }
}

impl Resources {
    /// The transfer of a prepared batch from a device to a host.
    pub(super) fn sending(&self, device: u32, host: u32, bytes: u64) -> Stages {
        let (links, bytes) = (&self.links, bytes as f64);
        let (from, to) = (links.devices_out[device as usize], links.hosts[host as usize]);
        Stages::default().then([from, links.core, to].map(|link| over(link, bytes)))
    }
}

impl World<'_> {
    /// Reading the samples of a batch from a store: requests, then a stage of transfers, with which
    /// `compute` runs if reading and preparing overlap.
    pub(super) fn read_from_store(
        &mut self,
        stores: &Stores,
        reader: Reader,
        index: u64,
        compute: Part,
    ) -> Stages {
        let bytes = self.scenario.storage.read_bytes.0;
        let links = &self.resources.links;
        let (rank, cached, cache, link) = match reader {
            Reader::Rank(rank) => {
                let host = self.layout.host_of(rank) as usize;
                let rate = self.scenario.hit_rate(self.epoch);
                (rank, (bytes as f64 * rate) as u64, links.caches[host], links.hosts[host])
            }
            Reader::Device(device, rank) => (rank, 0, None, links.devices_in[device as usize]),
        };
        let fetched = bytes - cached;
        let store = u32::try_from((index + u64::from(rank)) % u64::from(stores.count));
        let store = store.expect("less than the number of stores");
        let share = fetched as f64 / bytes.max(1) as f64;
        let count = (f64::from(stores.requests) * share).ceil() as u32;
        let parts: [Part; PARTS] = [
            over(cache, cached as f64),
            over(links.stores[store as usize], fetched as f64),
            over(links.core, fetched as f64),
            over(link, fetched as f64),
            if self.scenario.storage.overlap { compute } else { Part::None },
        ];
        self.bytes.store_read += fetched;
        self.bytes.cache_read += cached;
        let requests = if count > 0 { Part::Requests { store, count } } else { Part::None };
        let stages = Stages::default().then([requests]).then(parts);
        if self.scenario.storage.overlap { stages } else { stages.then([compute]) }
    }

    /// Requests arrive at a store. Rejected ones are sent again after a backoff.
    pub(super) fn request(&mut self, op: u32, serial: u32, store: u32) {
        let now = self.now;
        let Some(operation) = self.operations.get_mut(op, serial) else { return };
        let stores = self.scenario.stores.as_ref().expect("only stores get requests");
        let throttle = &mut self.throttles[store as usize];
        let rejected = throttle.reject(now, operation.requests_left);
        if rejected < operation.requests_left {
            // Each request has a backoff of its own; the next one begins with the shortest.
            operation.rejections = 0;
        }
        operation.requests_left = rejected;
        if operation.requests_left == 0 {
            let answered = now.saturating_add(stores.latency.0);
            self.queue.post(answered, Event::Elapsed { op, serial });
            return;
        }
        let doubled = stores.backoff.0.saturating_mul(1 << operation.rejections.min(30));
        operation.rejections += 1;
        let longest = doubled.min(stores.backoff_max.0) as f64;
        self.drawn += 1;
        let varied = 0.5 + self.draws.share(Stream::Backoff, store, self.drawn);
        let again = now.saturating_add((longest * varied).max(1.0) as u64);
        self.queue.post(again, Event::Request { op, serial, store });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_accepts_the_requests_of_a_second_and_no_more() {
        let stores = Stores { requests_per_second: Some(100), count: 2, ..Stores::default() };
        let mut all = Throttle::all(Some(&stores));
        assert_eq!(all.len(), 2);
        let store = &mut all[0];
        assert_eq!(store.reject(0, 60), 0);
        assert_eq!(store.reject(0, 60), 20);
        assert_eq!(store.reject(100_000_000, 20), 10);
        assert_eq!(store.rejected, 30);
        // A bucket that was left alone for an hour is full, and not fuller.
        assert_eq!(store.reject(3_600_000_000_000, 101), 1);
    }
}
