//! Plans for a synthetic profile with a GPU: when it is chosen, and why not.

use crate::plans::{pinned, profile, request};
use meetpoint_planner::plan::{
    Aim, GpuEnergy, Pins, PlanChoice, PlanError, RankedAlternative, Request, choose, sentences,
};
use meetpoint_planner::{Cache, Form, GpuIndex, Measured};
use meetpoint_sim::power::PowerModel;

const GPU: Option<GpuIndex> = Some(GpuIndex(0));
/// Samples of the dataset, and batches of an epoch.
const SAMPLES: f64 = 6400.0;
const BATCHES: f64 = 200.0;

/// The rates of a GPU with one thread, and its figures for each sample.
#[derive(Debug, Clone, Copy)]
struct Figures {
    per_second: f64,
    cpu_seconds: f64,
    gpu_seconds: f64,
    gpu_joules: Option<f64>,
}

/// Faster than any other form of the profile.
const FAST: Figures =
    Figures { per_second: 10_000.0, cpu_seconds: 1e-4, gpu_seconds: 1e-4, gpu_joules: None };
/// Slower than one thread without it.
const SLOW: Figures =
    Figures { per_second: 150.0, cpu_seconds: 1.0 / 150.0, gpu_seconds: 2e-3, gpu_joules: None };

/// The profile, in which packed files are also measured with a GPU.
fn with(gpu: Figures) -> Vec<Measured> {
    let mut results = profile();
    let is_packed = |it: &&Measured| it.form == Form::Packed && it.cache != Cache::Application;
    let packed: Vec<Measured> = results.iter().filter(is_packed).cloned().collect();
    results.extend(packed.into_iter().map(|row| Measured {
        gpu: GPU,
        gpu_seconds: Some(gpu.gpu_seconds),
        gpu_joules: gpu.gpu_joules,
        cold_per_second: gpu.per_second,
        per_second: gpu.per_second,
        cpu_seconds: gpu.cpu_seconds,
        ..row
    }));
    results
}

/// A request for the packed files without a cache.
fn packed(pins: &[&str]) -> Request {
    let pins = [&["stored=packed", "cache=0"], pins].concat();
    Request { pins: pinned(&pins), ..request() }
}

fn on_gpu(chosen: &PlanChoice) -> &RankedAlternative {
    &chosen.ranked[chosen.with_gpu.unwrap()]
}

fn is_near(got: f64, expected: f64) -> bool {
    (got / expected - 1.0).abs() < 0.01
}

#[test]
fn a_fast_gpu_is_chosen_and_a_slow_one_is_not() {
    let chosen = choose(&with(FAST), &request()).unwrap();
    let best = &chosen.best().alternative;
    assert!(best.is_as_it_is && best.gpu == GPU, "{best:?}");
    assert_eq!((chosen.with_gpu, best.cache.as_ref()), (Some(0), None));
    let seconds = SAMPLES / FAST.per_second;
    assert!(is_near(chosen.best().prediction.later.seconds, seconds), "{:?}", chosen.best());
    assert!(is_near(chosen.best().prediction.later.gpu_seconds, SAMPLES * FAST.gpu_seconds));
    let said = sentences(&request(), &chosen).join(" ");
    assert!(
        said.contains("cuda:0 can prepare a share of each batch of the host. With it"),
        "{said}"
    );
    let chosen = choose(&with(SLOW), &request()).unwrap();
    assert_eq!(chosen.best().alternative.gpu, None);
    assert_eq!(chosen.without_gpu, Some(0));
    let said = sentences(&request(), &chosen).join(" ");
    assert!(said.contains("It is not used: with it"), "{said}");
    // Without a GPU in the profile there is nothing to say about one.
    let chosen = choose(&profile(), &request()).unwrap();
    assert_eq!((chosen.with_gpu, chosen.gpu_energy), (None, None));
    assert!(!sentences(&request(), &chosen).join(" ").contains("GPU"));
}

#[test]
fn a_gpu_that_is_as_fast_as_the_cpu_is_not_used() {
    let mut results = profile();
    let rows: Vec<Measured> = results
        .iter()
        .filter(|it| it.strategy().suits_gpu())
        .map(|row| Measured { gpu: GPU, gpu_seconds: Some(1e-3), ..row.clone() })
        .collect();
    results.extend(rows);
    assert_eq!(choose(&results, &request()).unwrap().best().alternative.gpu, None);
}

