//! Job files: all keys, and every error with file, line, column, key and remedy.

mod devices;
mod gpu;
mod refusals;

use meetpoint_diagnose::{Diagnose, Surface};
use meetpoint_format::column::Collate;
use meetpoint_format::sampler::{Sampler, Sequential, Shuffled};
use meetpoint_host::job::{Choice, JobError, JobFile};
use meetpoint_host::{
    AcceleratorJob, Action, DeviceJob, DeviceKind, DeviceSource, Emulation, OnError, Replacements,
    ServeCommand, SpoolKind, StopHandle, StrategyName, StrategyOptions, Targets,
};
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
