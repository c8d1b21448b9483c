//! User errors: one message that names the file, the position and the remedy; exit code 1.

use super::jobs::{SAMPLES, job};
use super::support::{finish, packed, pictures, program, run};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

fn refused_job(folder: &Path, text: &str, words: &[&str]) {
    std::fs::write(folder.join("job.toml"), text).unwrap();
    run(folder, &["run", "job.toml"]).refused(words);
}

#[test]
fn sources_that_cannot_be_packed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    run(folder.path(), &["pack", "missing", "x.set"]).refused(&["missing"]);
    run(folder.path(), &["pack", "empty", "x.set"]).refused(&["empty"]);
    pictures(folder.path(), 4);
    std::fs::write(folder.path().join("pictures/cat/broken.jpg"), b"\xff\xd8\xffnot").unwrap();
    run(folder.path(), &["pack", "pictures", "x.set"]).refused(&["broken.jpg", "--on-error skip"]);
    assert!(!folder.path().join("x.set").exists(), "a refused pack leaves nothing");
    let skipped = run(folder.path(), &["pack", "pictures", "x.set", "--on-error", "skip"]);
    let skipped = skipped.success();
    let said = format!("{}{}", skipped.stdout, skipped.stderr);
    assert!(said.contains("broken.jpg"), "{said}");
    run(folder.path(), &["pack", "pictures", "x.set", "--on-error", "skip"])
        .refused(&["x.set", "--force"]);
    run(folder.path(), &["pack", "pictures", "x.set", "--on-error", "skip", "--force"]).success();
    run(folder.path(), &["verify", "x.set"]).success();
}

/// An animated WebP whose only frame is said to be of 1x1 pixels and has alpha for one, while its
/// colours are of 2x2: the crate image-webp 0.2.4 then indexes beyond its buffers and panics.
const PANICS: &[u8] = b"RIFF\x66\0\0\0WEBP\
    VP8X\x0a\0\0\0\x12\0\0\0\0\0\0\0\0\0\
    ANIM\x06\0\0\0\0\0\0\0\0\0\
    ANMF\x3a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x64\0\0\0\
    ALPH\x02\0\0\0\0\xff\
    VP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x02\0\x02\0\
    \x07\x40\x96\x25\xa4\0\x03\x70\0\xfe\xdf\x56\0\0";

#[test]
fn a_picture_whose_decoder_panics_is_a_damaged_sample_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    pictures(folder.path(), 4);
    std::fs::write(folder.path().join("pictures/cat/panics.webp"), PANICS).unwrap();
    let pack = ["pack", "pictures", "small.set", "--force", "--check"];
    let with = |further: &[&str]| run(folder.path(), &[&pack[..], further].concat());
    with(&["decode"]).refused(&["panics.webp", "--on-error skip"]);
    let skipped = with(&["decode", "--on-error", "skip", "--json"]).success();
    assert!(!skipped.stderr.contains("defect"), "{}", skipped.stderr);
    let document: serde_json::Value = serde_json::from_str(&skipped.stdout).unwrap();
    assert_eq!(document["samples"], 4, "{document}");
    // Packed by its header alone, it is damaged where it is decoded: by a host, by a device, shown.
    with(&["header"]).success();
    for strategy in ["host-only", "device-only"] {
        refused_job(folder.path(), &job(strategy, 0, ""), &["panics.webp"]);
    }
    run(folder.path(), &["show", "small.set", "cat/panics.webp", "-o", "x.png"])
        .refused(&["panics.webp"]);
    let deep = run(folder.path(), &["verify", "small.set", "--deep"]);
    assert_eq!(deep.code(), Some(1), "{deep:?}");
    assert!(deep.stdout.contains("panics.webp"), "{deep:?}");
}

