//! The watts of a run: which ones, and what they are worth to the scheduler.

use anyhow::Context;
use meetpoint_scheduler::Costs;
use meetpoint_sim::power::{Activity, PowerModel};
use std::path::Path;

/// The watts that `--power` names: a TOML file, or those that come with the program.
pub(crate) fn named(name: Option<&str>) -> anyhow::Result<PowerModel> {
    let Some(name) = name else { return Ok(PowerModel::bundled()) };
    let text = std::fs::read_to_string(Path::new(name)).with_context(|| {
        format!("failed to read the watts of --power {name}; it takes a TOML file of watts")
    })?;
    Ok(PowerModel::parse(&text, name)?)
}

/// What `auto` goes by where it is to save energy: power above idle of what can be busy, and
/// everything else as drawn all the time.
pub(super) fn costs(power: &PowerModel, cores: usize, devices: usize) -> Costs {
    let idle = Activity {
        duration_s: 1.0,
        host_cores: u32::try_from(cores).unwrap_or(u32::MAX),
        devices: u32::try_from(devices).unwrap_or(u32::MAX),
        accelerators: 1,
        ..Activity::default()
    };
    let microwatts = |activity: Activity| power.energy(&activity).total_j * 1e6;
    let base = microwatts(idle);
    let above = |activity: Activity| (microwatts(activity) - base).max(0.0).round() as u64;
    Costs {
        base_uw: base.round() as u64,
        host_core_uw: above(Activity { host_busy_core_s: 1.0, ..idle }),
        device_uw: above(Activity { device_busy_s: 1.0, ..idle }),
    }
}

#[cfg(test)]
mod tests {
    use super::{costs, named};
    use meetpoint_sim::power::PowerModel;

    #[test]
    fn costs_are_the_watts_of_the_model() {
        let text = "profile = \"t\"\n[base]\nwatts = 10\nsource = \"t\"\n[host_core]\nidle_w = 1\n\
                    active_w = 5\nsource = \"t\"\n[device]\nidle_w = 2\nactive_w = 2.5\nsource = \
                    \"t\"\n[accelerator]\nidle_w = 20\nactive_w = 90\nsource = \"t\"\n";
        let found = costs(&PowerModel::parse(text, "t").unwrap(), 4, 3);
        assert_eq!(found.base_uw, (10 + 4 + 6 + 20) * 1_000_000);
        assert_eq!((found.host_core_uw, found.device_uw), (4_000_000, 500_000));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = format!("{:#}", named(Some("no/such.toml")).unwrap_err());
        assert!(error.contains("--power no/such.toml"), "{error}");
        assert_eq!(named(None).unwrap(), PowerModel::bundled());
    }
}
