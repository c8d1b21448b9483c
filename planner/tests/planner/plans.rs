//! Plans for a synthetic profile, compared with those of another program; limits, pins and devices.

use meetpoint_planner::plan::{
    Aim, Change, DeviceModel, Pins, PlanChoice, PlanError, RefusedBecause, Request, choose,
    sentences,
};
use meetpoint_planner::{Form, Measured, read_csv};
use meetpoint_scheduler::StrategyName;
use meetpoint_sim::power::PowerModel;

pub(crate) fn profile() -> Vec<Measured> {
    read_csv(include_str!("../golden/profile.csv")).unwrap()
}

pub(crate) fn request() -> Request {
    Request {
        epochs: 10,
        aim: Aim::Time,
        storage_limit: None,
        memory_limit: None,
        confidence: 0.95,
        allows_loss: false,
        batch_size: 32,
        batch_bytes: 32 * 150_528 * 4,
        shuffle: true,
        step_ns: 0,
        step_gpu: None,
        device: None,
        cores: 2,
        stored_as: Form::Packed,
        pins: Pins::default(),
        power: PowerModel::bundled(),
    }
}

pub(crate) fn pinned(pins: &[&str]) -> Pins {
    let mut all = Pins::default();
    pins.iter().for_each(|pin| all.set(pin).unwrap());
    all
}

const DEVICE: DeviceModel = DeviceModel {
    cpu_ratio: 0.5,
    read_bytes_per_second: None,
    write_bytes_per_second: None,
    latency_ns: 0,
    shares_cores: false,
    spool_slots: 13,
};

fn cached(chosen: &PlanChoice) -> String {
    let cache = chosen.best().alternative.cache.as_ref();
    cache.map_or_else(|| "-".to_owned(), |cache| cache.point.to_string())
}

#[test]
fn plans_of_a_host_alone_are_those_of_the_closed_form() {
    let results = profile();
    let limit = |text: &str| (text != "-").then(|| text.parse::<u64>().unwrap());
    let lines = include_str!("../golden/plans.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let (given, expected) = line.split_once(": ").unwrap();
        let given: Vec<&str> = given.split(' ').collect();
        let request = Request {
            epochs: given[0].parse().unwrap(),
            storage_limit: limit(given[1]),
            memory_limit: limit(given[2]),
            pins: pinned(&["workers=0"]),
            ..request()
        };
        let chosen = choose(&results, &request).unwrap();
        let best = chosen.best();
        let names = format!(
            "{} {} {}",
            best.alternative.point,
            best.alternative.codec.name(),
            cached(&chosen)
        );
        let (expected, seconds) = expected.rsplit_once(' ').unwrap();
        assert_eq!(names, expected, "{line}");
        let seconds: f64 = seconds.parse().unwrap();
        // Times of batches are whole nanoseconds.
        assert!((best.cost / seconds - 1.0).abs() < 1e-6, "{line}: {}", best.cost);
    }
}

#[test]
fn a_plan_between_nothing_and_everything_offline_beats_both() {
    let request = Request { pins: pinned(&["cache=0"]), epochs: 20, ..request() };
    let chosen = choose(&profile(), &request).unwrap();
    let best = chosen.best();
    assert_eq!(best.alternative.point.to_string(), "2-resize");
    let nothing = &chosen.ranked[chosen.nothing_offline.unwrap()];
    let everything = &chosen.ranked[chosen.everything_offline.unwrap()];
    assert_eq!(nothing.alternative.point.form, Form::Packed);
    assert_eq!(everything.alternative.point.operations, 4);
    assert!(best.cost < nothing.cost && best.cost < everything.cost);
    assert!(chosen.is_certain);
    // Each change does what it says.
    assert!(!chosen.changes.is_empty());
    for change in &chosen.changes {
        let (changed, index) = match *change {
            Change::EpochsAtLeast { epochs, index } | Change::EpochsAtMost { epochs, index } => {
                (Request { epochs, ..request.clone() }, index)
            }
            Change::StorageBelow { bytes, index } => {
                (Request { storage_limit: Some(bytes as u64 - 1), ..request.clone() }, index)
            }
            Change::MemoryBelow { bytes, index } => {
                (Request { memory_limit: Some(bytes as u64 - 1), ..request.clone() }, index)
            }
            Change::StorageAtLeast { .. } | Change::MemoryAtLeast { .. } => {
                panic!("nothing was refused")
            }
        };
        let after = choose(&profile(), &changed).unwrap();
        let named = &chosen.ranked[index].alternative;
        assert_eq!(after.best().alternative.point, named.point, "{change:?}");
    }
    assert!(sentences(&request, &chosen).len() > 5);
}

