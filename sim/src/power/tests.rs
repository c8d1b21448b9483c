//! The model against sums done by hand, against published figures, and over random activities.

use meetpoint_diagnose::{Diagnose, Surface};
use proptest::prelude::*;

use super::*;

/// Round numbers, so that the expected values below can be done in the head.
const ROUND: &str = r#"
    profile = "round"
    base = { watts = 100.0, source = "made up" }
    host_core = { idle_w = 1.0, active_w = 5.0, source = "made up" }
    dram = { modules = 4, module_w = 2.5, picojoules_per_byte = 200, source = "made up" }
    device = { idle_w = 6.0, active_w = 7.0, source = "made up" }
    accelerator = { idle_w = 50.0, active_w = 300.0, source = "made up", unverified = ["idle_w"] }
    flash = { capacity_tb = 2, rated_tbw = 3650, rated_years = 5, source = "made up" }

    [prices]
    currency = "EUR"
    node_per_hour = 3.6
    per_kwh = 0.36
    device_premium = 365
    device_life_years = 1
    drive = 730
    source = "made up"
    example = ["drive"]
"#;

fn round() -> PowerModel {
    PowerModel::parse(ROUND, "test").unwrap()
}

fn worked() -> Activity {
    Activity {
        duration_s: 10.0,
        host_cores: 4,
        host_busy_core_s: 20.0,
        dram_bytes: 1_000_000_000_000,
        devices: 1,
        device_busy_s: 8.0,
        accelerators: 1,
        accelerator_busy_s: 6.0,
    }
}

#[test]
fn energy_is_base_plus_idle_plus_the_added_power_of_work() {
    let energy = round().energy(&worked());
    assert_eq!(energy.of(Component::Base), 1_000.0);
    assert_eq!(energy.of(Component::Host), 4.0 * 10.0 + 4.0 * 20.0);
    // 4 modules of 2.5 W for 10 s, and 1 TB at 200 pJ a byte.
    assert_eq!(energy.of(Component::Dram), 100.0 + 200.0);
    assert_eq!(energy.of(Component::Device), 60.0 + 8.0);
    assert_eq!(energy.of(Component::Accelerator), 500.0 + 250.0 * 6.0);
    assert_eq!(energy.total_j, 1_000.0 + 120.0 + 300.0 + 68.0 + 2_000.0);
    assert_eq!(energy.preparation_j, 120.0 + 300.0 + 68.0);
    assert_eq!(energy.joules_per_sample(1_000), Some(3.488));
    assert_eq!(energy.joules_per_sample(0), None);
    assert_eq!(energy.unverified, ["accelerator.idle_w"]);
    assert!(energy.source.starts_with("modelled(round@"), "{}", energy.source);
}

/// The server of the Solana paper (arXiv 2112.12415): 405 W idle with 36 drives, 482 W with its
/// cores busy, 492 W with the drives computing as well; 3.1 times the speed, 67 % less energy.
#[test]
fn the_solana_servers_watts_and_its_energy_saving_come_out() {
    let model = PowerModel::preset("solana").unwrap();
    let watts = |cores: f64, drives: f64| {
        let activity = Activity {
            duration_s: 1.0,
            host_cores: 8,
            host_busy_core_s: cores,
            devices: 36,
            device_busy_s: drives,
            ..Activity::default()
        };
        model.energy(&activity).total_j
    };
    let near = |got: f64, published: f64| assert!((got - published).abs() < 0.5, "{got}");
    near(watts(0.0, 0.0), 405.0);
    near(watts(8.0, 0.0), 482.0);
    near(watts(8.0, 36.0), 492.0);
    let saving = 1.0 - watts(8.0, 36.0) / 3.1 / watts(8.0, 0.0);
    assert!((saving - 0.67).abs() < 0.005, "{saving}");
}

