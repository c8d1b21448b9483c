//! Every kind of meter on a made-up machine: one contract, and what each kind has of its own.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::clock::monotonic_ns;

/// A folder that stands for `/`.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, content)| tree.write(path, content));
        tree
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.0.path().join(path)).unwrap();
    }

    fn meters(&self) -> Meters {
        Meters::find(machine(self.0.path(), FakeCounters::at(0), None))
    }
}

fn no_gpu() -> Unusable {
    MeterError::NoLibrary { library: "libnvidia-ml.so.1".to_owned() }.into()
}

fn machine(root: &Path, counters: FakeCounters, gpus: Option<Arc<FakeGpus>>) -> Machine {
    Machine {
        root: root.to_owned(),
        counters: Box::new(counters),
        gpus: gpus.map(|gpus| gpus as Arc<dyn Gpus>).ok_or_else(no_gpu),
    }
}

/// Counters that all show one value, or that may not be opened.
#[derive(Clone)]
struct FakeCounters(Option<Arc<AtomicU64>>);

impl FakeCounters {
    fn at(value: u64) -> Self {
        Self(Some(Arc::new(AtomicU64::new(value))))
    }

    fn refused() -> Self {
        Self(None)
    }
}

impl Counters for FakeCounters {
    fn open(&self, unit: u32, event: u64, _cpu: u32) -> io::Result<Box<dyn Read + Send>> {
        assert_eq!((unit, event), (9, 2), "what the files say");
        match &self.0 {
            Some(value) => Ok(Box::new(FakeCounter(value.clone()))),
            None => Err(io::Error::from_raw_os_error(libc::EACCES)),
        }
    }
}

struct FakeCounter(Arc<AtomicU64>);

impl Read for FakeCounter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.copy_from_slice(&self.0.load(Ordering::SeqCst).to_ne_bytes());
        Ok(buffer.len())
    }
}

/// Boards with a counter, with power only, or gone.
struct FakeGpus {
    boards: u32,
    millijoules: Option<AtomicU64>,
    is_gone: std::sync::atomic::AtomicBool,
}

impl FakeGpus {
    fn new(boards: u32, millijoules: Option<u64>) -> Arc<Self> {
        let is_gone = false.into();
        Arc::new(Self { boards, millijoules: millijoules.map(AtomicU64::new), is_gone })
    }

    fn gone(&self) -> Result<(), GpuError> {
        let lost = || GpuError::Failed { detail: "the board fell off the bus".to_owned() };
        if self.is_gone.load(Ordering::SeqCst) { Err(lost()) } else { Ok(()) }
    }
}

impl Gpus for FakeGpus {
    fn library(&self) -> &str {
        "NVML"
    }

    fn count(&self) -> Result<u32, Unusable> {
        Ok(self.boards)
    }

    fn name(&self, _index: u32) -> Result<String, GpuError> {
        Ok("Fake V100".to_owned())
    }

    fn millijoules(&self, _index: u32) -> Result<u64, GpuError> {
        self.gone()?;
        let counter = self.millijoules.as_ref().ok_or(GpuError::NotSupported)?;
        Ok(counter.load(Ordering::SeqCst))
    }

    fn milliwatts(&self, _index: u32) -> Result<u32, GpuError> {
        self.gone()?;
        Ok(250_000)
    }

    fn utilisation(&self, _index: u32) -> Result<f64, GpuError> {
        self.gone()?;
        Ok(0.5)
    }
}

const PACKAGE: &str = "sys/class/powercap/intel-rapl:0/energy_uj";

fn powercap_files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("sys/class/powercap/intel-rapl/enabled", "1\n"),
        ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
        (PACKAGE, "262143000000\n"),
        ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
        ("sys/class/powercap/intel-rapl:0:0/name", "core\n"),
        ("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n"),
        ("sys/class/powercap/intel-rapl:0:1/name", "dram\n"),
        ("sys/class/powercap/intel-rapl:0:1/energy_uj", "100\n"),
        ("sys/class/powercap/intel-rapl:1/name", "psys\n"),
        ("sys/class/powercap/intel-rapl:1/energy_uj", "7\n"),
        ("sys/class/powercap/intel-rapl-mmio:0/name", "package-0\n"),
        ("sys/class/powercap/intel-rapl-mmio:0/energy_uj", "5\n"),
    ]
}