#[test]
fn a_device_gets_work_where_that_saves_time_and_nothing_where_it_does_not() {
    let request = Request { pins: pinned(&["cache=0"]), ..request() };
    let with = |device| Request { device: Some(device), ..request.clone() };
    let alone = choose(&profile(), &request).unwrap();
    let fast = choose(&profile(), &with(DeviceModel { cpu_ratio: 1.0, ..DEVICE })).unwrap();
    assert_ne!(fast.best().alternative.strategy, StrategyName::HostOnly);
    assert!(fast.best().prediction.later.device_batches > 0.0);
    assert!(fast.best().cost < alone.best().cost);
    // A device this slow costs the host more core time than it saves.
    let slow = DeviceModel { cpu_ratio: 0.01, shares_cores: true, ..DEVICE };
    let slow = choose(&profile(), &with(slow)).unwrap();
    assert_eq!(slow.best().alternative.strategy, StrategyName::HostOnly);
    assert_eq!(slow.best().prediction.later.device_batches, 0.0);
    let said = sentences(&with(DEVICE), &slow).join(" ");
    assert!(said.contains("The device is not used"), "{said}");
}

#[test]
fn a_device_that_takes_longer_for_a_batch_than_the_host_for_an_epoch_is_left_out() {
    let with = |device| Request { device: Some(device), ..request() };
    for device in [
        DeviceModel { read_bytes_per_second: Some(1), ..DEVICE },
        DeviceModel { write_bytes_per_second: Some(1), ..DEVICE },
        DeviceModel { latency_ns: u64::MAX, ..DEVICE },
        DeviceModel { cpu_ratio: 1e-9, ..DEVICE },
    ] {
        let chosen = choose(&profile(), &with(device)).unwrap();
        assert_eq!(chosen.best().alternative.strategy, StrategyName::HostOnly);
        assert!(chosen.with_device.is_none());
        let [batch_seconds, epoch_seconds] = chosen.slow_device.unwrap();
        assert!(batch_seconds > epoch_seconds);
        let said = sentences(&with(device), &chosen).join(" ");
        assert!(said.contains("for a whole epoch"), "{said}");
        let pinned = Request { pins: pinned(&["strategy=wrr"]), ..with(device) };
        let error = choose(&profile(), &pinned).unwrap_err();
        assert!(matches!(error, PlanError::SlowDevice { .. }), "{error:?}");
    }
}

#[test]
fn the_largest_number_of_epochs_gives_a_plan() {
    let chosen = choose(&profile(), &Request { epochs: u32::MAX, ..request() }).unwrap();
    let earlier = chosen.changes.iter().find_map(|change| match change {
        Change::EpochsAtMost { epochs, index } => Some((*epochs, *index)),
        Change::EpochsAtLeast { .. }
        | Change::StorageBelow { .. }
        | Change::MemoryBelow { .. }
        | Change::StorageAtLeast { .. }
        | Change::MemoryAtLeast { .. } => None,
    });
    // Up to exactly this number, the plan for fewer epochs is better.
    let (epochs, index) = earlier.unwrap();
    let cost = |of: usize, epochs: u32| chosen.ranked[of].prediction.seconds(epochs);
    let is_better = |epochs| cost(index, epochs) < cost(0, epochs) * 0.995;
    assert!(is_better(epochs) && !is_better(epochs + 1), "{epochs}");
}