/// The slots of 37.6 % of ImageNet's 1,281,167 samples of 224x224x3 bytes: the
/// DDLP paper has 72.5 GB.
#[test]
fn an_epoch_of_device_batches_wears_the_drive_by_what_it_writes() {
    let written = (1_281_167.0 * 0.376 * 150_528.0) as u64;
    assert!((written as f64 / 72.5e9 - 1.0).abs() < 1e-3, "{written}");
    let wear = round().wear(written, 864.0, 1).unwrap();
    // 100 such epochs in a day, on 2 TB.
    assert!((wear.drive_writes_per_day - written as f64 * 100.0 / 2e12).abs() < 1e-9);
    assert_eq!(wear.rated_drive_writes_per_day, 1.0);
    assert_eq!(wear.life_share_per_epoch, written as f64 / 3.65e15);
    let years = wear.years.unwrap();
    assert!((years - 5.0 / wear.drive_writes_per_day).abs() < 1e-9, "{years}");
    let two = round().wear(written, 864.0, 2).unwrap();
    assert!((two.drive_writes_per_day * 2.0 - wear.drive_writes_per_day).abs() < 1e-12);
    assert_eq!(round().wear(0, 864.0, 1).unwrap().years, None);
    assert_eq!(round().wear(written, 0.0, 1), None);
    assert_eq!(round().wear(written, 864.0, 0), None);
}

/// The maker's own example: 1.38 PB over five years on 1.0 TB is 756 GB a day.
#[test]
fn a_rating_is_counted_in_years_of_365_days() {
    let text =
        ROUND.replace("capacity_tb = 2, rated_tbw = 3650", "capacity_tb = 1, rated_tbw = 1380");
    let wear = PowerModel::parse(&text, "test").unwrap().wear(1, 1.0, 1).unwrap();
    assert!((wear.rated_drive_writes_per_day - 0.756).abs() < 5e-4, "{wear:?}");
}

#[test]
fn money_is_node_electricity_premium_and_wear() {
    let model = round();
    let energy = model.energy(&Activity { duration_s: 1_000.0, ..Activity::default() });
    assert_eq!(energy.total_j, 110_000.0);
    let wear = model.wear(3_650_000_000_000, 1_000.0, 1).unwrap();
    let cost = model.cost(1_000.0, 1, 1, &energy, Some(&wear)).unwrap();
    let near = |got: f64, expected: f64| assert!((got - expected).abs() < 1e-9, "{got}");
    near(cost.node, 1.0);
    near(cost.energy, 0.011);
    // 365 a year for 1,000 s of 31,536,000.
    near(cost.device_premium, 365.0 / 31_536.0);
    // A thousandth of the rated bytes of a drive for 730.
    near(cost.flash_wear, 0.73);
    near(cost.total, 1.0 + 0.011 + 365.0 / 31_536.0 + 0.73);
    assert_eq!((cost.currency.as_str(), &cost.examples[..]), ("EUR", &["prices.drive".into()][..]));
    let twice = model.cost(1_000.0, 2, 0, &energy, None).unwrap();
    near(twice.total, 2.011);
}

#[test]
fn a_file_without_memory_flash_and_prices_leaves_them_out() {
    let text: String = ROUND
        .lines()
        .take_while(|line| !line.contains("[prices]"))
        .filter(|line| !line.contains("dram") && !line.contains("flash"))
        .map(|line| format!("{line}\n"))
        .collect();
    let model = PowerModel::parse(&text, "test").unwrap();
    let energy = model.energy(&worked());
    assert_eq!(energy.of(Component::Dram), 0.0);
    assert_eq!(model.wear(1, 1.0, 1), None);
    assert_eq!(model.cost(1.0, 1, 1, &energy, None), None);
}

#[test]
fn traffic_counts_every_crossing_of_the_memory_bus() {
    let host = DramTraffic::host(100, 1_000);
    assert_eq!(host.total_bytes(), 100 + 100 + 1_000 + 1_000);
    let device = DramTraffic::device(1_000);
    assert_eq!(device.total_bytes(), 3 * 1_000);
    assert_eq!(host.and(device).total_bytes(), 2_200 + 3_000);
    assert_eq!(host.and(DramTraffic::host(u64::MAX, 0)).total_bytes(), u64::MAX);
}

#[test]
fn watts_become_whole_microwatts_for_the_scheduler() {
    let costs = round().costs(4, 2, 1);
    // 100 W and 4 modules of 2.5 W, 4 cores of 1 W, 2 devices of 6 W, 1 accelerator of 50 W.
    assert_eq!(costs.base_uw, (110 + 4 + 12 + 50) * 1_000_000);
    assert_eq!((costs.host_core_uw, costs.device_uw), (4_000_000, 1_000_000));
}