const PERF: &str = "sys/bus/event_source/devices/power";

fn perf_files() -> Vec<(String, &'static str)> {
    let file = |path: &str| format!("{PERF}/{path}");
    vec![
        (file("type"), "9\n"),
        (file("cpumask"), "0,64\n"),
        (file("events/energy-pkg"), "event=0x02\n"),
        (file("events/energy-pkg.scale"), "2.3283064365386962890625e-10\n"),
        (file("events/energy-pkg.unit"), "Joules\n"),
    ]
}

fn tree_of(files: &[(String, &str)]) -> Tree {
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    Tree::new(&files)
}

fn names(meters: &Meters) -> Vec<&str> {
    meters.used().map(|about| about.name.as_str()).collect()
}

fn why<'a>(meters: &'a Meters, name: &str) -> &'a Unusable {
    let listed = meters.listed().iter().find(|listed| listed.about.name == name);
    let listed = listed.unwrap_or_else(|| panic!("{name} is listed: {meters:?}"));
    listed.meter.as_ref().err().unwrap_or_else(|| panic!("{name} does not work"))
}

/// What every kind of meter owes, whatever it reads: `work` makes it show that something was used,
/// `vanish` takes it away.
fn fulfils_the_contract(meters: Meters, name: &str, work: impl Fn(), vanish: impl Fn()) {
    let about = meters.used().find(|about| about.name == name).unwrap().clone();
    assert!(about.covers.scope() == about.scope && !about.source.is_empty(), "{about:?}");
    let of = |measurement: &Measurement| {
        measurement.meters.iter().find(|meter| meter.meter == name).unwrap().clone()
    };
    let recorder = Recorder::start(meters);
    work();
    let (measurement, meters) = recorder.stop();
    assert_eq!(measurement.nothing_because, None);
    let worked = of(&measurement);
    assert!(worked.joules.unwrap() > 0.0 && worked.readings >= 2, "{worked:?}");
    let recorder = Recorder::start(meters);
    vanish();
    let (measurement, _) = recorder.stop();
    let vanished = of(&measurement);
    assert_eq!(vanished.joules, None, "a part is not shown as a whole");
    assert!(vanished.failure.is_some(), "{vanished:?}");
}

#[test]
fn powercap_fulfils_the_contract() {
    let tree = Tree::new(&powercap_files());
    let work = || tree.write(PACKAGE, "1000000\n");
    fulfils_the_contract(tree.meters(), "rapl:package-0", work, || tree.remove(PACKAGE));
}

#[test]
fn perf_fulfils_the_contract() {
    let tree = tree_of(&perf_files());
    let counters = FakeCounters::at(1 << 32);
    let value = counters.0.clone().unwrap();
    let meters = Meters::find(machine(tree.0.path(), counters, None));
    let work = || value.store(3 << 32, Ordering::SeqCst);
    fulfils_the_contract(meters, "perf:energy-pkg/0", work, || value.store(1, Ordering::SeqCst));
}

#[test]
fn graphics_boards_fulfil_the_contract() {
    let tree = Tree::new(&[]);
    let gpus = FakeGpus::new(1, Some(5));
    let meters = Meters::find(machine(tree.0.path(), FakeCounters::at(0), Some(gpus.clone())));
    let work = || gpus.millijoules.as_ref().unwrap().store(905, Ordering::SeqCst);
    let vanish = || gpus.is_gone.store(true, Ordering::SeqCst);
    fulfils_the_contract(meters, "nvml:0", work, vanish);
}

