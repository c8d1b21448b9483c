//! How far both ends may work ahead in the memory that they were given.

use crate::config::{LoaderConfig, SpoolConfig, Tune};
use crate::notice::Notice;
use crate::ring::ring_slot_bytes;
use crate::{Error, SpoolKind};
use meetpoint_format::slot::slot_bytes;

/// Batches that a consumer may hold while the next is prepared: that of the current step and the
/// previous one, which many loops drop only after they got the next.
const RETAINED_BY_CONSUMER: u32 = 2;

/// Batches read ahead from a spool file.
const FETCH_AHEAD: u32 = 4;

/// Batches ahead for each core that a tuner may use, within the memory budget.
const TUNED_AHEAD_PER_CORE: u32 = 16;

/// Batches that a device has queued: the one it works on and the next.
pub(crate) const DEVICE_AHEAD: u32 = 2;

/// Maximum number of batches that a device with this number of threads has queued: one for each
/// thread, one that waits for a thread, and one in transit.
pub(crate) fn device_ahead(threads: u32) -> u32 {
    match threads {
        0 | 1 => DEVICE_AHEAD,
        threads => threads.saturating_add(2),
    }
}

/// Limits of an epoch, from the configuration and the bytes of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of payload that a slot of the ring must hold.
    pub(crate) place_payload: u64,
    /// Minimum number of slots for these limits.
    pub(crate) places: u64,
    /// Maximum number of host batches that are claimed and not consumed.
    pub(crate) host_ahead: u32,
    /// The same after a tuner has raised it to its maximum; equal if there is no tuner.
    pub(crate) host_ahead_max: u32,
    /// Maximum number of device batches being fetched or in host memory.
    pub(crate) fetch_ahead: u32,
    /// The spool of each device; empty without one.
    pub(crate) spools: Vec<SpoolLimits>,
    /// Which settings had to be reduced.
    pub(crate) notices: Vec<Notice>,
}

/// Limits of a spool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpoolLimits {
    pub(crate) slots: u32,
    pub(crate) slot_bytes: u64,
    /// Slots that the scheduler may fill; the rest is for batches that the consumer holds.
    pub(crate) slots_scheduled: u32,
}

impl Limits {
    /// Limits for batches of at most `batch_bytes`. `held` is the number of batches that each used
    /// device can prepare; `small_samples_bytes` of the memory budget of each share are reserved
    /// for small samples.
    pub(crate) fn plan(
        config: &LoaderConfig,
        batch_bytes: u64,
        held: &[u32],
        small_samples_bytes: u64,
    ) -> Result<Self, Error> {
        let spools = (0..held.len()).map(|device| config.spool_of(device));
        let is_file = spools.clone().any(|spool| matches!(spool.kind, SpoolKind::File { .. }));
        let spools = spools
            .zip(held)
            .map(|(spool, held)| SpoolLimits::plan(spool, config.shares, batch_bytes, *held));
        let spools = spools.collect::<Result<Vec<_>, _>>()?;
        // A batch from a spool file is stored in a slot of the ring with its header.
        let place_payload = if is_file { slot_bytes(batch_bytes) } else { batch_bytes };
        let per_place = ring_slot_bytes(place_payload);
        let shares = u64::from(config.shares);
        let for_batches = (config.memory_budget_bytes / shares).saturating_sub(small_samples_bytes);
        let places = for_batches / per_place;
        let host_asked = match config.workers_at_start() {
            0 => 1,
            workers => workers.saturating_mul(config.prefetch).max(workers.saturating_add(1)),
        };
        // Minimum: one being prepared, one being fetched, one held by the consumer.
        let fetches = u64::from(is_file);
        let least = 2 + fetches;
        if places < least {
            let budget_bytes = config.memory_budget_bytes;
            let (least, ring_slot_bytes) = (least * shares, per_place);
            let small_samples_bytes = small_samples_bytes * shares;
            return Err(Error::BudgetTooSmall {
                budget_bytes,
                small_samples_bytes,
                ring_slot_bytes,
                least,
            });
        }
        let mut left = places - least;
        let mut more = |wanted: u32| {
            let given = u32::try_from(left).unwrap_or(u32::MAX).min(wanted);
            left -= u64::from(given);
            given
        };
        // The consumer's second batch has priority: without it, a plain loop would wait for memory.
        let kept = 1 + more(RETAINED_BY_CONSUMER - 1);
        let mut fetch_places = u32::try_from(fetches).expect("0 or 1");
        let mut host_ahead = 1;
        fetch_places += more(fetch_places);
        host_ahead += more(host_asked - 1);
        if fetches > 0 {
            fetch_places += more(FETCH_AHEAD - fetch_places.min(FETCH_AHEAD));
        }
        let tuned_most = config.cores_to_use().saturating_mul(TUNED_AHEAD_PER_CORE);
        let host_ahead_max = match config.tune {
            Tune::Off => host_ahead,
            Tune::Auto => host_ahead + more(tuned_most.saturating_sub(host_ahead)),
        };
        let notices = (host_ahead < host_asked)
            .then(|| Notice::PreparedAhead {
                memory_budget_bytes: config.memory_budget_bytes / shares,
                places,
                asked: u64::from(host_asked),
                prepared: u64::from(host_ahead),
            })
            .into_iter()
            .collect();
        // Batches that stay in their spool slot need no slot of the ring.
        let in_slots = spools.iter().map(|spool| spool.slots_scheduled);
        let fetch_ahead = match is_file {
            true => fetch_places,
            false => in_slots.fold(0, u32::saturating_add),
        };
        let fetch_ahead = fetch_ahead.max(1);
        let places = u64::from(kept) + u64::from(fetch_places) + u64::from(host_ahead);
        Ok(Self { place_payload, places, host_ahead, host_ahead_max, fetch_ahead, spools, notices })
    }
}

