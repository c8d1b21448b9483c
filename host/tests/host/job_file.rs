//! Job files: all keys, and every error with file, line, column, key and remedy.

use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::column::Collate;
use meetpoint_format::sampler::{Sampler, Sequential, Shuffled};
use meetpoint_host::job::{Choice, JobError, JobFile};
use meetpoint_host::{
    AcceleratorJob, Action, DeviceJob, DeviceKind, DeviceSource, Emulation, GpuDecode, GpuIndex,
    OnError, RemoteAddress, RemoteDevice, Replacements, ServeCommand, SpoolKind, StopHandle,
    StrategyName, StrategyOptions, Targets,
};
use meetpoint_link::tls::TlsFiles;
use meetpoint_prepare::gpu::ShareChoice;
use meetpoint_scheduler::{AnyStrategy, Auto, Goal, Mte, Order, Split, Tail, Windowed, Wrr};
use meetpoint_storage::EngineKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const RECIPE: &str = "
[[recipe.operation]]
name = \"decode\"

[[recipe.operation]]
name = \"random_resized_crop\"
size = 224
scale = [
    0.25, # at least a quarter
    1.0,
]
";

fn parse(text: &str) -> Result<JobFile, JobError> {
    JobFile::parse(text, Path::new("jobs/job.toml"))
}

/// A job with a valid recipe after these lines.
fn fault(lines: &str) -> JobError {
    parse(&format!("{lines}\n{RECIPE}")).expect_err("these lines are at fault")
}

fn place_and_text(lines: &str) -> (Option<(usize, usize)>, String) {
    let error = fault(lines);
    (error.place, error.in_full(Surface::CommandLine))
}

#[test]
fn a_short_job_gets_the_documented_defaults() {
    let job = parse(&format!("dataset = \"set\"\nbatch_size = 64\n{RECIPE}")).unwrap();
    assert_eq!(job.dataset, "jobs/set".into());
    assert_eq!((job.batch_size, job.epochs, job.seed), (64, 1, 0));
    assert_eq!(job.sampler, Sampler::from(Shuffled));
    assert!(!job.drop_last && job.verify);
    assert_eq!((job.strategy, job.options), (StrategyName::HostOnly, StrategyOptions::default()));
    assert_eq!((job.replay.len(), job.ranks, job.choice), (0, 1, Choice::Tail));
    assert!(!job.run_ahead && !job.reuse && !job.shared);
    assert_eq!((job.workers, job.prefetch, job.read_depth), (0, 2, 32));
    assert_eq!(job.memory_budget_bytes, 512 << 20);
    assert_eq!(job.engine, EngineKind::Auto);
    assert_eq!(job.stall_timeout, Duration::from_secs(2));
    assert_eq!(job.devices, []);
    assert_eq!((&job.spool.kind, job.spool.quota_bytes), (&SpoolKind::Memory, 256 << 20));
    assert_eq!(job.accelerator, AcceleratorJob::Null);
    assert_eq!(job.recipe.operations().len(), 2);
}