#[test]
fn decoding_on_the_gpu_of_the_steps_delays_them() {
    // The host alone prepares 342 samples a second, a batch in 94 ms.
    let gpu = Figures { gpu_seconds: 1e-3, ..FAST };
    let request = |milliseconds: u64, step_gpu| Request {
        step_ns: milliseconds * 1_000_000,
        step_gpu,
        ..packed(&[])
    };
    // The host alone keeps up with steps of 100 ms; on the GPU, 32 ms of each batch would be added.
    let same = choose(&with(gpu), &request(100, None)).unwrap();
    assert_eq!(same.best().alternative.gpu, None);
    assert!(is_near(same.best().prediction.later.seconds, BATCHES * 0.1));
    assert!(is_near(on_gpu(&same).prediction.later.seconds, BATCHES * 0.132), "{same:?}");
    let said = sentences(&request(100, None), &same).join(" ");
    assert!(said.contains("same GPU"), "{said}");
    // Named as the same GPU, too.
    let named = choose(&with(gpu), &request(100, GPU)).unwrap();
    assert_eq!(on_gpu(&named).prediction.later.seconds, on_gpu(&same).prediction.later.seconds);
    // Another GPU trains: its steps are not delayed, and the first batch is ready earlier.
    let other = choose(&with(gpu), &request(100, Some(GpuIndex(1)))).unwrap();
    assert!(is_near(on_gpu(&other).prediction.later.seconds, BATCHES * 0.1));
    assert!(on_gpu(&other).cost <= other.ranked[other.without_gpu.unwrap()].cost);
    // The host alone is too slow for steps of 50 ms: 82 ms with the GPU are less than 94 ms.
    let short = choose(&with(gpu), &request(50, None)).unwrap();
    assert_eq!(short.best().alternative.gpu, GPU);
    assert!(is_near(short.best().prediction.later.seconds, BATCHES * 0.082));
    // A GPU that takes 50 ms for a batch would make it 100 ms.
    let busy = Figures { gpu_seconds: 50e-3 / 32.0, ..FAST };
    let busy = choose(&with(busy), &request(50, None)).unwrap();
    assert_eq!(busy.best().alternative.gpu, None);
}

fn energy(power: &str, pins: &[&str]) -> Request {
    let power = PowerModel::preset(power).unwrap();
    Request { aim: Aim::Energy, power, ..packed(pins) }
}

/// A little faster than the CPU, and busy all the time.
const HUNGRY: Figures =
    Figures { per_second: 400.0, cpu_seconds: 4e-3, gpu_seconds: 1.0 / 400.0, gpu_joules: None };

#[test]
fn a_hungry_gpu_saves_time_and_not_energy() {
    let results = with(HUNGRY);
    let time = choose(&results, &packed(&[])).unwrap();
    assert_eq!(time.best().alternative.gpu, GPU);
    // An H100 draws 630 W more than idle: 10 kJ for the 16 s of an epoch.
    let request = energy("server-h100", &[]);
    let chosen = choose(&results, &request).unwrap();
    assert_eq!(chosen.best().alternative.gpu, None);
    assert_eq!(chosen.gpu_energy, Some(GpuEnergy::Modelled));
    let said = sentences(&request, &chosen).join(" ");
    assert!(said.contains("Its joules are modelled: 630 W more than idle"), "{said}");
    // A GPU that draws little is worth its energy.
    let frugal = with(Figures { gpu_joules: Some(0.01), ..HUNGRY });
    let chosen = choose(&frugal, &request).unwrap();
    assert_eq!(chosen.best().alternative.gpu, GPU);
    assert_eq!(chosen.gpu_energy, Some(GpuEnergy::Measured));
    let said = sentences(&request, &chosen).join(" ");
    assert!(said.contains("Its 64 J for that come from measured joules per sample"), "{said}");
    // Measured joules can be many, too.
    let hungry = with(Figures { gpu_joules: Some(5.0), ..HUNGRY });
    assert_eq!(choose(&hungry, &request).unwrap().best().alternative.gpu, None);
}

