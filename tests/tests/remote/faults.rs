//! Servers that fail, disconnect, change files and stall: transfers resume, or fail with the URL.

use crate::support::{
    assert_cache_is_empty, assert_same, golden, pack_here, pictures, program, run,
};
use crate::web::{Fault, Web};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// A number of times that is never reached.
const ALWAYS: u32 = u32::MAX;

/// A server with a tar file, and the dataset that is packed from it.
fn with_shard(folder: &Path) -> Web {
    let web = Web::start();
    web.put("/d/a.tar", std::fs::read(golden("wds-000.tar")).unwrap());
    pack_here(folder, &golden("wds-000.tar"), "here.set", &[]);
    web
}

#[test]
fn a_server_that_fails_for_a_while_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    web.fault("/d/a.tar", Fault { status: Some((503, 3)), ..Fault::default() });
    web.pack(folder.path(), "/d/a.tar", "there.set", &[]).success();
    assert_same(folder.path(), "here.set", "there.set");
}

#[test]
fn a_server_that_always_fails_is_reported_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    web.fault("/d/a.tar", Fault { status: Some((500, ALWAYS)), ..Fault::default() });
    let url = format!("{}/d/a.tar", web.url);
    let further = ["--on-error", "skip"];
    let said = web.pack(folder.path(), "/d/a.tar", "there.set", &further);
    said.refused(&[&url, "HTTP status 500", "try again later"]);
    assert!(!folder.path().join("there.set").exists());
    assert_cache_is_empty(folder.path());
}

#[test]
fn convert_reports_what_could_not_be_fetched_and_blames_no_sample() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::start();
    web.put_all("/photos", &pictures(&folder.path().join("photos"), 6));
    let url = format!("{}/photos/", web.url);
    let convert = |to: &str| {
        let arguments = ["convert", &url, to, "--cache", "cache", "--to", "webdataset"];
        let skip = ["--on-error", "skip"];
        run(program(folder.path(), &[&arguments[..], &skip[..]].concat()))
    };
    web.fault("/photos/cat/2.jpg", Fault { status: Some((500, ALWAYS)), ..Fault::default() });
    let said = convert("there");
    assert!(!said.stderr.contains("convert"), "{}", said.stderr);
    said.refused(&[&format!("{url}cat/2.jpg"), "HTTP status 500", "try again later"]);
    assert!(!folder.path().join("there").exists());
    assert_cache_is_empty(folder.path());
    web.fault("/photos/cat/2.jpg", Fault::default());
    convert("there").success();
}

#[test]
fn a_transfer_that_is_cut_goes_on_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    web.fault("/d/a.tar", Fault { cut: Some((1000, 4)), ..Fault::default() });
    web.pack(folder.path(), "/d/a.tar", "there.set", &[]).success();
    assert_same(folder.path(), "here.set", "there.set");
    let ranges: Vec<_> =
        web.state().requests.iter().filter_map(|(_, _, range)| range.clone()).collect();
    let begins = |range: &&str| ranges.iter().any(|seen| seen.starts_with(range));
    assert!(["bytes=1000-", "bytes=4000-"].iter().all(begins), "{ranges:?}");
}

#[test]
fn a_server_without_parts_is_asked_for_all_of_it_again_but_not_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    web.give_no_parts();
    web.fault("/d/a.tar", Fault { cut: Some((1000, 1)), ..Fault::default() });
    web.pack(folder.path(), "/d/a.tar", "there.set", &[]).success();
    assert_same(folder.path(), "here.set", "there.set");
    web.fault("/d/a.tar", Fault { cut: Some((1000, ALWAYS)), ..Fault::default() });
    let said = web.pack(folder.path(), "/d/a.tar", "no.set", &[]);
    said.refused(&["/d/a.tar", "failed to read"]);
}