#[test]
fn a_full_job_says_everything() {
    let text = format!(
        "description = \"both ends\"\ndataset = \"/data/set\"\nbatch_size = 32\nepochs = 3\n\
         seed = 18446744073709551615\nshuffle = false\ndrop_last = true\nstrategy = \"mte\"\n\
         workers = 2\nprefetch = 4\nmemory_budget = \"1.5GiB\"\nengine = \"threads\"\n\
         read_depth = 8\nstall_timeout = \"500ms\"\nprofile_batches = 5\nhost_cores = [0, 2]\n\
         verify = false\non_error = \"replace\"\nmax_errors = 9\nquarantine = \"bad.jsonl\"\n\
         [mte]\nsplit = 7\ntail = \"ascending\"\n\
         [device]\nkind = \"emulated\"\ncpu_ratio = 0.5\nread_bandwidth = \"500MB/s\"\n\
         write_bandwidth = \"1GB/s\"\nlatency = \"100us\"\ncore = 1\nallow_shared = true\n\
         faults = [\"die@3\", \"stall@5:2s\"]\n\
         [spool]\nkind = \"file\"\ndirectory = \"spool\"\nquota = \"64MiB\"\n\
         [accelerator]\nkind = \"emulated\"\nstep = \"20ms\"\n{RECIPE}"
    );
    let job = parse(&text).unwrap();
    let mte = AnyStrategy::Mte(Mte { split: Split::Fixed(7), tail: Tail::Ascending });
    assert_eq!((job.strategy, job.strategy(job.strategy)), (StrategyName::Mte, mte));
    assert_eq!(job.strategy(StrategyName::Wrr), AnyStrategy::Wrr(Wrr));
    let targets = Targets {
        cpu_ratio: Some(0.5),
        read_bytes_per_second: Some(500_000_000),
        write_bytes_per_second: Some(1_000_000_000),
        latency_ns: Some(100_000),
        core: Some(1),
    };
    let emulated = ServeCommand {
        emulation: Emulation { targets, allow_shared: true, memory_bytes_max: None },
        faults: ["die@3", "stall@5:2s"].map(|fault| fault.parse().unwrap()).to_vec(),
        engine: None,
    };
    let table = "device".to_owned();
    let device = DeviceJob { table, kind: DeviceKind::Emulated(emulated), parts: None };
    assert_eq!(job.devices, [device]);
    assert_eq!(job.spool.kind, SpoolKind::File { directory: "jobs/spool".into() });
    assert_eq!(job.accelerator, AcceleratorJob::Emulated { step: Duration::from_millis(20) });
    let source = DeviceSource::Connect { socket: "s".into() };
    let config = job.loader_config(job.strategy, vec![source.clone()], StopHandle::new());
    assert_eq!(config.dataset, "/data/set".into());
    assert_eq!((config.workers, config.prefetch, config.read_depth), (2, 4, 8));
    assert_eq!(config.memory_budget_bytes, 3 << 29);
    assert_eq!(config.seed, u64::MAX);
    assert_eq!((config.devices, config.host_cores), (vec![source], Some(vec![0, 2])));
    assert_eq!(config.sampler, Sampler::from(Sequential));
    assert!(config.drop_last && !config.verify_samples);
    assert!(matches!(config.on_error, OnError::Always(Action::Replace)));
    assert_eq!((config.errors_max, config.quarantine), (Some(9), Some("jobs/bad.jsonl".into())));
}

#[test]
fn a_device_makes_wrr_the_default() {
    let text = format!("dataset = \"s\"\nbatch_size = 1\n[device]\n{RECIPE}");
    assert_eq!(parse(&text).unwrap().strategy, StrategyName::Wrr);
}

/// A job with a device, these lines before its tables and those after them.
fn with(lines: &str, tables: &str) -> Result<JobFile, JobError> {
    parse(&format!("dataset = \"s\"\nbatch_size = 1\n{lines}\n[device]\n{tables}\n{RECIPE}"))
}

#[test]
fn a_job_names_any_strategy_and_sets_any_of_its_options() {
    let tables = "[mte]\nsplit = \"optimal\"\n[windowed]\nwindow = 8\n[auto]\n\
                  goal = {time = 0.7}\norder = \"replayable\"\n";
    let goal = Goal::Mix { time_weight_ppm: 700_000 };
    let options = StrategyOptions::default()
        .with(Mte { split: Split::Optimal, tail: Tail::Descending })
        .with(Windowed { window: 8 })
        .with(Auto { goal, order: Order::Replayable });
    for name in StrategyName::ALL {
        let job = with(&format!("strategy = \"{name}\""), tables).unwrap();
        assert_eq!((job.strategy, job.options), (name, options));
        assert_eq!(job.strategy(name), options.strategy(name));
    }
    let energy = with("strategy = \"auto\"", "[auto]\ngoal = \"energy\"").unwrap();
    let goal = Auto { goal: Goal::Energy, ..Auto::default() };
    assert_eq!(energy.strategy(StrategyName::Auto), goal.into());
}

#[test]
fn every_value_that_an_option_declares_can_be_written() {
    for name in StrategyName::ALL {
        for (spec, default) in name.options() {
            let words = spec.takes.words.iter().map(|word| format!("{word:?}"));
            let numbers =
                spec.takes.whole.iter().flat_map(|whole| {
                    [whole.range.start().to_string(), whole.range.end().to_string()]
                });
            let shares = spec.takes.share.iter().map(|share| format!("{{{} = 0.25}}", share.key));
            let mut seen = Vec::new();
            for text in words.chain(numbers).chain(shares) {
                let table = format!("[{name}]\n{} = {text}", spec.name);
                let strategy = with("", &table).unwrap().strategy(name);
                let found = strategy.options().into_iter().find(|(it, _)| *it == spec);
                seen.push(found.map(|(_, value)| value).expect("it has the option"));
            }
            let distinct = (1..seen.len()).all(|at| !seen[..at].contains(&seen[at]));
            assert!(seen.len() > 1 && distinct, "{name}.{}: {seen:?}", spec.name);
            let absent = with("", &format!("[{name}]")).unwrap().strategy(name);
            assert!(absent.options().contains(&(spec, default)), "{name}.{}", spec.name);
        }
    }
}

