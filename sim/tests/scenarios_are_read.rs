//! Scenarios are read like job files: every error names its key and the expected value.

use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_scheduler::{AnyStrategy, Split};
use meetpoint_sim::scenario::{Distribution, Scenario, ScenarioError, Span, StrategyName, points};

const WHOLE: &str = r#"
description = "all keys"
batches = 1000
epochs = 2
strategy = "mte-feedback"
stall_timeout = "10s"
stalls_max = 3
profile_batches = 3
learn = true
holders = "interleaved"
serve = "all-ranks"

[mte]
split = "optimal"
tail = "ascending"

[windowed]
window = 32

[auto]
goal = { time = 0.7 }
order = "replayable"

[power]
base_w = 150.0
host_core_w = 8
device_w = 4.5

[profile]
known = true
device_factor = 0.5

[host]
workers = 4
prefetch = 2
preparation = { kind = "lognormal", mean = "700ms", sigma = 0.3 }
efficiency = 0.9
cores = 8
copy = "2ms"

[[devices]]
count = 2
preparation = "2s"
spool_slots = 64
ahead = 4
cores = 16
link_bandwidth = "3125MB/s"
time_to_failure = "600min"
time_to_restart = "30s"
latency = "100us"
drive_bandwidth = "2GB/s"
faults = ["slow@40:x4", "stall@5s:2s"]

[[devices]]
preparation = { kind = "burst", base = "3s", every = "60s", lasting = "5s", factor = 4.0 }

[storage]
read_bytes = "28MB"
batch_bytes = "38MB"
spool_read_bandwidth = "3GB/s"
latency = "80us"
overlap = true

[accelerator]
step = { kind = "trace", values = ["280ms", "300ms"] }
direct_read = "3ms"
fetch_ahead = 4

[ranks]
count = 2
collective = true
cost = "100us"
timeout = "30s"
faults = ["late@1:2s"]

[hosts]
count = 3
together = false
link_bandwidth = "3125MB/s"
time_to_failure = "1440min"
time_to_restart = "3min"

[network]
core_bandwidth = "400GB/s"

[stores]
count = 2
bandwidth = "10GB/s"
latency = "30ms"
requests = 4
requests_per_second = 5500
backoff = "50ms"
backoff_max = "10s"

[cache]
bytes = "500GB"
first_hit_rate = 0.1
bandwidth = "6GB/s"

[[sweep]]
parameter = "devices.0.count"
values = [1, 2, 4]
"#;

const SMALL: &str = r#"
batches = 10
[host]
preparation = "700ms"
[[devices]]
preparation = "2s"
[accelerator]
step = "300ms"
"#;

fn refused(text: &str) -> ScenarioError {
    match Scenario::from_toml(text) {
        Err(error) => error,
        Ok(scenario) => scenario.check().expect_err("it is wrong"),
    }
}

#[test]
fn errors_do_not_contain_the_names_of_types() {
    let good = "batches = 10\n[host]\npreparation = \"1s\"\n[accelerator]\nstep = \"1s\"\n";
    for (from, to, problem, remedy) in [
        ("batches = 10", "batches = -1", "is -1", "a whole number from 0 to 4294967295"),
        ("batches = 10", "batches = 1e300", "is 1e300", "a whole number from 0 to 4294967295"),
        ("batches = 10", "batches = 10\nstrategy = 5", "is 5", "one of \"host-only\""),
        ("batches = 10", "batches = 10\nchoice = 5", "is not a name", "a name in quotes"),
        ("batches = 10", "batches = 10\nlearn = 3", "is 3", "true or false"),
        ("batches = 10", "batches = 10\nstorage = 3", "is 3", "a table"),
        ("\"1s\"\n[acc", "true\n[acc", "is true", "a time such as \"20ms\""),
        ("[host]", "[auto]\ngoal = \"x\"\n[host]", "is \"x\"", "\"throughput\", \"energy\""),
        ("[host]", "[auto]\ngoal = { time = \"x\" }\n[host]", "is \"x\"", "a number"),
        ("[host]", "[auto]\ngoal = { time = 1.5 }\n[host]", "is 1.5", "a number from 0 to 1"),
        ("[host]", "[windowed]\nwindow = 0\n[host]", "is 0", "a whole number from 1 to"),
        ("[host]", "[mte]\ntail = 3\n[host]", "is 3", "one of \"descending\""),
        ("[host]", "mte = 3\n[host]", "is 3", "a table with the options of mte"),
    ] {
        let text = good.replacen(from, to, 1);
        let error = Scenario::from_toml(&text).unwrap_err();
        assert_eq!(error.problem, problem, "{to}");
        assert!(error.remedy.starts_with(remedy), "{to}: {}", error.remedy);
    }
}

