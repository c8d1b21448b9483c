//! The order of a record, implemented independently by sorting.

use meetpoint_scheduler::{BatchIndex, Config, DeviceId, Holders, Record};

/// The sequence of batches that a record fixes, with a descending tail.
pub(crate) fn order(record: &Record, config: &Config) -> Vec<u32> {
    let text = record.to_string();
    let (kind, numbers) = text.split_once(':').expect("a record has a kind");
    let numbers: Vec<u64> = numbers.split(',').map(|n| n.parse().expect("a number")).collect();
    let turns = if kind == "wrr-frozen" { 5 } else { 0 };
    let shares = &numbers[turns..];
    let held = held(config);
    // (due, part, batch) of every device batch; the j-th of n is due at (j+1)/n of the way.
    let mut devices: Vec<(u64, usize, u32)> = Vec::new();
    for (part, (batches, &share)) in held.iter().zip(shares).enumerate() {
        let last = batches.iter().rev().take(share as usize);
        devices
            .extend(last.zip(1_u64..).map(|(&batch, place)| ((place << 31) / share, part, batch)));
    }
    devices.sort_unstable();
    let devices: Vec<u32> = devices.into_iter().map(|(_, _, batch)| batch).collect();
    let host: Vec<u32> = (0..config.batches).filter(|batch| !devices.contains(batch)).collect();
    if turns == 0 {
        return host.into_iter().chain(devices).collect();
    }
    by_turns(&numbers[..turns], &host, &devices)
}

/// Host and device batches merged by a clock of planned times.
fn by_turns(numbers: &[u64], host: &[u32], devices: &[u32]) -> Vec<u32> {
    let &[first, host_ns, ready_ns, device_ns, slack] = numbers else { panic!("five numbers") };
    let (mut clock, mut order) = (0_u64, Vec::new());
    let (mut h, mut d) = (0, 0);
    while h + d < host.len() + devices.len() {
        let due = (d as u64 + 1 + slack) * device_ns;
        let is_due = h as u64 >= first && due <= clock;
        if d < devices.len() && (h == host.len() || is_due) {
            order.push(devices[d]);
            clock = clock.max(due) + ready_ns;
            d += 1;
        } else {
            order.push(host[h]);
            clock += host_ns;
            h += 1;
        }
    }
    order
}

/// The batches of each part, ascending.
fn held(config: &Config) -> Vec<Vec<u32>> {
    match &config.holders {
        Holders::Shared => vec![(0..config.batches).collect()],
        Holders::Interleaved(table) => {
            let of = |device| (0..table.count(device)).map(move |n| table.nth(device, n));
            (0..table.devices())
                .map(|device| of(DeviceId(device)).map(|BatchIndex(batch)| batch).collect())
                .collect()
        }
    }
}