#[test]
fn a_job_without_a_device_runs_with_devices_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    let load = |lines: &str, devices| {
        std::fs::write(&path, format!("dataset = \"s\"\nbatch_size = 1\n{lines}\n{RECIPE}"))
            .unwrap();
        JobFile::load_for(&path, Replacements { devices, ..Replacements::default() })
    };
    let device = || vec![DeviceKind::Connect { socket: "d.sock".into() }];
    let job = load("strategy = \"device-only\"", device()).unwrap();
    assert_eq!(job.strategy, StrategyName::DeviceOnly);
    assert_eq!(job.devices[0].kind, device()[0]);
    assert_eq!(load("", device()).unwrap().strategy, StrategyName::Wrr);
    assert_eq!(load("", Vec::new()).unwrap().strategy, StrategyName::HostOnly);
    load("strategy = \"device-only\"", Vec::new()).unwrap_err();
    // Another strategy may need none.
    std::fs::write(&path, format!("dataset = \"s\"\nbatch_size = 1\nstrategy = \"wrr\"\n{RECIPE}"))
        .unwrap();
    let replaced = Replacements { has_strategies: true, ..Replacements::default() };
    JobFile::load_for(&path, replaced).unwrap();
}

#[test]
fn a_replaced_recipe_and_dataset_may_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    let load = |text: &str, replacements| {
        std::fs::write(&path, text).unwrap();
        JobFile::load_for(&path, replacements)
    };
    let recipe = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{RECIPE}")).unwrap().recipe;
    let replaced = Replacements {
        recipe: Some(Arc::clone(&recipe)),
        dataset: Some(PathBuf::from("other").into()),
        ..Replacements::default()
    };
    for text in ["batch_size = 1", "batch_size = 1\ndataset = \"s\"\nrecipe = \"no-such\""] {
        let job = load(text, replaced.clone()).unwrap();
        assert_eq!(job.recipe, recipe);
        assert_eq!(job.dataset.as_slice(), [PathBuf::from("other")]);
    }
    load("batch_size = 1", Replacements::default()).unwrap_err();
}

#[test]
fn operations_at_the_top_of_a_job_are_to_be_moved_below_its_recipe() {
    let remedy = |text: &str| {
        let error = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{text}")).unwrap_err();
        error.remedy.spelled(Surface::CommandLine)
    };
    let operation = "[[operation]]\nname = \"decode\"";
    assert_eq!(remedy(operation), "write [[recipe.operation]]");
    assert_ne!(remedy(&format!("recipe = \"r.toml\"\n{operation}")), remedy(operation));
}

#[test]
fn a_misspelled_strategy_has_a_suggestion() {
    let remedy = fault("dataset = \"s\"\nbatch_size = 1\nstrategy = \"wr\"").remedy;
    let remedy = remedy.spelled(Surface::CommandLine);
    assert!(remedy.starts_with("set `strategy` to \"wrr\", or another one of "), "{remedy}");
}

#[test]
fn only_auto_and_the_host_alone_do_without_a_device() {
    for name in StrategyName::ALL {
        let lines = format!("dataset = \"s\"\nbatch_size = 1\nstrategy = \"{name}\"");
        match parse(&format!("{lines}\n{RECIPE}")) {
            Ok(job) => assert!(!name.needs_device(), "{:?}", job.strategy),
            Err(error) => {
                assert!(name.needs_device());
                assert!(error.to_string().contains("needs a device"), "{error}");
                assert_eq!(error.place, Some((3, 12)));
            }
        }
    }
}

#[test]
fn a_record_brings_its_strategy_and_one_may_stand_for_each_epoch() {
    let job = with("replay = \"mte:812\"", "").unwrap();
    assert_eq!((job.strategy, job.replay.len()), (StrategyName::Mte, 1));
    let job = with("replay = [\"mte-feedback:4\", \"mte-feedback:5\"]", "").unwrap();
    assert_eq!(job.strategy, StrategyName::MteFeedback);
    let texts: Vec<String> = job.replay.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["mte-feedback:4", "mte-feedback:5"]);
    for (lines, place, words) in [
        ("replay = \"mte:few\"", (3, 10), "not a record"),
        ("replay = 812", (3, 10), "such as \"mte:812\""),
        ("replay = []", (3, 10), "one for each epoch"),
        ("replay = [\"mte:1\", \"wrr-frozen:1,2\"]", (3, 10), "mixes records"),
        ("replay = \"mte:1\"\nstrategy = \"wrr\"", (3, 10), "leave `strategy` out"),
    ] {
        let error = with(lines, "").unwrap_err();
        assert_eq!(error.place, Some(place), "{error}");
        let text = error.in_full(Surface::CommandLine);
        assert!(text.contains(words), "{words} in {text}");
    }
}