#[test]
fn damaged_datasets_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let set = packed(folder.path(), SAMPLES);
    let part = set.join("part-00000.arrow");
    let whole = std::fs::read(&part).unwrap();
    for share in [0, 1, 3, 7] {
        std::fs::write(&part, &whole[..whole.len() * share / 8]).unwrap();
        run(folder.path(), &["inspect", "small.set"]).refused(&["part-00000.arrow"]);
        refused_job(folder.path(), &job("host-only", 0, ""), &["part-00000.arrow"]);
    }
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    std::fs::write(&part, &flipped).unwrap();
    let verified = run(folder.path(), &["verify", "small.set"]);
    assert_eq!(verified.code(), Some(1));
    for word in ["part-00000.arrow", "row ", "key ", "DAMAGED"] {
        assert!(verified.stdout.contains(word), "{verified:?}");
    }
    refused_job(folder.path(), &job("host-only", 0, ""), &["part-00000.arrow", "key"]);
    std::fs::write(&part, &whole).unwrap();
    let manifest = std::fs::read_to_string(set.join("dataset.json")).unwrap();
    std::fs::write(set.join("dataset.json"), manifest.replace("48", "47")).unwrap();
    run(folder.path(), &["inspect", "small.set"]).refused(&["dataset.json"]);
    std::fs::write(set.join("dataset.json"), "{").unwrap();
    run(folder.path(), &["inspect", "small.set"]).refused(&["dataset.json"]);
    std::fs::remove_file(set.join("dataset.json")).unwrap();
    run(folder.path(), &["inspect", "small.set"]).refused(&["dataset.json"]);
}

/// The error of `inspect --json` on a dataset.
fn inspected(folder: &Path) -> serde_json::Value {
    let refused = run(folder, &["inspect", "small.set", "--json"]).refused(&["dataset.json"]);
    let document: serde_json::Value = serde_json::from_str(&refused.stdout).unwrap();
    document["error"].clone()
}

#[test]
fn every_damage_of_a_manifest_has_a_cause_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = packed(folder.path(), SAMPLES).join("dataset.json");
    let whole = std::fs::read(&path).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    // A bit in the middle, in the first brace, and one that makes a byte no UTF-8.
    let flipped = |at: usize, bit: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= bit;
        bytes
    };
    let damages = [
        (flipped(whole.len() / 2, 1), "manifest"),
        (flipped(0, 1), "manifest"),
        (flipped(whole.len() / 2, 0x80), "manifest"),
        (whole[..whole.len() / 2].to_vec(), "manifest"),
        (Vec::new(), "manifest"),
        (text.replace("meetpoint-dataset", "other").into_bytes(), "manifest"),
        (text.replace("\"version\": 3", "\"version\": 1").into_bytes(), "dataset_version"),
        (text.replace("\"version\": 3", "\"version\": 4").into_bytes(), "dataset_version"),
    ];
    for (bytes, cause) in damages {
        std::fs::write(&path, &bytes).unwrap();
        let error = inspected(folder.path());
        assert_eq!(error["cause"], cause, "{error}");
        assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    let error = inspected(folder.path());
    assert_eq!(error["cause"], "not_a_dataset", "{error}");
    assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{error}");
    std::fs::create_dir(&path).unwrap();
    let error = inspected(folder.path());
    assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{error}");
    // The remedy of a damaged manifest is followed: it rebuilds the dataset.
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, flipped(whole.len() / 2, 1)).unwrap();
    run(folder.path(), &["dataset", "repair", "small.set", "repaired.set"]).success();
    run(folder.path(), &["verify", "repaired.set"]).success();
}

/// The decoder of a container may panic on such bytes: that is reported as damage of the file, not
/// as a defect of the program.
#[test]
fn a_container_whose_decoder_panics_is_reported_as_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let golden = "../datasets/tests/golden/sources/tables/arrow/stream.arrow";
    let mut bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(golden)).unwrap();
    for (at, byte) in [(1391, 69), (576, 121), (2504, 115), (1700, 194)] {
        bytes[at] = byte;
    }
    std::fs::write(folder.path().join("damaged.arrow"), bytes).unwrap();
    let refused = run(folder.path(), &["pack", "damaged.arrow", "x.set"]);
    assert!(!refused.stderr.contains("defect"), "{refused:?}");
    refused.refused(&["damaged.arrow", "fetch it again"]);
}