impl SpoolLimits {
    /// One of `shares` equal parts of a spool's quota, for at most `batches`.
    fn plan(
        config: &SpoolConfig,
        shares: u32,
        batch_bytes: u64,
        batches: u32,
    ) -> Result<Self, Error> {
        let slot_bytes = slot_bytes(batch_bytes);
        let (least, kept) = Self::least_and_retained(config);
        let quota_bytes = config.quota_bytes;
        let fitting = quota_bytes / u64::from(shares) / slot_bytes;
        if fitting < least {
            let least = least * u64::from(shares);
            return Err(Error::QuotaTooSmall { quota_bytes, slot_bytes, least });
        }
        let useful = u64::from(batches) + u64::from(kept);
        let slots = u32::try_from(fitting.min(useful)).unwrap_or(u32::MAX);
        let kept = kept.min(slots.saturating_sub(1));
        Ok(Self { slots, slot_bytes, slots_scheduled: slots - kept })
    }

    /// Minimum number of slots, and slots for batches that the consumer holds.
    fn least_and_retained(config: &SpoolConfig) -> (u64, u32) {
        // A batch in memory stays in its slot until its user drops it; one in a file is copied out.
        match config.kind {
            SpoolKind::Memory => (2, RETAINED_BY_CONSUMER),
            SpoolKind::File { .. } => (1, 0),
        }
    }

    /// The quota with which the scheduler may fill a given number of slots of this size.
    pub(crate) fn quota_for(&self, config: &SpoolConfig, shares: u32, scheduled: u32) -> u64 {
        let (_, kept) = Self::least_and_retained(config);
        u64::from(scheduled + kept) * u64::from(shares) * self.slot_bytes
    }

    /// Bytes of the whole spool.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.slots) * self.slot_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceSource;
    use meetpoint_format::recipe::Recipe;
    use meetpoint_scheduler::{AnyStrategy, HostOnly, Wrr};
    use std::sync::Arc;

    const MIB: u64 = 1 << 20;

    fn config(strategy: AnyStrategy, kind: SpoolKind, budget: u64, workers: u32) -> LoaderConfig {
        let text = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"center_crop\"\n\
                    size = 8\n";
        let recipe = Arc::new(Recipe::from_toml(text).unwrap());
        let mut config = LoaderConfig::new("set", recipe, 4);
        config.strategy = strategy;
        config.devices = vec![DeviceSource::Connect { socket: "s".into() }];
        config.spool.kind = kind;
        config.memory_budget_bytes = budget;
        config.workers = workers;
        config
    }

    fn file() -> SpoolKind {
        SpoolKind::File { directory: "spool".into() }
    }

    #[test]
    fn without_workers_one_batch_is_prepared_at_a_time() {
        let config = config(AnyStrategy::HostOnly(HostOnly), SpoolKind::Memory, 64 * MIB, 0);
        let limits = Limits::plan(&config, 2 * MIB, &[], 0).unwrap();
        assert_eq!((limits.host_ahead, limits.places, limits.spools), (1, 3, vec![]));
        assert!(limits.notices.is_empty());
    }

