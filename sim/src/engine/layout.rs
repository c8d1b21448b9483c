//! Which device serves which rank. A *lane* is a rank's link to one device.
//!
//! Lanes are numbered by rank, then by the device's number within the rank: the scheduler's
//! `DeviceId` of a rank is the lane's offset in the rank's range.

use std::ops::Range;

use meetpoint_scheduler::DeviceId;

use crate::scenario::{Scenario, Serve};

#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// First lane of each rank, and the number of lanes at the end.
    ranks: Vec<u32>,
    /// Device of each lane.
    lane_devices: Vec<u32>,
    /// Rank of each lane.
    lane_ranks: Vec<u32>,
    /// Lanes of each device.
    device_lanes: Vec<Vec<u32>>,
    /// Index of each device's table in the scenario.
    kinds: Vec<u16>,
    /// Ranks of a host.
    ranks_each: u32,
}

impl Layout {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let kinds: Vec<u16> = (0_u16..)
            .zip(&scenario.devices)
            .flat_map(|(kind, device)| (0..device.count).map(move |_| kind))
            .collect();
        let devices = u32::try_from(kinds.len()).expect("checked: at most 60,000");
        let count = scenario.rank_count();
        let mut layout = Self {
            ranks: Vec::with_capacity(count as usize + 1),
            lane_devices: Vec::new(),
            lane_ranks: Vec::new(),
            device_lanes: vec![Vec::new(); kinds.len()],
            kinds,
            ranks_each: scenario.ranks.count,
        };
        for rank in 0..count {
            layout.ranks.push(layout.lanes());
            if let Some(each) = scenario.devices_per_rank.filter(|_| devices > 0) {
                let first = u64::from(rank) * u64::from(each);
                let used = (first..first + u64::from(each)).map(|it| it % u64::from(devices));
                used.for_each(|it| layout.add(rank, u32::try_from(it).expect("a remainder")));
                continue;
            }
            match scenario.serve {
                Serve::AllRanks => (0..devices).for_each(|device| layout.add(rank, device)),
                Serve::OwnRanks if devices >= count => {
                    let own = (rank..devices).step_by(count as usize);
                    own.for_each(|device| layout.add(rank, device));
                }
                Serve::OwnRanks if devices > 0 => layout.add(rank, rank % devices),
                Serve::OwnRanks => {}
            }
        }
        layout.ranks.push(layout.lanes());
        layout
    }

    fn add(&mut self, rank: u32, device: u32) {
        let lane = self.lanes();
        self.lane_devices.push(device);
        self.lane_ranks.push(rank);
        self.device_lanes[device as usize].push(lane);
    }

    /// Number of lanes.
    pub(super) fn lanes(&self) -> u32 {
        u32::try_from(self.lane_devices.len()).expect("lanes are counted in 32 bits")
    }

    pub(super) fn devices(&self) -> u32 {
        u32::try_from(self.kinds.len()).expect("checked: at most 60,000")
    }

    pub(super) fn lanes_of_rank(&self, rank: u32) -> Range<u32> {
        self.ranks[rank as usize]..self.ranks[rank as usize + 1]
    }

    pub(super) fn lanes_of_device(&self, device: u32) -> &[u32] {
        &self.device_lanes[device as usize]
    }

    pub(super) fn lane_device(&self, lane: u32) -> u32 {
        self.lane_devices[lane as usize]
    }

    pub(super) fn lane_rank(&self, lane: u32) -> u32 {
        self.lane_ranks[lane as usize]
    }

    /// The host of a rank.
    pub(super) fn host_of(&self, rank: u32) -> u32 {
        rank / self.ranks_each
    }

    /// The rank of a lane, and the device's number within it.
    pub(super) fn within_rank(&self, lane: u32) -> (u32, DeviceId) {
        let rank = self.lane_rank(lane);
        let number = lane - self.ranks[rank as usize];
        (rank, DeviceId(u16::try_from(number).expect("checked: at most 60,000 devices")))
    }

    /// Index of a device's table in the scenario.
    pub(super) fn kind(&self, device: u32) -> usize {
        usize::from(self.kinds[device as usize])
    }
}