#[test]
fn invalid_jobs_are_refused_with_position_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let good = job("wrr", 0, "");
    let change = |from: &str, to: &str, words: &[&str]| {
        assert!(good.contains(from), "{from}");
        refused_job(folder.path(), &good.replace(from, to), words);
    };
    change("batch_size = 4", "batch_size = 0", &["batch_size", "job.toml:2:"]);
    change("batch_size = 4", "batch_size = 4000000000", &["batch_size"]);
    change("batch_size = 4", "batchsize = 4", &["batchsize", "batch_size", "job.toml:2:"]);
    change("batch_size = 4", "batch_size = 64\ndrop_last = true", &["64", "48"]);
    change("\"wrr\"", "\"fastest\"", &["fastest", "wrr"]);
    change("workers = 0", "workers = -1", &["workers", "job.toml:5:"]);
    change("workers = 0", "workers = 100000", &["workers"]);
    change("name = \"decode\"", "name = \"decod\"", &["decod", "decode", "job.toml:"]);
    change("size = 48", "size = 0", &["size", "job.toml:"]);
    change("dataset = \"small.set\"", "dataset = \"absent.set\"", &["absent.set"]);
    change("step = \"20ms\"", "step = \"20\"", &["step", "job.toml:"]);
    change("allow_shared = true", "cpu_ratio = 1.5", &["cpu_ratio", "job.toml:"]);
    change("seed = 7", "seed = 7\nmemory_budget = \"1KiB\"", &["budget"]);
    change(
        "kind = \"emulated\"\nallow_shared = true",
        "kind = \"connect\"\nsocket = \"none.sock\"",
        &["none.sock"],
    );
    std::fs::write(
        folder.path().join("job.toml"),
        good.replace("allow_shared = true", "faults = [\"explode@1\"]"),
    )
    .unwrap();
    let refused = run(folder.path(), &["run", "job.toml"]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.stderr.contains("explode") && refused.stderr.contains("die@N"), "{refused:?}");
    refused_job(folder.path(), "dataset = [", &["job.toml:1:"]);
    run(folder.path(), &["run", "absent.toml"]).refused(&["absent.toml"]);
}

#[test]
fn values_that_dataset_or_machine_do_not_allow_are_refused_with_position_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let good = job("wrr", 0, "");
    let change = |from: &str, to: &str, words: &[&str]| {
        assert!(good.contains(from), "{from}");
        refused_job(folder.path(), &good.replace(from, to), words);
    };
    change("\"small.set\"", "\"absent.set\"", &["job.toml:1:11: ", "absent.set", "meetpoint pack"]);
    change("\"small.set\"", "\".\"", &["job.toml:1:11: ", "dataset.json", "meetpoint pack"]);
    change("batch_size = 4", "batch_size = 64", &["job.toml:2:14: ", "64", "at most 48"]);
    change(
        "seed = 7",
        "seed = 7\nhost_cores = [0, 1000]",
        &["job.toml:4:18: ", "name one of the cores 0"],
    );
    change(
        "seed = 7",
        "seed = 7\ncolumns = [\"image\", \"lable\"]",
        &["job.toml:4:21: ", "\"lable\"", "did you mean \"label\"?"],
    );
    change(
        "seed = 7",
        "seed = 7\nsampler = { name = \"indices\", indices = [48] }",
        &["job.toml:4:", "sample 48 at position 0", "from 0 to 47"],
    );
    std::fs::write(folder.path().join("job.toml"), &good).unwrap();
    let needs = run(folder.path(), &["run", "job.toml", "--sampler", "weighted"]);
    needs.refused(&["--sampler weighted", "`weights`", "[sampler]"]);
    let device = |line: &str, words: &[&str]| {
        change("allow_shared = true", &format!("allow_shared = true\n{line}"), words);
    };
    device("core = 1000", &["job.toml:19:8: ", "`device.core`", "name one of the cores 0"]);
    device("faults = [\"die@3\", \"melt@2\"]", &["job.toml:19:20: ", "melt@2", "die@N"]);
    device("cpu_ratio = 1e-12", &["job.toml:19:13: ", "`device.cpu_ratio`", "0.001 to 1"]);
    device("latency = \"90s\"", &["job.toml:19:11: ", "`device.latency`", "at most 1s"]);
    device("[mte]\nsplit = 13", &["job.toml:20:9: ", "13", "at most 12", "equal-finish"]);
    change(
        "seed = 7",
        "seed = 7\nmemory_budget = \"900TiB\"",
        &["job.toml:4:17: ", "900 TiB", "of memory"],
    );
    change("seed = 7", "seed = 7\nmemory_budget = \"1KiB\"", &["job.toml:4:17: ", "or more"]);
    device("[spool]\nquota = \"900TiB\"", &["job.toml:20:9: ", "900 TiB", "of memory"]);
    device("[spool]\nquota = \"1KiB\"", &["job.toml:20:9: ", "or more"]);
    device(
        "[spool]\nkind = \"file\"\ndirectory = \"absent\"",
        &["job.toml:21:13: ", "absent is not a folder", "can be written"],
    );
    // A size above the free space is reported with both values; what is needed still fits.
    let file =
        "allow_shared = true\n[spool]\nkind = \"file\"\ndirectory = \".\"\nquota = \"900TiB\"";
    std::fs::write(folder.path().join("job.toml"), good.replace("allow_shared = true", file))
        .unwrap();
    let done = run(folder.path(), &["run", "job.toml"]).success();
    assert!(done.stderr.contains("900 TiB") && done.stderr.contains("are free in"), "{done:?}");
}

