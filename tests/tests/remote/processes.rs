//! Processes of a host that share the cache of a dataset at a URL, are killed, or fill its disk.

use crate::support::{ProcessOutput, long_pictures, pack_here, program, run};
use crate::web::Web;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Samples of about 40 KB.
const SAMPLES: u32 = 240;
/// A cache of about a half of the dataset: what three readers may need at once, and a little more.
const SMALL: &str = "8MiB";
/// A cache of the whole dataset.
const LARGE: &str = "64MiB";

const JOB: &str = "dataset = \"here.set\"
batch_size = 8
workers = 2
epochs = 1
shuffle = false
verify = false
strategy = \"host-only\"
[[recipe.operation]]
name = \"decode\"
[[recipe.operation]]
name = \"center_crop\"
size = 16
";

/// A server with a dataset that is also in a local folder.
struct Given {
    folder: tempfile::TempDir,
    web: Web,
    /// Bytes of its parts.
    bytes: u64,
    parts: u64,
}

impl Given {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pictures = long_pictures(&folder.path().join("photos"), SAMPLES);
        pack_here(folder.path(), &pictures, "here.set", &["--part-size", "1MiB"]);
        std::fs::write(folder.path().join("job.toml"), JOB).unwrap();
        std::fs::write(folder.path().join("ranks.toml"), format!("ranks = 2\n{JOB}")).unwrap();
        let web = Web::start();
        web.put_all("/there.set", &folder.path().join("here.set"));
        let files = std::fs::read_dir(folder.path().join("here.set")).unwrap().flatten();
        let parts = files.filter(|it| it.path().extension().is_some_and(|end| end == "arrow"));
        let lengths: Vec<u64> = parts.map(|it| it.metadata().unwrap().len()).collect();
        let (bytes, parts) = (lengths.iter().sum(), lengths.len() as u64);
        Self { folder, web, bytes, parts }
    }

    fn url(&self) -> String {
        format!("{}/there.set", self.web.url)
    }

    /// A run from the server, with a folder for its cache; `name` is that of report and ledger.
    fn command(&self, job: &str, cache: &str, size: &str, name: &str) -> Command {
        let (url, ledger) = (self.url(), format!("{name}.jsonl"));
        let more = ["--cache-dir", cache, "--cache-size", size];
        let result = ["--report", name, "--ledger", &ledger];
        let arguments = [&["run", job, "--dataset", &url], &more[..], &result].concat();
        program(self.folder.path(), &arguments)
    }

    /// The lines of a ledger: each consumed batch with a checksum of every sample.
    fn ledger(&self, name: &str) -> Vec<String> {
        let path = self.folder.path().join(format!("{name}.jsonl"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The ledger of a run from the folder of this machine.
    fn ledger_here(&self) -> Vec<String> {
        let arguments = ["run", "job.toml", "--report", "here", "--ledger", "here.jsonl"];
        run(program(self.folder.path(), &arguments)).success();
        self.ledger("here")
    }

    fn run(&self, cache: &str, size: &str, report: &str) -> ProcessOutput {
        run(self.command("job.toml", cache, size, report))
    }

    /// The first epoch of a report.
    fn epoch(&self, report: &str) -> serde_json::Value {
        let path = self.folder.path().join(report).join("report.json");
        let text = std::fs::read_to_string(path).unwrap();
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        report["runs"][0]["epochs"][0].clone()
    }

    /// The server stops answering once it has sent half of the dataset.
    fn hold_in_an_epoch(&self) {
        let mut state = self.web.state();
        (state.sent, state.hold_after) = (0, Some(self.bytes / 2));
    }

    /// Starts a run, and waits until it has consumed some of its batches.
    fn begun(&self, cache: &str, size: &str, name: &str, batches: usize) -> Child {
        let child = self.command("job.toml", cache, size, name).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.ledger(name).len() < batches {
            assert!(Instant::now() < deadline, "it consumes batches");
            std::thread::yield_now();
        }
        child
    }

    /// Bytes that the blocks of a cache take on the drive.
    fn allocated(&self, cache: &str) -> u64 {
        let entries = walkdir::WalkDir::new(self.folder.path().join(cache)).into_iter().flatten();
        let blocks = entries.filter(|entry| entry.file_name() == "blocks");
        blocks.map(|entry| entry.metadata().unwrap().blocks() * 512).sum()
    }

    /// What opening the dataset a number of times fetches: manifests and ends of parts.
    fn opening(&self, times: u64) -> u64 {
        let manifest = self.folder.path().join("here.set/dataset.json");
        times * (manifest.metadata().unwrap().len() + self.parts * (16 << 10))
    }
}

/// Kills a run, which must not have ended.
fn kill(mut child: Child) {
    assert!(child.try_wait().unwrap().is_none(), "it ended before");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A figure of the store in an epoch.
fn store(epoch: &serde_json::Value, name: &str) -> u64 {
    epoch["store"][name].as_u64().unwrap()
}

#[test]
fn a_run_that_is_killed_in_an_epoch_leaves_whole_blocks_that_the_next_one_uses() {
    let given = Given::new();
    let here = given.ledger_here();
    given.run("cold", SMALL, "cold").success();
    given.hold_in_an_epoch();
    kill(given.begun("cache", SMALL, "killed", here.len() / 6));
    given.web.state().hold_after = None;
    given.run("cache", SMALL, "again").success();
    // Every sample has the bytes of the dataset, those that the killed process fetched included.
    assert_eq!(given.ledger("killed"), here[..given.ledger("killed").len()]);
    assert_eq!((given.ledger("cold"), given.ledger("again")), (here.clone(), here));
    let [cold, again] = ["cold", "again"].map(|name| given.epoch(name));
    assert_eq!(store(&again, "refetched_bytes"), 0, "a block that was not whole was used");
    let [fetched_cold, fetched_again] = [&cold, &again].map(|epoch| store(epoch, "fetched_bytes"));
    assert!(
        fetched_again + given.bytes / 16 < fetched_cold,
        "{fetched_again} of {fetched_cold} bytes, although blocks were in the cache"
    );
    assert!(given.allocated("cache") <= 8 << 20);
    let caches = std::fs::read_dir(given.folder.path().join("cache")).unwrap().flatten();
    let folders = caches.filter(|entry| entry.path().is_dir()).count();
    assert_eq!(folders, 1, "the next run uses the same folder");
}

#[test]
fn a_process_that_is_killed_does_not_stop_the_others_that_share_its_cache() {
    let given = Given::new();
    let here = given.ledger_here();
    given.hold_in_an_epoch();
    let killed = given.begun("cache", SMALL, "killed", 1);
    let mut other = given.begun("cache", SMALL, "other", 1);
    kill(killed);
    given.web.state().hold_after = None;
    assert!(other.wait().unwrap().success());
    assert_eq!(given.ledger("other"), here);
    assert_eq!(store(&given.epoch("other"), "refetched_bytes"), 0);
    assert!(given.allocated("cache") <= 8 << 20);
}

#[test]
fn processes_and_ranks_of_a_host_fetch_a_dataset_once_together() {
    let given = Given::new();
    given.web.state().sent = 0;
    let runs = ["one", "two"]
        .map(|report| given.command("job.toml", "cache", LARGE, report).spawn().unwrap());
    for mut child in runs {
        assert!(child.wait().unwrap().success());
    }
    // Each of them opens the dataset for its check of the job and for the run.
    let limit = given.bytes * 11 / 10 + given.opening(4);
    let sent = given.web.state().sent;
    assert!(sent <= limit, "two processes: {sent} of {limit}");
    given.web.state().sent = 0;
    run(given.command("ranks.toml", "other", LARGE, "ranks")).success();
    let (sent, limit) = (given.web.state().sent, given.bytes * 11 / 10 + given.opening(3));
    assert!(sent <= limit, "two ranks: {sent} of {limit}");
}

#[test]
fn a_full_disk_of_the_cache_is_an_error_that_names_the_file_and_the_remedy() {
    let given = Given::new();
    std::fs::create_dir(given.folder.path().join("full")).unwrap();
    let command = given.command("job.toml", "full", LARGE, "full-report");
    // A file system of 3 MiB that only this process and its children see.
    let mut confined = Command::new("unshare");
    let script = "mount -t tmpfs -o size=3m,mode=0700 none full || exit 99; exec \"$@\"";
    confined.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    confined.arg(command.get_program()).args(command.get_args());
    confined.current_dir(given.folder.path()).env("NO_COLOR", "1");
    let probe = Command::new("unshare").args(["--map-root-user", "--mount", "true"]).output();
    let is_allowed = probe.is_ok_and(|output| output.status.success());
    let said = is_allowed.then(|| run(confined)).filter(|said| said.code != Some(99));
    let Some(said) = said else {
        println!("SKIP: mount namespaces are not allowed here");
        return;
    };
    said.refused(&["full/store-", "blocks", "--cache-size"]);
    // With space, the same run succeeds.
    given.run("cache", LARGE, "space").success();
}