    #[test]
    fn workers_prepare_ahead_as_far_as_asked_and_never_beyond_the_budget() {
        let wide = config(AnyStrategy::HostOnly(HostOnly), SpoolKind::Memory, 64 * MIB, 3);
        assert_eq!(Limits::plan(&wide, 2 * MIB, &[], 0).unwrap().host_ahead, 6);
        let narrow = config(AnyStrategy::HostOnly(HostOnly), SpoolKind::Memory, 9 * MIB, 3);
        let limits = Limits::plan(&narrow, 2 * MIB, &[], 0).unwrap();
        assert_eq!((limits.host_ahead, limits.places), (2, 4));
        assert!(matches!(
            limits.notices[..],
            [Notice::PreparedAhead { asked: 6, prepared: 2, .. }]
        ));
    }

    #[test]
    fn limits_never_need_more_slots_than_the_budget_holds() {
        for kind in [SpoolKind::Memory, file()] {
            for workers in [0, 1, 2, 7, u32::MAX] {
                for budget in 0..40 {
                    let config = config(AnyStrategy::Wrr(Wrr), kind.clone(), budget * MIB, workers);
                    let Ok(limits) = Limits::plan(&config, MIB, &[100], 0) else { continue };
                    assert!(limits.places * 2 <= budget, "{limits:?} in {budget} MiB");
                    assert!(limits.host_ahead >= 1 && limits.fetch_ahead >= 1);
                }
            }
        }
    }

    #[test]
    fn a_spool_reserves_slots_for_batches_in_use_and_stays_within_its_quota() {
        let mut config = config(AnyStrategy::Wrr(Wrr), SpoolKind::Memory, 64 * MIB, 1);
        config.spool.quota_bytes = 10 * MIB;
        let spool = Limits::plan(&config, 2 * MIB, &[100], 0).unwrap().spools[0];
        assert_eq!((spool.slots, spool.slots_scheduled), (4, 2));
        assert!(spool.bytes() <= 10 * MIB);
        config.spool.kind = file();
        let spool = Limits::plan(&config, 2 * MIB, &[100], 0).unwrap().spools[0];
        assert_eq!((spool.slots, spool.slots_scheduled), (4, 4));
        config.spool.quota_bytes = 2 * MIB;
        let error = Limits::plan(&config, 2 * MIB, &[100], 0).unwrap_err().to_string();
        assert!(error.contains("spool quota of 2 MiB is too small"), "{error}");
    }

    #[test]
    fn every_device_has_a_spool_of_its_own() {
        let mut config = config(AnyStrategy::Wrr(Wrr), SpoolKind::Memory, 64 * MIB, 1);
        config.devices = vec![DeviceSource::Connect { socket: "s".into() }; 3];
        config.spool.quota_bytes = 10 * MIB;
        let smaller = SpoolConfig { kind: SpoolKind::Memory, quota_bytes: 5 * MIB };
        config.spools.insert(1, smaller);
        let limits = Limits::plan(&config, 2 * MIB, &[100; 3], 0).unwrap();
        let slots = limits.spools.iter().map(|spool| (spool.slots, spool.slots_scheduled));
        assert_eq!(slots.collect::<Vec<_>>(), [(4, 2), (2, 1), (4, 2)]);
        assert_eq!(limits.fetch_ahead, 5, "what stays in slots takes no place of the ring");
        config.spools.insert(2, SpoolConfig { kind: file(), quota_bytes: 10 * MIB });
        let limits = Limits::plan(&config, 2 * MIB, &[100; 3], 0).unwrap();
        assert_eq!(limits.place_payload, slot_bytes(2 * MIB), "one of them is read into places");
        assert_eq!(limits.fetch_ahead, 4);
    }

    #[test]
    fn ranks_of_one_process_have_equal_shares_of_memory_and_spool() {
        let mut config = config(AnyStrategy::Wrr(Wrr), SpoolKind::Memory, 64 * MIB, 8);
        config.spool.quota_bytes = 40 * MIB;
        config.shares = 4;
        let limits = Limits::plan(&config, 2 * MIB, &[100], 0).unwrap();
        assert_eq!(limits.spools[0].slots, 4, "of 10 MiB");
        assert_eq!(limits.places, 8, "of 16 MiB");
        config.spool.quota_bytes = 10 * MIB;
        let error = Limits::plan(&config, 2 * MIB, &[100], 0).unwrap_err().to_string();
        assert!(error.contains("hold 8 slots of"), "{error}");
    }

    #[test]
    fn a_small_epoch_does_not_take_the_whole_quota() {
        let config = config(AnyStrategy::Wrr(Wrr), file(), 64 * MIB, 1);
        let spool = Limits::plan(&config, MIB, &[3], 0).unwrap().spools[0];
        assert_eq!(spool.slots, 3);
    }
}