#[test]
fn the_utilisation_of_a_board_is_recorded_beside_its_energy() {
    let tree = Tree::new(&powercap_files());
    let gpus = FakeGpus::new(1, Some(5));
    let meters = Meters::find(machine(tree.0.path(), FakeCounters::at(0), Some(gpus)));
    let (measurement, meters) = Recorder::start(meters).stop();
    let of = |measurement: &Measurement, name: &str| {
        measurement.meters.iter().find(|meter| meter.meter == name).unwrap().utilisation
    };
    assert_eq!(of(&measurement, "nvml:0"), Some(0.5));
    assert_eq!(of(&measurement, "rapl:package-0"), None);
    let both = measurement.and(Recorder::start(meters).stop().0);
    assert_eq!(of(&both, "nvml:0"), Some(0.5));
}

#[test]
fn boards_without_a_counter_fulfil_the_contract_by_their_power() {
    let tree = Tree::new(&[]);
    let gpus = FakeGpus::new(1, None);
    let meters = Meters::find(machine(tree.0.path(), FakeCounters::at(0), Some(gpus.clone())));
    fulfils_the_contract(meters, "nvml:0", || {}, || gpus.is_gone.store(true, Ordering::SeqCst));
}

#[test]
fn board_sensors_fulfil_the_contract() {
    let power = "sys/class/hwmon/hwmon3/power1_average";
    let tree = Tree::new(&[
        ("sys/class/hwmon/hwmon3/name", "power_meter\n"),
        ("sys/class/hwmon/hwmon3/power1_average_interval", "1000\n"),
        (power, "182000000\n"),
    ]);
    fulfils_the_contract(tree.meters(), "hwmon:power_meter/power1", || {}, || tree.remove(power));
    let energy = "sys/class/hwmon/hwmon0/energy1_input";
    let tree = Tree::new(&[
        ("sys/class/hwmon/hwmon0/name", "amd_energy\n"),
        ("sys/class/hwmon/hwmon0/energy1_label", "Esocket0\n"),
        (energy, "1000\n"),
    ]);
    let work = || tree.write(energy, "9000\n");
    fulfils_the_contract(tree.meters(), "hwmon:amd_energy/Esocket0", work, || {
        tree.write(energy, "");
    });
}

#[test]
fn a_battery_fulfils_the_contract() {
    let folder = "sys/class/power_supply/BAT0";
    let status = format!("{folder}/status");
    let tree = tree_of(&[
        (format!("{folder}/type"), "Battery\n"),
        (status.clone(), "Discharging\n"),
        (format!("{folder}/current_now"), "-1500000\n"),
        (format!("{folder}/voltage_now"), "12000000\n"),
    ]);
    let plug = || tree.write(&status, "Charging\n");
    fulfils_the_contract(tree.meters(), "battery:BAT0", || {}, plug);
    let meters = tree.meters();
    let unusable = why(&meters, "battery:BAT0");
    assert_eq!(unusable.reason, MeterError::OnMains { status: "Charging".to_owned() });
    assert_eq!(unusable.remedy.as_deref(), Some("unplug the power supply"));
}

#[test]
fn zones_are_named_by_package_and_nothing_is_counted_twice() {
    let tree = Tree::new(&powercap_files());
    let meters = tree.meters();
    let expected = ["rapl:package-0", "rapl:package-0/core", "rapl:package-0/dram", "rapl:psys"];
    assert_eq!(names(&meters), expected);
    let recorder = Recorder::start(meters);
    tree.write(PACKAGE, "671150\n");
    tree.write("sys/class/powercap/intel-rapl:0:0/energy_uj", "600005\n");
    tree.write("sys/class/powercap/intel-rapl:0:1/energy_uj", "500100\n");
    let (measurement, _) = recorder.stop();
    // The package's counter wrapped: 328,850 to its end and 671,150 after it.
    let joules: Vec<f64> = measurement.meters.iter().filter_map(|meter| meter.joules).collect();
    assert_eq!(joules, [1.0, 0.6, 0.5]);
    let failure = measurement.meters[3].failure.as_ref();
    assert!(matches!(failure, Some(MeterError::NeverAdvanced { .. })), "{failure:?}");
    assert_eq!(measurement.sum_joules(), Some(1.5), "package and memory; cores are in the package");
}