#[test]
fn every_preset_parses_under_its_own_name_and_every_number_has_a_source() {
    for preset in presets() {
        let model = PowerModel::preset(preset.name).unwrap();
        assert_eq!(model.profile(), preset.name);
        assert!(!model.about().is_empty(), "{}", preset.name);
        let numbers = model.numbers();
        assert_eq!(numbers.len(), 1 + 2 + 3 + 2 + 2 + 3 + 5, "{}", preset.name);
        assert!(numbers.iter().all(|number| !number.source.is_empty()), "{}", preset.name);
    }
    assert_eq!(PowerModel::bundled().profile(), DEFAULT_PRESET);
    let unknown = PowerModel::preset("sever").unwrap_err().in_full(Surface::CommandLine);
    assert!(
        unknown.contains("no power preset sever; name one of server, server-v100"),
        "{unknown}"
    );
}

#[test]
fn a_section_takes_from_its_part_what_it_does_not_say() {
    let text = ROUND.replace(
        r#"device = { idle_w = 6.0, active_w = 7.0, source = "made up" }"#,
        r#"device = { like = "newport", active_w = 16.0, source = "our meter" }"#,
    );
    let model = PowerModel::parse(&text, "test").unwrap();
    let numbers = model.numbers();
    let number = |key: &str| numbers.iter().find(|number| number.key == key).unwrap();
    assert_eq!(number("device.idle_w").value, 13.0);
    assert_eq!(number("device.active_w").value, 16.0);
    assert!(!number("device.active_w").is_unverified, "the part's mark went with its number");
    assert!(number("device.active_w").source.starts_with("our meter; the rest: A53-class"));
    let renamed = ROUND.replace("modules = 4, module_w", "like = \"ddr4\", modules = 4, module_w");
    assert!(PowerModel::parse(&renamed, "test").is_ok());
}

#[test]
fn another_file_has_another_hash() {
    let other = PowerModel::parse(&ROUND.replace("100.0", "101.0"), "test").unwrap();
    assert_ne!(other.source(), round().source());
}

#[test]
fn invalid_power_files_are_refused_by_name() {
    let refused = |from: &str, to: &str| {
        assert!(ROUND.contains(from), "the file has {from}");
        let error = PowerModel::parse(&ROUND.replace(from, to), "w.toml").unwrap_err();
        error.in_full(Surface::CommandLine)
    };
    assert_eq!(
        refused("idle_w = 1.0", "idle_w = -2.2"),
        "power file w.toml: host_core.idle_w is -2.2; give a number, 0 or more"
    );
    assert!(refused("active_w = 5.0", "active_w = nan").contains("host_core.active_w is nan"));
    assert!(refused("active_w = 5.0", "active_w = \"5\"").contains("give a number"));
    assert!(refused("active_w = 7.0", "active_w = 1.0").contains("device.active_w is below"));
    assert!(refused("[\"idle_w\"]", "[\"idle\"]").contains("accelerator.unverified names idle,"));
    assert!(refused("example = [\"drive\"]", "example = [\"x\"]").contains("prices.example"));
    assert!(refused("idle_w = 1.0, ", "").contains("host_core.idle_w is missing; give"));
    assert!(refused("idle_w = 1.0", "idel_w = 1.0").contains("unknown key host_core.idel_w"));
    assert!(refused("watts = 100.0", "currency = \"EUR\"").contains("unknown key base.currency"));
    assert!(refused("currency = \"EUR\"", "").contains("prices.currency is missing"));
    assert!(refused("capacity_tb = 2", "capacity_tb = 0").contains("give a number above 0"));
    assert!(refused("base =", "bass =").contains("w.toml does not parse"));
    assert!(refused("watts = 100.0, source = \"made up\"", "watts = 1").contains("has no source"));
    let like = refused("idle_w = 6.0, active_w = 7.0, source = \"made up\"", "like = \"newprt\"");
    assert!(like.contains("device.like names newprt, which does not exist"), "{like}");
    assert!(like.contains("name one of newport, none, smartssd, solana"), "{like}");
    let changed = "like = \"newport\", idle_w = 6.0";
    let error = refused("idle_w = 6.0, active_w = 7.0, source = \"made up\"", changed);
    assert!(error.contains("device has no source"), "{error}");
}