#[test]
fn several_devices_come_from_a_count_or_from_tables_of_their_own() {
    let job = with("shared = true", "count = 3\ncpu_ratio = 0.5").unwrap();
    assert!(job.shared);
    assert_eq!(job.devices.len(), 3);
    assert!(job.devices.iter().all(|device| *device == job.devices[0]));
    let tables = "[[device]]\nparts = [0, 2]\nfaults = [\"die@2\"]\n[[device]]\n\
                  kind = \"connect\"\nsocket = \"d.sock\"\nparts = [1]\n";
    let text = format!("dataset = \"s\"\nbatch_size = 1\n{tables}{RECIPE}");
    let job = parse(&text).unwrap();
    assert_eq!(job.devices[0].parts, Some(vec![0, 2]));
    assert_eq!(job.devices[0].table, "device[0]");
    assert_eq!(job.devices[1].kind, DeviceKind::Connect { socket: "jobs/d.sock".into() });
    assert_eq!(job.devices[1].parts, Some(vec![1]));
}

#[test]
fn devices_that_contradict_each_other_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    for (tables, place, words) in [
        ("[device]\ncount = 0", (4, 9), "from 1 to 64"),
        ("[device]\ncount = 2\ncore = 1", (5, 8), "`core` applies to one device"),
        ("[device]\ncount = 2\nparts = [0]", (5, 9), "a [[device]] table for each"),
        ("[device]\nkind = \"connect\"\ncount = 2", (5, 1), "unknown key `device.count`"),
        ("[device]\nparts = []", (4, 9), "`device.parts`"),
        ("[[device]]\n[[device]]\nratio = 1", (5, 1), "unknown key `device[1].ratio`"),
        ("[[device]]\n[[device]]\ncpu_ratio = 2", (5, 13), "`device[1].cpu_ratio`"),
        ("[[device]]\nparts = [0]\n[[device]]", (3, 1), "1 of 2 devices name"),
        ("[[device]]\nparts = [0]\n[[device]]\nparts = [0]", (3, 1), "part 0 is named twice"),
        ("device = [1]", (3, 11), "two brackets"),
        ("device = \"csd:7000\"", (3, 10), "tcp://HOST:PORT"),
        ("[device]\nkind = \"connect\"\naddress = \"csd\"", (5, 11), "begin with tcp://"),
        (
            "[device]\nkind = \"connect\"\naddress = \"tcp://csd:7\"\nsocket = \"s\"",
            (6, 1),
            "unknown key `device.socket`",
        ),
        ("[device]\nkeys = \"k\"", (4, 1), "unknown key `device.keys`"),
    ] {
        let (found, text) = place_and_text(&format!("{lines}{tables}"));
        assert!(text.contains(words), "{words} in {text}");
        assert_eq!(found, Some(place), "{text}");
    }
}

#[test]
fn devices_on_other_machines_are_named_by_address_and_certificates() {
    let remote = |device: &str| {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n{device}\n{RECIPE}");
        let job = parse(&text)?;
        match job.devices[0].kind.clone() {
            DeviceKind::Remote(device) => Ok::<_, JobError>(*device),
            kind => panic!("{kind:?}"),
        }
    };
    let address = "kind = \"connect\"\naddress = \"tcp://csd:7\"";
    let files = |ca: &str, cert: &str, key: &str| TlsFiles {
        ca: Path::new("jobs").join(ca),
        cert: Path::new("jobs").join(cert),
        key: Path::new("jobs").join(key),
        crl: None,
    };
    let bare = |address: &str| RemoteDevice::new(address.parse::<RemoteAddress>().unwrap());
    assert_eq!(remote("device = \"tcp://csd:7\"").unwrap(), bare("tcp://csd:7"));
    assert_eq!(remote(&format!("[device]\n{address}")).unwrap(), bare("tcp://csd:7"));
    for file in ["device = \"file:a\"", "[device]\nkind = \"connect\"\naddress = \"file:a\""] {
        assert_eq!(remote(file).unwrap(), bare("file:jobs/a"));
    }
    let keys = files("k/ca.pem", "k/client.pem", "k/client.key");
    for (more, tls) in [
        ("keys = \"k\"", keys.clone()),
        ("keys = \"k\"\ncert = \"c\"", TlsFiles { cert: "jobs/c".into(), ..keys }),
        ("ca = \"a\"\ncert = \"c\"\nkey = \"d\"", files("a", "c", "d")),
    ] {
        let device = remote(&format!("[device]\n{address}\n{more}")).unwrap();
        assert_eq!(device.tls, Some(tls), "{more}");
    }
    let rest = "server_name = \"n\"\ntoken_file = \"t\"\nroot = \"r\"";
    let device = remote(&format!("[device]\n{address}\n{rest}")).unwrap();
    assert_eq!((device.server_name.as_deref(), device.root.as_deref()), (Some("n"), Some("r")));
    assert_eq!(device.token_file.as_deref(), Some(Path::new("jobs/t")));
    let missing = remote(&format!("[device]\n{address}\nca = \"a\"")).unwrap_err();
    assert!(missing.to_string().contains("`device.cert` is missing"), "{missing}");
}