#[test]
fn a_fixed_cache_leaves_out_the_forms_that_cannot_have_it() {
    let with = |pin| Request { pins: pinned(&[pin]), ..request() };
    let mut results = profile();
    let is_picture = |it: &&Measured| it.form == Form::Prepared && it.operation == "resize";
    let lossy = results.iter().find(is_picture).unwrap().clone();
    results.push(Measured { form: Form::Jpeg, ..lossy });
    let chosen = choose(&results, &with("cache=400MiB")).unwrap();
    assert!(chosen.ranked.iter().all(|it| it.alternative.cache.is_some()));
    let error = choose(&results, &with("cache=1B")).unwrap_err();
    assert!(matches!(error, PlanError::SmallCache { bytes: 1, .. }), "{error:?}");
}

#[test]
fn an_accelerator_that_is_slower_than_loading_makes_offline_work_useless() {
    let step_ns = 400_000_000;
    let chosen = choose(&profile(), &Request { step_ns, ..request() }).unwrap();
    let best = chosen.best();
    assert!(best.alternative.is_as_it_is && best.alternative.cache.is_none(), "{best:?}");
    assert_eq!(best.alternative.workers, 1);
    assert!((best.prediction.later.seconds / 80.0 - 1.0).abs() < 0.01);
}

#[test]
fn what_would_not_fit_is_refused_with_the_figures() {
    let results = profile();
    let small = Request { storage_limit: Some(1_000_000_000), ..request() };
    let chosen = choose(&results, &small).unwrap();
    assert!(chosen.ranked.iter().all(|it| it.prediction.storage_bytes <= 1e9));
    let is_resize = |it: &&meetpoint_planner::plan::Refused| {
        it.alternative.point.to_string() == "2-resize" && it.alternative.codec.name() == "none"
    };
    let refused = chosen.refused.iter().find(is_resize).unwrap();
    let because = RefusedBecause::Storage { needed: 190_000.0 * 6400.0, limit: 1_000_000_000 };
    assert_eq!(refused.because, because);
    let nothing = Request { memory_limit: Some(1000), ..request() };
    let error = choose(&results, &nothing).unwrap_err();
    let batches = 3.0 * 32.0 * 150_528.0 * 4.0;
    assert_eq!(error, PlanError::NothingFits { storage_bytes: 0.0, memory_bytes: batches });
    let fixed = Request { pins: pinned(&["stored=3-crop"]), ..request() };
    assert!(matches!(choose(&results, &fixed), Err(PlanError::NotMeasured { .. })));
    let fixed = Request { pins: pinned(&["strategy=wrr"]), ..request() };
    assert!(matches!(choose(&results, &fixed), Err(PlanError::NeedsDevice { .. })));
    let fixed = Request { epochs: 0, ..request() };
    assert_eq!(choose(&results, &fixed), Err(PlanError::NoEpochs));
}

#[test]
fn fixed_values_are_those_of_the_plan() {
    let pins = ["stored=1-decode", "codec=lz4", "workers=3", "prefetch=5", "cache=400MiB"];
    let chosen = choose(&profile(), &Request { pins: pinned(&pins), ..request() }).unwrap();
    let best = &chosen.best().alternative;
    assert_eq!((best.point.operations, best.codec.name()), (1, "lz4"));
    assert_eq!((best.workers, best.prefetch), (3, 5));
    assert_eq!(best.cache.as_ref().unwrap().bytes, 400 << 20);
    assert!((0.0..1.0).contains(&best.cache.as_ref().unwrap().hit_share));
}

#[test]
fn the_fewest_joules_may_be_another_plan_than_the_least_time() {
    let results = profile();
    let device = Some(DeviceModel { cpu_ratio: 1.0, ..DEVICE });
    let request = Request { device, pins: pinned(&["cache=0"]), ..request() };
    let time = choose(&results, &request).unwrap();
    let energy = choose(&results, &Request { aim: Aim::Energy, ..request.clone() }).unwrap();
    let joules = |chosen: &PlanChoice| chosen.best().prediction.joules(10);
    assert!(joules(&energy) <= joules(&time) * 1.005);
    assert_eq!(energy.best().cost, joules(&energy));
}