#[test]
fn unreadable_and_invalid_meters_are_reported_with_their_reason() {
    let tree = Tree::new(&powercap_files());
    tree.write(PACKAGE, "lots\n");
    std::fs::remove_file(tree.0.path().join("sys/class/powercap/intel-rapl:0:0/energy_uj"))
        .unwrap();
    let unreadable = "sys/class/powercap/intel-rapl:0:0/energy_uj/not-a-file";
    tree.write(unreadable, "");
    tree.write("sys/class/powercap/intel-rapl:0:1/max_energy_range_uj", "-5\n");
    let meters = tree.meters();
    assert_eq!(names(&meters), ["rapl:psys"]);
    let reason = &why(&meters, "rapl:package-0").reason;
    let MeterError::Garbage { held, expected, .. } = reason else { panic!("{reason}") };
    assert_eq!((held.as_str(), expected.as_ref()), ("lots", "a number of microjoules"));
    let reason = &why(&meters, "rapl:package-0/core").reason;
    let MeterError::Read { path, .. } = reason else { panic!("{reason}") };
    assert!(path.ends_with("intel-rapl:0:0/energy_uj"), "{reason}");
    let reason = &why(&meters, "rapl:package-0/dram").reason;
    let MeterError::Garbage { path, held, .. } = reason else { panic!("{reason}") };
    assert!(path.ends_with("max_energy_range_uj") && held == "-5", "{reason}");
}

#[test]
fn a_missing_permission_comes_with_its_remedy() {
    let about = powercap::list(Path::new("/nowhere")).remove(0).about;
    let error = io::Error::from_raw_os_error(libc::EACCES);
    let error = MeterError::Read { path: PACKAGE.into(), error: error.into() };
    let listed = ProbedMeter::failed(about, error.clone(), "sudo chmod");
    let unusable = listed.meter.err().unwrap();
    assert_eq!(unusable.reason, error);
    assert_eq!(unusable.remedy.as_deref(), Some("sudo chmod"));
    let tree = tree_of(&perf_files());
    let meters = Meters::find(machine(tree.0.path(), FakeCounters::refused(), None));
    let unusable = why(&meters, "perf:energy-pkg/1");
    let MeterError::Open { event, error } = &unusable.reason else { panic!("{unusable:?}") };
    assert_eq!((event.as_str(), error.errno), ("perf:energy-pkg/1", Some(libc::EACCES)));
    assert!(unusable.remedy.as_ref().unwrap().contains("perf_event_paranoid"), "{unusable:?}");
}

#[test]
fn perf_stands_in_only_where_powercap_does_not_work() {
    let tree = tree_of(&perf_files());
    assert_eq!(names(&tree.meters()), ["perf:energy-pkg/0", "perf:energy-pkg/1"]);
    powercap_files().iter().for_each(|(path, text)| tree.write(path, text));
    let meters = tree.meters();
    assert!(!names(&meters).iter().any(|name| name.starts_with("perf:")), "{meters:?}");
    let same = meters.listed().iter().filter(|listed| listed.same_as.is_some());
    assert!(same.clone().all(|listed| listed.same_as.as_deref() == Some("rapl:package-0")));
    assert_eq!(same.count(), 2);
}

#[test]
fn invalid_files_of_perf_are_reported() {
    let wrong = [
        ("type", "x"),
        ("cpumask", "0-"),
        ("cpumask", "0-99999"),
        ("events/energy-pkg", "config=3"),
        ("events/energy-pkg.scale", "-1"),
        ("events/energy-pkg.unit", "Hours"),
    ];
    for (file, text) in wrong {
        let tree = tree_of(&perf_files());
        tree.write(&format!("{PERF}/{file}"), text);
        let meters = tree.meters();
        let reason = &why(&meters, "perf:energy-pkg").reason;
        let MeterError::Garbage { path, held, .. } = reason else { panic!("{reason}") };
        assert!(path.ends_with(file) && held.contains(text), "{reason}");
    }
}