#[test]
fn options_of_strategies_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    for (rest, place, words) in [
        ("strategy = \"fastest\"", (3, 12), "\"mte-feedback\""),
        ("ranks = 0", (3, 9), "from 1 to 1024"),
        ("choice = \"cheapest\"", (3, 10), "\"tail\", \"saving\""),
        ("run_ahead = 1", (3, 13), "true or false"),
        ("[mte]\nsplit = \"best\"", (4, 9), "\"optimal\""),
        ("[windowed]\nwindow = 0", (4, 10), "from 1 to"),
        ("[auto]\ngoal = \"speed\"", (4, 8), "\"energy\""),
        ("[auto]\ngoal = {time = 1.5}", (4, 16), "`auto.goal.time`"),
        ("[auto]\ngoal = {weight = 1}", (4, 9), "unknown key `auto.goal.weight`"),
        ("[auto]\norder = \"mine\"", (4, 9), "\"replayable\""),
    ] {
        let (found, text) = place_and_text(&format!("{lines}{rest}"));
        assert!(text.contains(words), "{words} in {text}");
        assert_eq!(found, Some(place), "{text}");
    }
}

#[test]
fn keys_that_do_not_go_together_are_refused_where_they_stand() {
    let lines = "dataset = \"s\"\nbatch_size = 1\n";
    let rest = "shared = true\n[[device]]\nparts = [0]";
    let job = parse(&format!("{lines}{rest}\n{RECIPE}")).unwrap();
    let text = job.check().unwrap_err().in_full(Surface::CommandLine);
    assert!(text.contains("every device has every part"), "{text}");
    assert!(text.contains(":5:9: "), "{text}");
}

#[test]
fn unknown_keys_are_refused_where_they_stand() {
    let (place, text) = place_and_text("dataset = \"s\"\nbatch_size = 1\nbatchsize = 2");
    assert_eq!(place, Some((3, 1)));
    assert!(text.starts_with("jobs/job.toml:3:1: unknown key `batchsize`"), "{text}");
    let (place, text) = place_and_text("dataset=\"s\"\nbatch_size=1\n[device]\n  ratio = 1");
    assert_eq!(place, Some((4, 3)));
    assert!(text.contains("unknown key `device.ratio`") && text.contains("cpu_ratio"), "{text}");
    let lines = "dataset=\"s\"\nbatch_size=1\n[device]\nkind=\"connect\"\ncpu_ratio=1";
    assert!(place_and_text(lines).1.contains("unknown key `device.cpu_ratio`"));
}

#[test]
fn missing_keys_are_named_with_what_they_take() {
    assert!(fault("batch_size = 1").to_string().contains("the key `dataset` is missing"));
    assert!(fault("dataset = \"s\"").to_string().contains("the key `batch_size` is missing"));
    let error =
        parse("dataset = \"s\"\nbatch_size = 1\n").unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("the key `recipe` is missing"), "{error}");
    let lines = "dataset=\"s\"\nbatch_size=1\n[spool]\nkind=\"file\"";
    let (place, text) = place_and_text(lines);
    assert_eq!(place, Some((3, 1)));
    assert!(text.contains("the key `spool.directory` is missing"), "{text}");
}

#[test]
fn numbers_are_whole_or_not_and_of_either_sign() {
    for (fill, expected) in [("-1", -1.0), ("-0.5", -0.5), ("0x10", 16.0), ("+2", 2.0)] {
        let collate = format!("[collate]\nmode = \"pad\"\nfill = {fill}");
        let job = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{collate}\n{RECIPE}"));
        let Collate::Pad(pad) = job.unwrap().columns.collate() else {
            panic!("{fill} is of a padded job")
        };
        assert_eq!(pad.fill, expected, "{fill}");
    }
}

