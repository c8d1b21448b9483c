//! Validates scenarios: values out of range, contradictory keys.

use meetpoint_scheduler::{AnyStrategy, Goal, OptionTooLarge, Order};

use super::distribution::Distribution;
use super::error::ScenarioError;
use super::fault::RankFaultKind;
use super::parts::{Device, Holders, Serve};
use super::strategy::ChoiceName;
use super::{Scenario, Span};

/// Most ranks, devices and epochs that are simulated.
const RANKS_MAX: u32 = 1 << 16;
const DEVICES_MAX: usize = 60_000;
const EPOCHS_MAX: u32 = 100_000;
const WORKERS_MAX: u32 = 1 << 16;

/// Maximum number of workers of all ranks, which all have a state in memory.
const ALL_WORKERS_MAX: u64 = 1 << 20;
/// Most links between ranks and devices.
const LANES_MAX: u64 = 4_000_000;

/// Maximum number of steps of all ranks and epochs. A step takes several events, and a core
/// simulates a few million events per second.
const STEPS_MAX: u64 = 500_000_000;

impl Scenario {
    /// Checks whether it can be simulated; an error names the key and the remedy.
    pub fn check(&self) -> Result<(), ScenarioError> {
        within("batches", self.batches, 1, u32::MAX / 2)?;
        within("epochs", self.epochs, 1, EPOCHS_MAX)?;
        above_zero("stall_timeout", self.stall_timeout)?;
        within("stalls_max", self.stalls_max, 1, u32::MAX)?;
        within("profile_batches", self.profile_batches, 1, 1 << 20)?;
        self.check_strategy()?;
        self.check_epochs()?;
        self.check_host()?;
        self.check_devices()?;
        self.check_ranks()?;
        self.check_steps()?;
        self.check_hosts()?;
        self.check_stores()?;
        self.accelerator.step.check("accelerator.step")?;
        if self.accelerator.fetch_ahead == Some(0) {
            return wrong("accelerator.fetch_ahead", "is 0", "at least 1, or leave it out");
        }
        let knowledge = &self.profile;
        for (key, factor) in [
            ("profile.host_factor", knowledge.host_factor),
            ("profile.device_factor", knowledge.device_factor),
            ("profile.ready_factor", knowledge.ready_factor),
        ] {
            if !(factor > 0.0 && factor.is_finite()) {
                return wrong(key, format!("is {factor}"), "a number above 0");
            }
        }
        Ok(())
    }

    fn check_strategy(&self) -> Result<(), ScenarioError> {
        if self.strategy.uses_devices() && self.device_count() == 0 {
            let problem = format!("is \"{}\" without a device", self.strategy);
            return wrong("strategy", problem, "\"host-only\", or add a table [[devices]]");
        }
        self.check_options()?;
        if let AnyStrategy::Auto(auto) = self.chosen()
            && auto.goal != Goal::Throughput
            && self.power.is_none()
        {
            let remedy = "a table [power] with base_w, host_core_w and device_w";
            return wrong("power", "is missing, and auto.goal includes energy", remedy);
        }
        if let Some(power) = &self.power {
            for (key, watts) in [
                ("power.base_w", power.base_w),
                ("power.host_core_w", power.host_core_w),
                ("power.device_w", power.device_w),
            ] {
                if !(0.0..=1e6).contains(&watts) {
                    return wrong(key, format!("is {watts}"), "watts from 0 to 1000000");
                }
            }
        }
        Ok(())
    }

    fn check_options(&self) -> Result<(), ScenarioError> {
        for strategy in self.options.iter() {
            for (spec, value) in strategy.options() {
                if !spec.takes.contains(value) {
                    let key = format!("{}.{}", strategy.name(), spec.name);
                    return wrong(key, format!("is {value}"), spec.takes.to_string());
                }
            }
            if let Err(OptionTooLarge { strategy, option, asked, batches }) =
                strategy.fits(self.batches)
            {
                let problem = format!("is {asked} of {batches} batches");
                return wrong(format!("{strategy}.{option}"), problem, "at most `batches`");
            }
        }
        Ok(())
    }

    /// Checks the keys about consecutive epochs.
    fn check_epochs(&self) -> Result<(), ScenarioError> {
        let chosen = self.choice == ChoiceName::Saving;
        let both = |key: &str, other: &str| {
            wrong(key, format!("is set together with `{other}`"), "one of the two")
        };
        if self.run_ahead && self.reuse {
            return both("reuse", "run_ahead");
        }
        if self.run_ahead && self.replay.is_some() {
            return both("run_ahead", "replay");
        }
        if chosen && self.run_ahead {
            return both("choice", "run_ahead");
        }
        if chosen && self.reuse {
            return both("choice", "reuse");
        }
        if chosen && self.replay.is_some() {
            return both("choice", "replay");
        }
        if let AnyStrategy::Auto(auto) = self.chosen()
            && chosen
            && auto.order != Order::Any
        {
            return wrong("choice", "is \"saving\", and auto.order asks for an order", "\"tail\"");
        }
        let sigma = self.storage.size_sigma;
        if !(0.0..=3.0).contains(&sigma) {
            return wrong("storage.size_sigma", format!("is {sigma}"), "a number from 0 to 3");
        }
        let share = |key: String, share: f64| match (0.0..=1.0).contains(&share) {
            true => Ok(()),
            false => wrong(key, format!("is {share}"), "a number from 0 to 1"),
        };
        for (index, device) in self.devices.iter().enumerate() {
            share(format!("devices.{index}.by_size"), device.by_size)?;
        }
        share("host.by_size".to_owned(), self.host.by_size)
    }