#[test]
fn too_little_address_space_is_refused_with_the_setting_to_change() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let text = job("host-only", 0, "").replace("seed = 7", "seed = 7\nmemory_budget = \"1GiB\"");
    std::fs::write(folder.path().join("job.toml"), text).unwrap();
    let script = format!("ulimit -v 1000000; exec {} run job.toml", program().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder.path()).env("NO_COLOR", "1");
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let done = finish(shell.spawn().unwrap());
    done.refused(&[
        "job.toml:4:17: ",
        "failed to reserve 1022 MiB for batches",
        "memory_budget",
        "ulimit -v",
    ]);
}

#[test]
fn a_socket_of_another_program_is_no_device_and_a_silent_one_a_lost_device() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let connect = |socket: &str| {
        let text = job("wrr", 0, "").replace(
            "kind = \"emulated\"\nallow_shared = true",
            &format!("kind = \"connect\"\nsocket = \"{socket}\""),
        );
        std::fs::write(folder.path().join("job.toml"), text).unwrap();
        run(folder.path(), &["run", "job.toml"])
    };
    connect("job.toml").refused(&["it is a file, not a socket", "correct the path"]);
    connect("small.set").refused(&["it is a folder, not a socket", "correct the path"]);
    let probe = run(folder.path(), &["device", "probe"]);
    assert!(probe.code() == Some(2) && probe.stderr.contains("--socket"), "{probe:?}");
    let probe = run(folder.path(), &["device", "probe", "--socket", "absent.sock"]);
    probe.refused(&["no such socket", "--socket absent.sock --root FOLDER"]);
    let web = UnixListener::bind(folder.path().join("web.sock")).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = web.accept().unwrap();
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        // Held open until the other side has disconnected.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let words = ["is not a device", "does not speak the device link"];
    let refused = connect("web.sock").refused(&words);
    assert!(!refused.stderr.contains("h2"), "{refused:?}");
    server.join().unwrap();
    let _silent = UnixListener::bind(folder.path().join("silent.sock")).unwrap();
    let done = connect("silent.sock").success();
    for words in ["was lost at the start: no device responds at ", "did not respond within 5s"] {
        assert!(done.stderr.contains(words), "{done:?}");
    }
}