#[test]
fn values_of_the_wrong_kind_or_range_are_refused_where_they_stand() {
    let cases = [
        ("batch_size = 0", "a whole number from 1 to"),
        ("batch_size = -3", "a whole number from 1 to"),
        ("batch_size = \"many\"", "holds the text \"many\""),
        ("batch_size = 1\nepochs = 0", "a whole number from 1 to"),
        ("batch_size = 1\nshuffle = 1", "true or false"),
        ("batch_size = 1\nmemory_budget = 512", "such as \"512MiB\""),
        ("batch_size = 1\nmemory_budget = \"512\"", "such as \"512MiB\""),
        ("batch_size = 1\nstrategy = \"fastest\"", "one of \"host-only\""),
        ("batch_size = 1\nstall_timeout = \"0s\"", "a time above 0"),
        ("batch_size = 1\nhost_cores = []", "an empty list, and the host needs a core"),
        ("batch_size = 1\nhost_cores = [0, -1]", "a list of core numbers"),
        ("batch_size = 1\nengine = \"fast\"", "one of \"auto\""),
        ("batch_size = 1\ngpu_decode = \"tpu\"", "such as \"cuda:0\""),
        ("batch_size = 1\ngpu_decode = 0", "such as \"cuda:0\""),
        ("batch_size = 1\n[device]\ncpu_ratio = 0.0", "above 0 and at most 1"),
        ("batch_size = 1\n[device]\ncpu_ratio = nan", "above 0 and at most 1"),
        ("batch_size = 1\n[device]\nlatency = 5", "such as \"100us\""),
        ("batch_size = 1\n[device]\nread_bandwidth = \"0MB/s\"", "such as \"500MB/s\""),
        ("batch_size = 1\n[device]\nfaults = \"die@3\"", "a list of faults"),
        ("batch_size = 1\n[accelerator]\nstep = 20", "such as \"100us\""),
        ("batch_size = 1\n[accelerator]\nkind = \"gpu\"", "one of \"emulated\""),
        ("batch_size = 1\n[mte]\nsplit = \"half\"", "equal-finish"),
        ("batch_size = 1\n[collate]\nmode = \"pad\"\nfill = nan", "to a finite number"),
        ("batch_size = 1\ndevice = 3", "a table: [device]"),
    ];
    let of_a_gpu = ["1.5", "\"half\""].map(|share| {
        let lines = format!("batch_size = 1\ngpu_decode = \"cuda:0\"\ngpu_share = {share}");
        (lines, "\"auto\" or a number from 0 to 1")
    });
    // Without CUDA, the GPU is refused first.
    let of_a_gpu = of_a_gpu.into_iter().filter(|_| cfg!(feature = "cuda"));
    let cases = cases.map(|(lines, expected)| (lines.to_owned(), expected)).into_iter();
    for (lines, expected) in cases.chain(of_a_gpu) {
        let (place, text) = place_and_text(&format!("dataset = \"s\"\n{lines}"));
        assert!(text.contains(expected), "{lines}: {text}");
        let value_line = 1 + lines.lines().count();
        assert_eq!(place.map(|(line, _)| line), Some(value_line), "{lines}: {text}");
    }
}