#[test]
fn joules_of_a_gpu_are_modelled_or_measured_and_never_both() {
    let request = energy("server-h100", &["gpu=cuda:0", "workers=1"]);
    let joules = |results: &[Measured]| {
        let chosen = choose(results, &request).unwrap();
        let [offline, first, later] = chosen.best().prediction.joules;
        assert_eq!((offline, first), (0.0, later));
        (later, chosen.best().prediction.later.gpu_joules)
    };
    let (modelled, none) = joules(&with(HUNGRY));
    let (measured, some) = joules(&with(Figures { gpu_joules: Some(0.5), ..HUNGRY }));
    assert_eq!(none, None);
    assert!(is_near(some.unwrap(), SAMPLES * 0.5));
    // 630 W for the busy time, or half a joule for each sample.
    let busy = SAMPLES * HUNGRY.gpu_seconds;
    assert!((modelled - measured - (630.0 * busy - SAMPLES * 0.5)).abs() < 1.0);
    // Base, cores, memory, and the GPU that is idle: the rest is as without one.
    let mut mixed = with(Figures { gpu_joules: Some(0.5), ..HUNGRY });
    mixed.last_mut().unwrap().gpu_joules = None;
    let cold = |it: &&mut Measured| it.gpu.is_some() && it.cache == Cache::Cold;
    mixed.iter_mut().rfind(cold).unwrap().gpu_joules = None;
    assert_eq!(joules(&mixed), (modelled, None));
}

#[test]
fn another_gpu_that_trains_is_idle_meanwhile() {
    // 70 W for the duration of each epoch, whether the plan uses the GPU or not.
    let one = energy("server-h100", &["gpu=none"]);
    let two = Request { step_ns: 1, step_gpu: Some(GpuIndex(7)), ..one.clone() };
    let of = |request: &Request| {
        let chosen = choose(&with(HUNGRY), request).unwrap();
        (chosen.best().prediction.joules[2], chosen.best().prediction.later.seconds)
    };
    let ((alone, seconds), (both, _)) = (of(&Request { step_ns: 1, ..one }), of(&two));
    assert!(is_near(both - alone, 70.0 * seconds), "{both} {alone} {seconds}");
}

#[test]
fn a_power_model_without_an_accelerator_is_refused_where_joules_would_be_missing() {
    let request = energy("server", &[]);
    let refused = choose(&with(HUNGRY), &request).unwrap_err();
    assert_eq!(refused, PlanError::NoGpuWatts { profile: "server".to_owned() });
    // With measured joules, without GPUs, or for time, no watts are needed.
    let measured = with(Figures { gpu_joules: Some(0.5), ..HUNGRY });
    choose(&measured, &request).unwrap();
    choose(&with(HUNGRY), &energy("server", &["gpu=none"])).unwrap();
    choose(&profile(), &request).unwrap();
    choose(&with(HUNGRY), &Request { aim: Aim::Time, ..request }).unwrap();
}

#[test]
fn a_fixed_gpu_is_that_of_the_plan() {
    let with_pins = |pins: &[&str]| Request { pins: pinned(pins), ..request() };
    let slow = choose(&with(SLOW), &with_pins(&["gpu=cuda:0"])).unwrap();
    assert!(slow.ranked.iter().all(|it| it.alternative.gpu == GPU));
    assert_eq!(slow.without_gpu, None);
    let none = choose(&with(FAST), &with_pins(&["gpu=none"])).unwrap();
    assert!(none.ranked.iter().all(|it| it.alternative.gpu.is_none()));
    let said = sentences(&with_pins(&["gpu=none"]), &none).join(" ");
    assert!(said.contains("The user fixed the GPU to none."), "{said}");
    let refused = |pins: &[&str]| choose(&with(FAST), &with_pins(pins)).unwrap_err();
    let (gpu, what) = (GpuIndex(1), "any form".to_owned());
    assert_eq!(refused(&["gpu=cuda:1"]), PlanError::GpuNotMeasured { gpu, what });
    let (gpu, what) = (GpuIndex(0), "2-resize".to_owned());
    let refused_form = refused(&["gpu=cuda:0", "stored=2-resize"]);
    assert_eq!(refused_form, PlanError::GpuNotMeasured { gpu, what });
    assert_eq!(refused(&["gpu=cuda:0", "cache=1GiB"]), PlanError::GpuWithCache { gpu });
    assert_eq!(Pins::KEYS.last(), Some(&"gpu"));
}