#[test]
fn a_recipe_that_cannot_follow_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = "[[operation]]\nname = \"normalize\"\nmean = [0, 0, 0]\nstd = [1, 1, 1]\n";
    std::fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    run(folder.path(), &["recipe", "check", "recipe.toml"]).refused(&[
        "recipe.toml",
        "normalize",
        "decode",
        "line",
    ]);
    let recipe = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\n\
                  size = [60000, 60000]\n";
    std::fs::write(folder.path().join("recipe.toml"), recipe).unwrap();
    run(folder.path(), &["recipe", "check", "recipe.toml"]).refused(&[
        "line 5, column 8",
        "3600000000 pixels",
        "at most 268435456",
    ]);
}

#[test]
fn a_device_refuses_what_it_was_not_started_for() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let arguments =
        ["device", "serve", "--socket", "d.sock", "--root", "elsewhere", "--allow-shared"];
    let mut device = super::support::command(folder.path(), &arguments).spawn().unwrap();
    let socket = folder.path().join("d.sock");
    let up = super::support::until(super::support::PATIENCE, || socket.exists());
    let text = job("wrr", 0, "").replace(
        "kind = \"emulated\"\nallow_shared = true",
        "kind = \"connect\"\nsocket = \"d.sock\"",
    );
    std::fs::write(folder.path().join("job.toml"), text).unwrap();
    let outcome = run(folder.path(), &["run", "job.toml"]);
    device.kill().unwrap();
    device.wait().unwrap();
    assert!(up, "the device comes up");
    outcome.refused(&["small.set", "--root"]);
}

/// Text that a terminal would interpret, and that would forge a line of a log.
const ACTIVE: &str = "no\u{1b}[2J\u{9b}31m\u{7}\nnote: forged";

#[test]
fn control_characters_in_paths_and_arguments_reach_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    packed(folder.path(), SAMPLES);
    let extents = ["--extents", ACTIVE, "--block", "small.set/dataset.json"];
    let keys = ["--ca", ACTIVE, "--cert", ACTIVE, "--key", ACTIVE];
    let token = ["--root", "a=small.set", "--token-file", ACTIVE];
    let network = ["device", "serve", "--listen", "tcp://127.0.0.1:0"];
    for arguments in [
        &["device", "serve", "--socket", "s", "--root", ACTIVE][..],
        &["device", "serve", "--socket", ACTIVE, "--root", ACTIVE],
        &[&["device", "serve", "--socket", "s"], &extents[..]].concat(),
        &[&network[..], &["--root", "a=small.set"], &keys[..]].concat(),
        &[&network[..], &token[..]].concat(),
        &["device", "probe", "--socket", ACTIVE],
        &["device", "keys", &format!("small.set/dataset.json/{ACTIVE}"), "--client", "c"],
        &["inspect", ACTIVE],
        &["pack", ACTIVE, "x.set"],
        &["run", ACTIVE],
        &["simulate", ACTIVE],
        &["shards", "commit", ACTIVE],
        &["dataset", "extents", ACTIVE],
        &["recipe", "show", ACTIVE],
        &["run", "job.toml", "--strategy", ACTIVE],
        &["fly", ACTIVE],
    ] {
        let done = run(folder.path(), arguments);
        assert!(!done.status.success(), "{arguments:?}");
        let said = format!("{}{}", done.stdout, done.stderr);
        let is_active = |it: char| it.is_control() && it != '\n';
        assert!(!said.contains(is_active), "{arguments:?}: {said:?}");
        // An error of usage quotes the value with its line breaks.
        let is_usage = done.code() == Some(2);
        assert!(is_usage || !said.lines().any(|it| it.starts_with("note: forged")), "{said}");
    }
}

#[test]
fn wrong_usage_is_exit_code_two() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["pack"][..],
        &["fly"],
        &["run", "job.toml", "--strategy", "fastest"],
        &["device", "calibrate", "--time", "0s"],
        &["simulate", "--study", "hosts", "--hosts", "1,8,1"],
        &["agent", "--listen", "tcp://127.0.0.1:0", "--root", "a=.", "--idle-timeout", "0ms"],
    ] {
        assert_eq!(run(folder.path(), arguments).code(), Some(2), "{arguments:?}");
    }
    assert_eq!(run(folder.path(), &["--help"]).code(), Some(0));
}