    fn check_host(&self) -> Result<(), ScenarioError> {
        let host = &self.host;
        host.preparation.check("host.preparation")?;
        within("host.workers", host.workers, 0, WORKERS_MAX)?;
        within("host.prefetch", host.prefetch, 1, 1024)?;
        if host.cores == Some(0) {
            return wrong("host.cores", "is 0", "at least 1, or leave it out");
        }
        if !(host.efficiency > 0.0 && host.efficiency <= 1.0) {
            let problem = format!("is {}", host.efficiency);
            return wrong("host.efficiency", problem, "a number above 0 and at most 1");
        }
        Ok(())
    }

    fn check_devices(&self) -> Result<(), ScenarioError> {
        let count = self.device_count();
        if count > DEVICES_MAX {
            let problem = format!("add up to {count} devices");
            return wrong("devices", problem, format!("at most {DEVICES_MAX}"));
        }
        for (index, device) in self.devices.iter().enumerate() {
            self.check_device(&format!("devices.{index}"), device)?;
        }
        if self.holders == Holders::Interleaved
            && self.serve == Serve::AllRanks
            && count > self.batches as usize
        {
            let problem = format!("\"interleaved\" over {count} devices, {} batches", self.batches);
            return wrong("holders", problem, "at least one batch for each device");
        }
        Ok(())
    }

    fn check_device(&self, key: &str, device: &Device) -> Result<(), ScenarioError> {
        let named = |name: &str| format!("{key}.{name}");
        within(&named("count"), device.count, 1, u32::MAX)?;
        within(&named("ahead"), device.ahead, 1, u32::MAX)?;
        within(&named("cores"), device.cores, 1, WORKERS_MAX)?;
        if let Some(time) = device.time_to_failure {
            above_zero(&named("time_to_failure"), time)?;
        }
        if device.spool_slots == Some(0) {
            return wrong(named("spool_slots"), "is 0", "at least 1, or leave it out");
        }
        device.preparation.check(&named("preparation"))?;
        if takes_no_time(&device.preparation) && device.read_bandwidth.is_none() {
            return wrong(named("preparation"), "takes no time", "a time above 0");
        }
        if device.drive_bandwidth.is_some()
            && (device.read_bandwidth.is_some() || device.write_bandwidth.is_some())
        {
            let remedy = "either it or read_bandwidth and write_bandwidth: it limits all transfers";
            return wrong(
                named("drive_bandwidth"),
                "is set together with the bandwidth of one \
                                                    direction",
                remedy,
            );
        }
        Ok(())
    }

    fn check_ranks(&self) -> Result<(), ScenarioError> {
        let ranks = &self.ranks;
        within("ranks.count", ranks.count, 1, RANKS_MAX)?;
        within("hosts.count", self.hosts.count, 1, RANKS_MAX)?;
        let all = self.rank_count();
        if all > RANKS_MAX {
            let problem = format!("times `ranks.count` is {all} ranks");
            return wrong("hosts.count", problem, format!("at most {RANKS_MAX} ranks"));
        }
        let workers = u64::from(all) * u64::from(self.host.workers);
        if workers > ALL_WORKERS_MAX {
            let problem = format!("times {all} ranks is {workers} workers");
            return wrong("host.workers", problem, format!("at most {ALL_WORKERS_MAX} workers"));
        }
        above_zero("ranks.timeout", ranks.timeout)?;
        for (index, fault) in ranks.faults.iter().enumerate() {
            let key = format!("ranks.faults.{index}");
            if fault.rank >= all {
                let problem = format!("names rank {} of {all}", fault.rank);
                return wrong(key, problem, format!("a rank from 0 to {}", all - 1));
            }
            let last = u64::from(self.batches) * u64::from(self.epochs);
            if let RankFaultKind::Die(step) = fault.kind
                && step > last
            {
                return wrong(key, format!("names step {step}"), format!("a step up to {last}"));
            }
        }
        Ok(())
    }
}

