//! How busy the resources of a run were.

use meetpoint_scheduler::Time;

use super::World;
use super::operation::Work;
use crate::RankOutcome;
use crate::outcome::{MiddleHalf, Resource, ResourceUse};

/// The busy time of each member of a kind of resource since the beginning of the run, in
/// nanoseconds.
pub(super) type Served = (Resource, Vec<f64>);

/// The utilisation of each kind of resource during an interval, at whose beginning `before` had
/// been served and at whose end `after` had been.
pub(super) fn between(
    before: Option<&[Served]>,
    after: &[Served],
    (from, to): (Time, Time),
) -> Vec<ResourceUse> {
    let total = to.saturating_sub(from).max(1) as f64;
    let uses = after.iter().enumerate().filter(|(_, (_, members))| !members.is_empty());
    let uses = uses.map(|(kind, (resource, members))| {
        let (mut sum, mut max) = (0.0, 0.0_f64);
        for (member, served) in members.iter().enumerate() {
            let earlier = before.map_or(0.0, |before| before[kind].1[member]);
            let used = ((served - earlier) / total).clamp(0.0, 1.0);
            (sum, max) = (sum + used, max.max(used));
        }
        let count = u32::try_from(members.len()).expect("resources are counted in 32 bits");
        ResourceUse { resource: *resource, count, mean: sum / f64::from(count), max }
    });
    uses.collect()
}

impl World<'_> {
    /// The busy times of all resources up to now.
    pub(super) fn served(&self) -> Vec<Served> {
        let (resources, links) = (&self.resources, &self.resources.links);
        let used = |resource: u32| resources.all[resource as usize].busy_ns(self.now);
        let of = |list: &[Option<u32>]| list.iter().flatten().copied().map(used).collect();
        let both = links.devices_out.iter().zip(&links.devices_in);
        let device_links = both.filter_map(|(out, into)| Some(used((*out)?).max(used((*into)?))));
        let drives = [&resources.host_read[..], &resources.spool_read, &resources.drives];
        vec![
            (Resource::Accelerators, self.accelerators_busy()),
            (Resource::Hosts, self.hosts_busy()),
            (Resource::Devices, self.devices_busy()),
            (Resource::HostLinks, of(&links.hosts)),
            (Resource::DeviceLinks, device_links.collect()),
            (Resource::Core, links.core.map(used).into_iter().collect()),
            (Resource::Stores, of(&links.stores)),
            (
                Resource::StoreRequests,
                self.throttles.iter().filter_map(|throttle| throttle.busy_ns()).collect(),
            ),
            (Resource::Drives, drives.concat().iter().flatten().copied().map(used).collect()),
            (Resource::Caches, of(&links.caches)),
        ]
    }

    /// A sum over the epochs of a rank, including the one in progress.
    fn of_rank(&self, rank: usize, of: &dyn Fn(&RankOutcome) -> u64) -> u64 {
        let ended = self.outcome.epochs.iter().map(|epoch| of(&epoch.ranks[rank]));
        ended.sum::<u64>() + of(&self.ranks[rank].outcome)
    }

    fn accelerators_busy(&self) -> Vec<f64> {
        let busy = |rank| self.of_rank(rank, &|rank| rank.accelerator_busy_ns) as f64;
        (0..self.ranks.len()).map(busy).collect()
    }

    /// Core time divided by the cores, or by the workers if these are fewer.
    fn hosts_busy(&self) -> Vec<f64> {
        let scenario = self.scenario;
        let threads = scenario.ranks.count.saturating_mul(scenario.host.workers.max(1));
        let cores = f64::from(scenario.host.cores.unwrap_or(threads).min(threads));
        let mut busy = vec![0.0; scenario.hosts.count as usize];
        for rank in 0..scenario.rank_count() {
            let host = self.layout.host_of(rank) as usize;
            busy[host] += self.of_rank(rank as usize, &|rank| rank.host_busy_ns) as f64 / cores;
        }
        // The core time of a batch was added when it began.
        for operation in self.operations.iter() {
            if let Work::Host { rank, core_ns } = operation.work {
                let left = core_ns.saturating_sub(self.now - operation.began);
                busy[self.layout.host_of(rank) as usize] -= left as f64 / cores;
            }
        }
        busy
    }

    fn devices_busy(&self) -> Vec<f64> {
        let busy = |device: u32| {
            let epochs = self.outcome.epochs.iter();
            let ended: u64 = epochs.map(|epoch| epoch.devices[device as usize].busy_ns).sum();
            let cores = self.scenario.devices[self.layout.kind(device)].cores;
            (ended + self.busy_ns(device)) as f64 / f64::from(cores)
        };
        (0..self.layout.devices()).map(busy).collect()
    }

    /// Records the middle half of the last epoch, if it is to be recorded: its beginning after a
    /// quarter of the steps, and its end after three quarters.
    pub(super) fn note_middle(&mut self) {
        let is_last = self.epoch + 1 == self.scenario.epochs;
        if !self.keep.middle_half || !is_last || self.outcome.middle_half.is_some() {
            return;
        }
        let steps = u64::from(self.scenario.batches) * self.steps.len() as u64;
        match &self.middle {
            None if self.steps_taken >= steps / 4 => {
                self.middle = Some((self.now, self.steps_taken, self.served()));
            }
            Some((from, taken, before)) if self.steps_taken >= steps * 3 / 4 => {
                let span = (*from, self.now);
                self.outcome.middle_half = Some(MiddleHalf {
                    total_ns: span.1 - span.0,
                    steps: self.steps_taken - taken,
                    uses: between(Some(before), &self.served(), span),
                });
            }
            None | Some(_) => {}
        }
    }
}