#[test]
fn an_object_that_changed_since_it_was_listed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::start();
    web.put_all("/photos", &pictures(&folder.path().join("photos"), 6));
    let path = "/photos/cat/2.jpg";
    web.fault(path, Fault { tag: Some(77), ..Fault::default() });
    let further = ["--on-error", "skip"];
    let said = web.pack(folder.path(), "/photos/", "there.set", &further);
    said.refused(&["/photos/cat/2.jpg changed", "ETag", "77"]);
    web.fault(path, Fault { status: Some((404, ALWAYS)), ..Fault::default() });
    let said = web.pack(folder.path(), "/photos/", "there.set", &further);
    said.refused(&["/photos/cat/2.jpg changed", "HTTP status 404", "no longer there"]);
    assert!(!folder.path().join("there.set").exists());
}

#[test]
fn a_folder_without_a_listing_and_a_missing_file_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    web.pack(folder.path(), "/d/b.tar", "no.set", &[]).refused(&["/d/b.tar", "HTTP status 404"]);
    web.pack(folder.path(), "/e/", "no.set", &[]).refused(&["/e/", "names nothing"]);
    let said = web.pack(folder.path(), "/d/a.tar?x=1", "no.set", &[]);
    said.refused(&["would not be sent"]);
}

#[test]
fn a_pack_goes_on_after_the_server_failed_unless_something_changed() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::start();
    let here = pictures(&folder.path().join("photos"), 40);
    web.put_all("/photos", &here);
    let options = ["--part-size", "8KiB", "--threads", "1", "--json"];
    pack_here(folder.path(), &here, "here.set", &options);
    let last = "/photos/großer Hund/39.jpg";
    let resume = [&options[..], &["--resume"]].concat();
    web.fault(last, Fault { status: Some((500, ALWAYS)), ..Fault::default() });
    let said = web.pack(folder.path(), "/photos/", "there.set", &resume);
    said.refused(&["39.jpg", "HTTP status 500", "--resume"]);

    web.fault(last, Fault::default());
    let first = "/photos/cat/0.jpg";
    let bytes = std::fs::read(here.join("cat/0.jpg")).unwrap();
    web.put(first, bytes.clone());
    let said = web.pack(folder.path(), "/photos/", "there.set", &resume);
    said.refused(&["cannot resume", "files of the source"]);

    // Unchanged, it is resumed; packed samples are not fetched again.
    web.state().requests.clear();
    web.remove(first);
    web.put(first, bytes);
    let said = web.pack(folder.path(), "/photos/", "there.set", &resume).success();
    let summary: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert!(summary["parts_resumed"].as_u64().unwrap() > 0, "{summary}");
    assert_same(folder.path(), "here.set", "there.set");
    let state = web.state();
    let is_first = |(method, path, _): &(String, String, _)| method == "GET" && path == first;
    assert!(!state.requests.iter().any(is_first));
}

/// Starts a pack whose only file is never sent.
fn stalled(folder: &Path, web: &Web) -> Child {
    web.fault("/d/a.tar", Fault { stalls: true, ..Fault::default() });
    web.state().requests.clear();
    let url = format!("{}/d/a.tar", web.url);
    let mut command = program(folder, &["pack", &url, "no.set", "--cache", "cache"]);
    command.stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let is_get = |(method, _, _): &(String, String, _)| method == "GET";
    while !web.state().requests.iter().any(is_get) {
        assert!(Instant::now() < deadline, "the file is never asked for");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_stalled_transfer_is_stopped_by_a_signal_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    let child = stalled(folder.path(), &web);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    assert_cache_is_empty(folder.path());
}

#[test]
fn what_a_killed_pack_had_fetched_is_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let web = with_shard(folder.path());
    let mut child = stalled(folder.path(), &web);
    child.kill().unwrap();
    child.wait().unwrap();
    let cache = folder.path().join("cache");
    assert!(std::fs::read_dir(&cache).unwrap().count() > 0);
    web.fault("/d/a.tar", Fault::default());
    web.pack(folder.path(), "/d/a.tar", "there.set", &[]).success();
    assert_same(folder.path(), "here.set", "there.set");
    let _ = run(program(folder.path(), &["verify", "there.set"])).success();
}