#[test]
fn every_key_is_read() {
    let scenario = Scenario::from_toml(WHOLE).unwrap();
    scenario.check().unwrap();
    assert_eq!(scenario.strategy, StrategyName::MteFeedback);
    let AnyStrategy::Mte(mte) = scenario.options.strategy(StrategyName::Mte) else { panic!() };
    assert_eq!(mte.split, Split::Optimal);
    assert_eq!((scenario.device_count(), scenario.host_ahead()), (3, 8));
    assert_eq!(scenario.devices[1].preparation.mean_ns(), 3e9 * 1.25);
    assert_eq!(scenario.sweep[0].values.len(), 3);
}

#[test]
fn little_is_required() {
    let scenario = Scenario::from_toml(SMALL).unwrap();
    scenario.check().unwrap();
    assert_eq!(scenario.strategy, StrategyName::Wrr);
    assert_eq!(scenario.host.preparation, Distribution::Constant(Span(700_000_000)));
}

#[test]
fn a_fault_names_position_key_and_remedy() {
    let with =
        |from: &str, to: &str| refused(&SMALL.replace(from, to)).in_full(Surface::CommandLine);
    for (from, to, wanted) in [
        ("\"700ms\"", "0.7", &["4:15", "`host.preparation`", "a time such as"][..]),
        ("\"700ms\"", "\"0.7\"", &["4:15", "a time with a unit"]),
        ("[host]", "[hoist]", &["3:2", "`hoist`", "`hosts`", "`mte`"]),
        ("[host]", "[wrr]\n[host]", &["3:2", "`wrr`", "`windowed`"]),
        ("\"300ms\"", "\"300ms\"\n[mte]\nsplat = 1", &["10:1", "`mte.splat`", "`split`"]),
        ("batches = 10", "batches = 0", &["`batches`", "is 0", "from 1"]),
        ("batches = 10", "strategy = \"wr\"\nbatches = 10", &["2:12", "wr", "host-only"]),
        ("\"2s\"", "\"2s\"\nfaults = [\"die@0\"]", &["7:10", "die@WHEN"]),
        ("\"2s\"", "\"2s\"\nspool_slots = 0", &["`devices.0.spool_slots`", "leave it out"]),
        ("\"300ms\"", "{ kind = \"normal\" }", &["8:17", "normal", "lognormal"]),
        ("\"300ms\"", "\"300ms\"\n[mte]\nsplit = \"half\"", &["10:9", "equal-finish"]),
        ("\"300ms\"", "\"300ms\"\n[mte]\nsplit = 11", &["`mte.split`", "at most `batches`"]),
    ] {
        let error = with(from, to);
        for part in wanted {
            assert!(error.contains(part), "{to}: {error} lacks {part}");
        }
    }
}