impl Scenario {
    /// Refuses a scenario that would be simulated for hours.
    fn check_steps(&self) -> Result<(), ScenarioError> {
        let (epochs, ranks) = (u64::from(self.epochs), u64::from(self.rank_count()));
        let steps = u64::from(self.batches).saturating_mul(epochs).saturating_mul(ranks);
        if steps <= STEPS_MAX {
            return Ok(());
        }
        let problem =
            format!("is {}: with {epochs} epochs and {ranks} ranks, {steps} steps", self.batches);
        let most = STEPS_MAX / (epochs * ranks);
        let remedy = match most {
            0 => format!("fewer epochs or ranks: at most {STEPS_MAX} steps are simulated"),
            most => format!("at most {most}, since at most {STEPS_MAX} steps are simulated"),
        };
        wrong("batches", problem, remedy)
    }

    fn check_hosts(&self) -> Result<(), ScenarioError> {
        if let Some(time) = self.hosts.time_to_failure {
            above_zero("hosts.time_to_failure", time)?;
            let hosts = if self.hosts.together { self.hosts.count } else { 1 };
            let between = time.0 as f64 / f64::from(hosts);
            let step = self.first_step_ns();
            if between < 2.0 * step {
                let problem = format!(
                    "lets a training of {hosts} hosts fail every {:.3} s; a batch and its step \
                     take {:.3} s",
                    between / 1e9,
                    step / 1e9
                );
                let remedy = "at least twice that time for each host of a training";
                return wrong("hosts.time_to_failure", problem, remedy);
            }
        }
        let (ranks, devices) = (u64::from(self.rank_count()), self.device_count());
        // Without devices, as under `host-only`, it has no meaning.
        if let Some(each) = self.devices_per_rank.filter(|_| devices > 0) {
            let most = u32::try_from(devices).unwrap_or(u32::MAX);
            within("devices_per_rank", each, 1, most)?;
            if self.serve != Serve::default() {
                let problem = "is set together with `serve`";
                return wrong("devices_per_rank", problem, "one of the two");
            }
        }
        let each = self.devices_per_rank.map_or(devices as u64, u64::from);
        if self.serve == Serve::AllRanks && ranks.saturating_mul(each) > LANES_MAX {
            let problem = format!("is \"all-ranks\" with {ranks} ranks and {devices} devices");
            return wrong("serve", problem, "\"own-ranks\", or set `devices_per_rank`");
        }
        Ok(())
    }

    fn check_stores(&self) -> Result<(), ScenarioError> {
        if let Some(stores) = &self.stores {
            within("stores.count", stores.count, 1, 1 << 16)?;
            within("stores.requests", stores.requests, 1, 1 << 20)?;
            if stores.requests_per_second == Some(0) {
                let remedy = "at least 1, or leave it out";
                return wrong("stores.requests_per_second", "is 0", remedy);
            }
            above_zero("stores.backoff", stores.backoff)?;
            if stores.backoff_max < stores.backoff {
                let problem = "is shorter than `stores.backoff`";
                return wrong("stores.backoff_max", problem, "at least `stores.backoff`");
            }
            if self.storage.read_bytes.0 == 0 {
                let problem = "is 0, and [stores] are read";
                return wrong("storage.read_bytes", problem, "the bytes of the samples of a batch");
            }
            if self.storage.host_read_bandwidth.is_some() {
                let problem = "is set together with [stores]";
                let remedy = "`hosts.link_bandwidth` and `stores.bandwidth` instead";
                return wrong("storage.host_read_bandwidth", problem, remedy);
            }
        }
        let Some(cache) = &self.cache else { return Ok(()) };
        if self.stores.is_none() {
            return wrong("cache", "is set without [stores]", "a table [stores], or no [cache]");
        }
        if cache.hit_rate.is_some() && cache.bytes.is_some() {
            return wrong("cache.bytes", "is set together with `cache.hit_rate`", "one of the two");
        }
        let rates = [("hit_rate", cache.hit_rate), ("first_hit_rate", Some(cache.first_hit_rate))];
        for (name, rate) in rates {
            if rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
                let problem = format!("is {}", rate.unwrap_or_default());
                return wrong(format!("cache.{name}"), problem, "a number from 0 to 1");
            }
        }
        Ok(())
    }
}

fn takes_no_time(distribution: &Distribution) -> bool {
    distribution.mean_ns() == 0.0
}

fn above_zero(key: &str, time: Span) -> Result<(), ScenarioError> {
    if time.0 == 0 { wrong(key, "is 0", "a time above 0") } else { Ok(()) }
}

fn within(key: &str, got: u32, least: u32, most: u32) -> Result<(), ScenarioError> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    let remedy = match most {
        u32::MAX => format!("a whole number, at least {least}"),
        _ => format!("a whole number from {least} to {most}"),
    };
    wrong(key, format!("is {got}"), remedy)
}

fn wrong<T>(
    key: impl Into<String>,
    problem: impl Into<String>,
    remedy: impl Into<String>,
) -> Result<T, ScenarioError> {
    Err(ScenarioError::new(key, problem, remedy))
}