fn activities() -> impl Strategy<Value = Activity> {
    let busy = || 0.0..1e6_f64;
    (0.0..1e5_f64, 0..256_u32, busy(), any::<u32>(), 0..64_u32, busy(), 0..16_u32, busy()).prop_map(
        |(duration_s, host_cores, host, dram, devices, device, accelerators, accelerator)| {
            Activity {
                duration_s,
                host_cores,
                host_busy_core_s: host,
                dram_bytes: u64::from(dram) << 10,
                devices,
                device_busy_s: device,
                accelerators,
                accelerator_busy_s: accelerator,
            }
        },
    )
}

fn models() -> impl Strategy<Value = PowerModel> {
    (0..presets().len()).prop_map(|index| PowerModel::preset(presets()[index].name).unwrap())
}

fn added(one: &Activity, two: &Activity) -> Activity {
    Activity {
        duration_s: one.duration_s + two.duration_s,
        host_busy_core_s: one.host_busy_core_s + two.host_busy_core_s,
        dram_bytes: one.dram_bytes + two.dram_bytes,
        device_busy_s: one.device_busy_s + two.device_busy_s,
        accelerator_busy_s: one.accelerator_busy_s + two.accelerator_busy_s,
        ..*one
    }
}

proptest! {
    #[test]
    fn parts_make_the_whole(model in models(), activity in activities()) {
        let energy = model.energy(&activity);
        let sum: f64 = Component::ALL.iter().map(|component| energy.of(*component)).sum();
        prop_assert!((sum - energy.total_j).abs() <= 1e-9 * energy.total_j.abs().max(1.0));
        let preparing: f64 = Component::ALL
            .iter()
            .filter(|component| component.prepares())
            .map(|component| energy.of(*component))
            .sum();
        prop_assert!((preparing - energy.preparation_j).abs() <= 1e-9 * energy.total_j.max(1.0));
        prop_assert!(energy.parts.iter().all(|part| part.idle_j >= 0.0 && part.work_j >= 0.0));
    }

    #[test]
    fn two_runs_one_after_the_other_use_what_both_use(
        model in models(), one in activities(), two in activities()
    ) {
        // The same machine: counts are those of the first.
        let two = Activity { host_cores: one.host_cores, devices: one.devices,
            accelerators: one.accelerators, ..two };
        let apart = model.energy(&one).total_j + model.energy(&two).total_j;
        let together = model.energy(&added(&one, &two)).total_j;
        prop_assert!((apart - together).abs() <= 1e-9 * together.max(1.0), "{apart} {together}");
    }

    #[test]
    fn more_of_anything_never_uses_less(
        model in models(), one in activities(), more in activities()
    ) {
        let least = model.energy(&one).total_j;
        let larger = Activity {
            host_cores: one.host_cores + more.host_cores,
            devices: one.devices + more.devices,
            accelerators: one.accelerators + more.accelerators,
            ..added(&one, &more)
        };
        prop_assert!(model.energy(&larger).total_j >= least - 1e-6);
    }

    #[test]
    fn money_and_wear_grow_with_time_and_bytes(
        seconds in 1.0..1e5_f64, bytes in 1..1_u64 << 50, factor in 2..9_u32
    ) {
        let model = round();
        let cost = |seconds: f64, bytes: u64| {
            let activity = Activity { duration_s: seconds, ..Activity::default() };
            let wear = model.wear(bytes, seconds, 1).unwrap();
            model.cost(seconds, 1, 1, &model.energy(&activity), Some(&wear)).unwrap()
        };
        let scale = f64::from(factor);
        let (one, many) = (cost(seconds, bytes), cost(seconds * scale, bytes * u64::from(factor)));
        prop_assert!((many.total / one.total / scale - 1.0).abs() < 1e-9);
        let wear = model.wear(bytes, seconds, 1).unwrap();
        let slower = model.wear(bytes, seconds * scale, 1).unwrap();
        let ratio = wear.drive_writes_per_day / slower.drive_writes_per_day;
        prop_assert!((ratio / scale - 1.0).abs() < 1e-9);
    }
}