#[test]
fn a_gpu_needs_a_build_that_can_use_one_and_a_share_needs_a_gpu() {
    for key in ["gpu_share = 0.5", "gpu_memory = \"1GiB\"", "gpu_share = 7"] {
        let (place, text) = place_and_text(&format!("dataset = \"s\"\nbatch_size = 1\n{key}"));
        assert_eq!(place.map(|(line, _)| line), Some(3), "{text}");
        let name = key.split(' ').next().unwrap();
        assert!(text.contains(&format!("`{name}` is set, but `gpu_decode` is not")), "{text}");
        assert!(text.contains("set gpu_decode"), "{text}");
    }
    let wrong = "dataset = \"s\"\nbatch_size = 1\ngpu_share = 7\ngpu_decode = \"tpu\"";
    assert_eq!(place_and_text(wrong).0, Some((4, 14)), "the first key is named first");
    let lines = "dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"";
    for (line, share) in [
        ("", ShareChoice::Measured),
        ("\ngpu_share = \"auto\"", ShareChoice::Measured),
        ("\ngpu_share = 0.25", ShareChoice::Fixed(0.25)),
        ("\ngpu_share = 1", ShareChoice::Fixed(1.0)),
    ] {
        let job = parse(&format!("{lines}{line}\n{RECIPE}"));
        if cfg!(feature = "cuda") {
            let job = job.unwrap();
            assert_eq!(job.gpu_decode, Some(GpuDecode { share, ..GpuDecode::new(GpuIndex(1)) }));
            let config = job.loader_config(job.strategy, Vec::new(), StopHandle::new());
            assert_eq!(config.gpu_decode, job.gpu_decode);
        } else {
            let error = job.unwrap_err();
            assert_eq!(error.place, Some((3, 14)));
            let text = error.in_full(Surface::CommandLine);
            assert!(text.contains("without the feature `cuda`"), "{text}");
            assert!(text.contains("--features full"), "{text}");
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn the_memory_of_a_gpu_must_be_useful_and_its_page_locked_part_must_fit() {
    let job = |memory: &str| {
        let head = "dataset = \"s\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"";
        parse(&format!("{head}\ngpu_memory = \"{memory}\"\n{RECIPE}"))
    };
    assert_eq!(job("2GiB").unwrap().gpu_decode.unwrap().memory_bytes, Some(2 << 30));
    let small = job("1MiB").unwrap_err();
    assert_eq!(small.place, Some((4, 14)));
    assert!(small.in_full(Surface::CommandLine).contains("64 MiB"), "{small:?}");
    let folder = crate::support::dataset(4);
    let text = format!(
        "dataset = \"{}\"\nbatch_size = 1\ngpu_decode = \"cuda:1\"\n\
         gpu_memory = \"8000000GiB\"\n{RECIPE}",
        folder.path().display()
    );
    // An eighth of it is more than any machine has.
    let large = parse(&text).unwrap().check().unwrap_err();
    let meetpoint_host::Error::Job(large) = large else { panic!("{large:?}") };
    assert_eq!(large.place, Some((4, 14)), "{large:?}");
}

#[test]
fn a_strategy_that_needs_a_device_says_so() {
    let (place, text) = place_and_text("dataset=\"s\"\nbatch_size=1\nstrategy = \"wrr\"");
    assert_eq!(place, Some((3, 12)));
    assert!(text.contains("needs a device") && text.contains("[device]"), "{text}");
}

#[test]
fn text_that_is_not_toml_is_refused_where_it_breaks() {
    let error = parse("dataset = \"s\"\nbatch_size = = 1\n").unwrap_err();
    assert_eq!(error.place.map(|(line, _)| line), Some(2), "{error}");
    for cut in 0..RECIPE.len() {
        if RECIPE.is_char_boundary(cut) {
            // A complete or truncated text is read or refused, and never panics.
            let _ = parse(&format!("dataset = \"s\"\nbatch_size = 1\n{}", &RECIPE[..cut]));
        }
    }
}

#[test]
fn targets_of_the_recipe_of_a_job_are_read_and_their_faults_have_positions_in_the_job() {
    let job = |targets: &str| {
        let recipe = "[[recipe.operation]]\nname = \"decode\"\n\
                      [[recipe.operation]]\nname = \"center_crop\"\nsize = 8\n";
        parse(&format!("dataset = \"s\"\nbatch_size = 1\n{recipe}{targets}"))
    };
    let read = job("[recipe.targets.mask]\nkind = \"mask\"\nfill = 255\n").unwrap();
    let targets = read.recipe.targets();
    assert_eq!((targets.len(), &targets[0].column[..]), (1, "mask"));
    for (targets, place) in [
        ("[recipe.targets.mask]\nkind = \"mask\"\n  fil = 1\n", (10, 3)),
        ("[recipe.targets.\"two words\"]\nkind = \"boxes\"\nformat = \"xyxyr\"\n", (10, 10)),
        ("[recipe]\ntargets = 3\n", (9, 11)),
    ] {
        assert_eq!(job(targets).unwrap_err().place, Some(place), "{targets}");
    }
}

#[test]
fn a_fault_in_the_recipe_of_a_job_has_its_position_in_the_job() {
    let job = |recipe: &str| {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n{recipe}");
        let error = parse(&text).unwrap_err();
        (error.place, error.in_full(Surface::CommandLine))
    };
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n\n\
                             [[recipe.operation]]\nname = \"center_crop\"\n  sice = 3\n");
    assert_eq!(place, Some((8, 3)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n\
                             [[recipe.operation]]\nname = \"center_crop\"\nsize = 0\n");
    assert_eq!(place, Some((7, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decoder\"\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    assert!(text.starts_with("jobs/job.toml:4:8:"), "{text}");
    let (place, text) = job("[[recipe.operation]]\nsize = 3\n");
    assert_eq!(place, Some((3, 1)), "{text}");
    let (_, text) = job("[recipe]\nsteps = 3\n");
    assert!(text.contains("unknown key `recipe.steps`"), "{text}");
    let (_, text) = job("[recipe.operation]\nname = \"decode\"\n");
    assert!(text.contains("[[recipe.operation]]"), "{text}");
    let (_, text) = job("[recipe]\n");
    assert!(text.contains("jobs/job.toml"), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"\"\"\nde\\\"code\u{e9}\"\"\"\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = \"decode\"\n[[recipe.operation]]\n\
                             name = \"center_crop\"\nsize = [ # pixels\n  99999999999999999999,\n\
                             0x1_0,\n]\n");
    assert_eq!(place, Some((7, 8)), "{text}");
    let (place, text) = job("[[recipe.operation]]\nname = { \"a b\" = 1979-05-27 }\n");
    assert_eq!(place, Some((4, 8)), "{text}");
    let (_, text) = job("recipe = 3\n");
    assert!(text.contains("path of a recipe file"), "{text}");
}

#[test]
fn a_recipe_file_is_found_beside_the_job_and_its_faults_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let job = folder.path().join("job.toml");
    std::fs::write(&job, "dataset = \"set\"\nbatch_size = 2\nrecipe = \"r.toml\"\n").unwrap();
    let error = JobFile::load(&job).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("job.toml:3:10") && error.contains("r.toml"), "{error}");
    std::fs::write(folder.path().join("r.toml"), "[[operation]]\nname = \"encode\"\n").unwrap();
    let error = JobFile::load(&job).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("r.toml:2:8"), "{error}");
    let good =
        "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"center_crop\"\nsize = 8\n";
    std::fs::write(folder.path().join("r.toml"), good).unwrap();
    let job = JobFile::load(&job).unwrap();
    assert_eq!(job.dataset, folder.path().join("set").into());
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let error =
        JobFile::load(Path::new("/no/such/job.toml")).unwrap_err().in_full(Surface::CommandLine);
    assert!(error.contains("/no/such/job.toml: failed to read"), "{error}");
}

#[test]
fn what_a_device_would_refuse_is_refused_with_its_position() {
    for (lines, words) in [
        ("faults = [\"die@1\", \"melt@3\"]", ["job.toml:4:20: ", "melt@3", "die@N"]),
        ("cpu_ratio = 1e-9", ["job.toml:4:13: ", "`device.cpu_ratio`", "0.001 to 1"]),
        ("latency = \"2s\"", ["job.toml:4:11: ", "`device.latency` is 2s", "at most 1s"]),
        ("count = 2\ncpu_ratio = 1e-9", ["job.toml:5:13: ", "cpu_ratio", "0.001 to 1"]),
    ] {
        let text = format!("dataset = \"s\"\nbatch_size = 1\n[device]\n{lines}\n{RECIPE}");
        let refusal =
            JobFile::parse(&text, Path::new("job.toml")).unwrap_err().in_full(Surface::CommandLine);
        for word in words {
            assert!(refusal.contains(word), "{word} in {refusal}");
        }
    }
}

#[test]
fn the_remedy_for_reuse_fits_the_sampler() {
    let remedy = |keys: &str, tables: &str| {
        let lines = format!("dataset = \"set\"\nbatch_size = 4\nreuse = true\n{keys}\n{tables}");
        let error = parse(&format!("{lines}\n{RECIPE}")).unwrap().check().unwrap_err();
        let text = error.in_full(Surface::CommandLine);
        assert!(text.contains("retains batches for the next epoch"), "{text}");
        ["sampler = \"sequential\"", "shuffle = false in [sampler]", "shuffle = false"]
            .into_iter()
            .find(|setting| text.contains(setting))
    };
    let of_filter = "[sampler]\nname = \"filter\"\nwhere = \"label == 1\"";
    let of_weighted = "[sampler]\nname = \"weighted\"\nweights = \"weight\"";
    assert_eq!(remedy("", ""), Some("shuffle = false"));
    assert_eq!(remedy("sampler = \"shuffled\"", ""), Some("sampler = \"sequential\""));
    assert_eq!(remedy("", of_filter), Some("shuffle = false in [sampler]"));
    assert_eq!(remedy("", of_weighted), None);
    assert_eq!(remedy("sampler = \"repeated\"", ""), None);
}