#[test]
fn a_counter_of_perf_is_in_its_own_scale() {
    let tree = tree_of(&perf_files());
    let counters = FakeCounters::at(0);
    let value = counters.0.clone().unwrap();
    let recorder = Recorder::start(Meters::find(machine(tree.0.path(), counters, None)));
    // 2.5 J in units of 2^-32 J.
    value.store(5 << 31, Ordering::SeqCst);
    let (measurement, _) = recorder.stop();
    assert_eq!(measurement.meters[0].joules, Some(2.5));
    assert_eq!(measurement.sum_joules(), Some(5.0), "both packages");
}

#[test]
fn a_machine_without_meters_says_so_and_why() {
    let meters = Tree::new(&[]).meters();
    assert_eq!(names(&meters), Vec::<&str>::new());
    assert_eq!(meters.listed().len(), 5, "every kind is listed");
    let (measurement, _) = Recorder::start(meters).stop();
    assert_eq!((measurement.meters.len(), measurement.sum_joules()), (0, None));
    let because = measurement.nothing_because.unwrap();
    let missing = because.unusable.iter().map(|it| (it.meter.as_str(), &it.reason));
    let library = "libnvidia-ml.so.1".to_owned();
    let expected = [
        ("rapl", &MeterError::NoRapl),
        ("perf", &MeterError::NoPerformanceEvents),
        ("nvml", &MeterError::NoLibrary { library }),
        ("hwmon", &MeterError::NoSensor),
        ("battery", &MeterError::NoBattery),
    ];
    assert_eq!(missing.collect::<Vec<_>>(), expected);
    let because = because.to_string();
    assert!(because.starts_with("no energy meter works on this machine (rapl: "), "{because}");
}

/// The interval is what lies between start and stop, whether or not there is a meter.
#[test]
fn an_interval_lasts_until_it_is_stopped() {
    for files in [Vec::new(), powercap_files()] {
        let recorder = Recorder::start(Tree::new(&files).meters());
        let inside = monotonic_ns();
        while monotonic_ns() < inside + 1_000_000 {
            std::thread::yield_now();
        }
        let lasted = monotonic_ns() - inside;
        let (measurement, _) = recorder.stop();
        assert!(measurement.seconds >= lasted as f64 / 1e9, "{measurement:?}");
    }
}

#[test]
fn nvml_is_asked_only_when_it_is_there() {
    // Whatever this machine has, it must answer without a panic.
    if let Err(unusable) = Nvml::load() {
        assert!(!unusable.reason.to_string().is_empty());
    }
    let meters = Meters::find(machine(
        Path::new("/nowhere"),
        FakeCounters::at(0),
        Some(FakeGpus::new(0, None)),
    ));
    let library = "NVML".to_owned();
    assert_eq!(why(&meters, "nvml").reason, MeterError::NoBoard { library });
}

#[test]
fn two_intervals_add_up_and_a_failure_in_either_remains() {
    let measured = |joules: Option<f64>| Measurement {
        seconds: 2.0,
        meters: vec![Measured {
            meter: "rapl:package-0".to_owned(),
            scope: Scope::Package,
            covers: Coverage::Package,
            joules,
            failure: joules.is_none().then_some(MeterError::NoAnswer),
            readings: 3,
            utilisation: None,
        }],
        nothing_because: None,
    };
    let sum = measured(Some(1.5)).and(measured(Some(2.0)));
    assert_eq!((sum.seconds, sum.sum_joules(), sum.meters[0].readings), (4.0, Some(3.5), 6));
    for (one, two) in [(None, Some(1.0)), (Some(1.0), None)] {
        let sum = measured(one).and(measured(two));
        assert_eq!(sum.sum_joules(), None);
        assert_eq!(sum.meters[0].failure, Some(MeterError::NoAnswer));
    }
    let mut other = measured(Some(1.0));
    other.meters.clear();
    let sum = measured(Some(1.0)).and(other);
    assert_eq!(sum.meters[0].joules, None);
    assert_eq!(sum.meters[0].failure, Some(MeterError::NotInEveryPart));
}