#[test]
fn a_sweep_is_every_combination_and_names_what_cannot_be() {
    let table: toml::Table = SMALL.parse().unwrap();
    let sweep = |parameter: &str, values: &str| {
        let text = format!("parameter = \"{parameter}\"\nvalues = {values}");
        toml::from_str(&text).unwrap()
    };
    let (workers, slower) =
        (sweep("host.workers", "[0, 4]"), sweep("devices.*.preparation", "['1s', '2s', '4s']"));
    let found = points(&table, &[workers, slower]).unwrap();
    assert_eq!(found.len(), 6);
    assert_eq!(found[4].settings[0], ("host.workers".to_owned(), "4".to_owned()));
    assert_eq!(found[4].settings[1].1, "2s");
    assert_eq!(found[4].scenario.devices[0].preparation.mean_ns(), 2e9);
    for (parameter, values, wanted) in [
        ("host.wrokers", "[1]", "wrokers"),
        ("devices.3.count", "[1]", "no element 3"),
        ("devices.0.count", "[]", "has no values"),
        ("batches", "['many']", "with batches = many"),
    ] {
        let error = points(&table, &[sweep(parameter, values)]).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn files_of_traces_are_filled_in_by_the_caller() {
    let text = SMALL.replace("\"2s\"", "{ kind = \"empirical\", file = \"t_s.txt\" }");
    let mut scenario = Scenario::from_toml(&text).unwrap();
    assert!(scenario.check().unwrap_err().to_string().contains("t_s.txt was not read"));
    let read = |name: &str| Ok::<_, ()>(vec![Span(name.len() as u64); 2]);
    scenario.fill_traces(read).unwrap();
    scenario.check().unwrap();
    assert_eq!(scenario.devices[0].preparation.mean_ns(), 7.0);
}

#[test]
fn hosts_stores_and_caches_that_contradict_each_other_are_refused() {
    let with = |added: &str| refused(&format!("{SMALL}{added}"));
    let base = "[storage]\nread_bytes = \"1MB\"\n";
    for (added, key) in [
        ("[hosts]\ncount = 0\n".to_owned(), "hosts.count"),
        ("[hosts]\ncount = 60000\n[ranks]\ncount = 8\n".to_owned(), "hosts.count"),
        ("[hosts]\ncount = 100\ntime_to_failure = \"2s\"\n".to_owned(), "hosts.time_to_failure"),
        ("[hosts]\ntime_to_failure = \"1500ms\"\n".to_owned(), "hosts.time_to_failure"),
        ("[cache]\nhit_rate = 0.5\n".to_owned(), "cache"),
        ("[stores]\n".to_owned(), "storage.read_bytes"),
        (format!("{base}[stores]\ncount = 0\n"), "stores.count"),
        (format!("{base}[stores]\nrequests_per_second = 0\n"), "stores.requests_per_second"),
        (format!("{base}[stores]\nbackoff = \"9s\"\n"), "stores.backoff_max"),
        (
            format!("{base}host_read_bandwidth = \"1GB/s\"\n[stores]\n"),
            "storage.host_read_bandwidth",
        ),
        (format!("{base}[stores]\n[cache]\nhit_rate = 1.5\n"), "cache.hit_rate"),
        (format!("{base}[stores]\n[cache]\nhit_rate = 1.0\nbytes = \"1GB\"\n"), "cache.bytes"),
        ("[network]\ncore = \"1GB/s\"\n".to_owned(), "network.core"),
    ] {
        let error = with(&added);
        assert_eq!(error.key, key, "{added}: {error}");
        assert!(!error.remedy.is_empty());
    }
    let many = SMALL.replace("batches = 10", "batches = 10\ndevices_per_rank = 2");
    assert_eq!(refused(&many).key, "devices_per_rank");
    let all = SMALL.replace("[[devices]]", "[[devices]]\ncount = 5000");
    assert_eq!(refused(&format!("{all}[hosts]\ncount = 1000\n")).key, "serve");
    let many = SMALL.replace("[host]\n", "[host]\nworkers = 60000\n");
    assert_eq!(refused(&format!("{many}[hosts]\ncount = 60000\n")).key, "host.workers");
}