#[test]
fn a_gpu_is_never_busy_for_longer_than_the_epoch() {
    // At 10 s for each sample, the measured rates cannot be right.
    let slow = with(Figures { gpu_seconds: 10.0, ..FAST });
    let chosen = choose(&slow, &request()).unwrap();
    assert_eq!(chosen.best().alternative.gpu, None);
    let later = on_gpu(&chosen).prediction.later;
    assert!(is_near(later.seconds, SAMPLES * 10.0), "{later:?}");
    assert!(is_near(later.gpu_seconds, later.seconds));
    // Nor between two measured numbers of threads that keep it busy all the time.
    let mut results = with(FAST);
    for row in results.iter_mut().filter(|row| row.gpu.is_some()) {
        let per_second = if row.threads == 1 { 100.0 } else { 1000.0 };
        (row.cold_per_second, row.per_second) = (per_second, per_second);
        (row.gpu_seconds, row.threads) = (Some(1.0 / per_second), 3 * row.threads - 2);
    }
    let pins = packed(&["gpu=cuda:0", "workers=2"]);
    let later = choose(&results, &pins).unwrap().best().prediction.later;
    assert!(is_near(later.seconds, SAMPLES / 400.0), "{later:?}");
    assert!(is_near(later.gpu_seconds, later.seconds), "{later:?}");
}

#[test]
fn the_longest_samples_and_steps_give_a_plan() {
    let slow = with(Figures { gpu_seconds: 86_400.0, ..FAST });
    let request = Request { step_ns: 86_400_000_000_000, ..packed(&["gpu=cuda:0"]) };
    let later = choose(&slow, &request).unwrap().best().prediction.later;
    let step = 86_400.0 + 32.0 * 86_400.0;
    assert!(is_near(later.seconds, BATCHES * step), "{later:?}");
    assert!(is_near(later.gpu_seconds, SAMPLES * 86_400.0), "{later:?}");
    let longest = Request { step_ns: u64::MAX, ..packed(&["gpu=none"]) };
    let later = choose(&slow, &longest).unwrap().best().prediction.later;
    assert!(is_near(later.seconds, BATCHES * u64::MAX as f64 * 1e-9), "{later:?}");
}

#[test]
fn a_profile_of_a_gpu_alone_lacks_the_cpu() {
    let results: Vec<Measured> = with(FAST).into_iter().filter(|it| it.gpu.is_some()).collect();
    let (what, gpu) = ("packed".to_owned(), GpuIndex(0));
    let refused = choose(&results, &request()).unwrap_err();
    assert_eq!(refused, PlanError::CpuNotMeasured { what, gpu });
    choose(&results, &Request { pins: pinned(&["gpu=cuda:0"]), ..request() }).unwrap();
    // Other forms are listed once.
    let mut results = profile();
    results.retain(|it| it.form != Form::Packed || it.cache != Cache::Cold);
    let PlanError::NotMeasured { measured, .. } = choose(&results, &request()).unwrap_err() else {
        panic!("packed files were not measured from the drive");
    };
    let mut once = measured.clone();
    once.sort_unstable();
    once.dedup();
    assert!(once.len() == measured.len() && !once.contains(&"packed".to_owned()), "{measured:?}");
}

#[test]
fn what_the_user_fixed_is_named() {
    let pins = ["stored=packed", "codec=none", "cache=0", "gpu=cuda:0", "workers=2"];
    let request = Request { pins: pinned(&pins), ..request() };
    let said = sentences(&request, &choose(&with(FAST), &request).unwrap());
    for part in [
        "the stored form to packed and the codec to none",
        "the cache to none",
        "the GPU to cuda:0",
    ] {
        let sentence = format!("The user fixed {part}.");
        assert_eq!(said.iter().filter(|it| **it == sentence).count(), 1, "{said:?}");
    }
}
