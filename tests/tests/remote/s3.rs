//! An S3 server (s3s-fs) on this machine: listing, credentials, changes, resuming.

use crate::support::{CACHE, ProcessOutput, assert_same, pack_here, pictures, program, run};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use std::path::{Path, PathBuf};
use std::process::Command;

const KEY: &str = "AKIDTEST";
const SECRET: &str = "secret of the test";

/// A server, whose buckets are folders.
pub(crate) struct S3 {
    root: PathBuf,
    endpoint: String,
    _runtime: tokio::runtime::Runtime,
}

impl S3 {
    pub(crate) fn start(root: &Path) -> Self {
        std::fs::create_dir_all(root).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(root).unwrap());
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let bound = runtime.block_on(tokio::net::TcpListener::bind(("127.0.0.1", 0)));
        let listener = bound.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move {
            let server = Builder::new(TokioExecutor::new());
            while let Ok((socket, _)) = listener.accept().await {
                let connection = server.serve_connection(TokioIo::new(socket), service.clone());
                let connection = connection.into_owned();
                tokio::spawn(async move { drop(connection.await) });
            }
        });
        Self { root: root.to_path_buf(), endpoint, _runtime: runtime }
    }

    /// The folder of a bucket, which is created.
    pub(crate) fn bucket(&self, name: &str) -> PathBuf {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// The program, configured for this server.
    pub(crate) fn program(&self, folder: &Path, arguments: &[&str]) -> Command {
        let mut command = program(folder, arguments);
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    pub(crate) fn pack(
        &self,
        folder: &Path,
        url: &str,
        to: &str,
        further: &[&str],
    ) -> ProcessOutput {
        let arguments = [&["pack", url, to], CACHE.as_slice(), further].concat();
        run(self.program(folder, &arguments))
    }
}

#[test]
fn a_folder_of_a_bucket_packs_to_the_same_bytes_as_here() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    let here = pictures(&server.bucket("photos").join("train/all"), 41);
    // Names with the same prefix are another folder.
    pictures(&server.bucket("photos").join("train/all-others"), 2);
    pack_here(folder.path(), &here, "here.set", &[]);
    for url in ["s3://photos/train/all", "s3://photos/train/all/"] {
        let said = server.pack(folder.path(), url, "there.set", &["--force", "--json"]).success();
        let summary: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(summary["samples"], 41);
        assert_same(folder.path(), "here.set", "there.set");
        let manifest = std::fs::read_to_string(folder.path().join("there.set/dataset.json"));
        assert!(manifest.unwrap().contains(url), "the provenance names the URL");
    }
}

#[test]
fn what_is_held_makes_room_and_the_result_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    let here = pictures(&server.bucket("photos"), 60);
    pack_here(folder.path(), &here, "here.set", &[]);
    let longest = walk(&here).into_iter().map(|path| path.metadata().unwrap().len()).max();
    // Three pictures at a time.
    let size = format!("{}B", longest.unwrap() * 3);
    server.pack(folder.path(), "s3://photos", "there.set", &["--cache-size", &size]).success();
    assert_same(folder.path(), "here.set", "there.set");
    let said = server.pack(folder.path(), "s3://photos", "no.set", &["--cache-size", "100B"]);
    said.refused(&["s3://photos/", "may hold 100 bytes of objects", "--cache-size"]);
    assert!(!folder.path().join("no.set").exists());
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let below = |path: PathBuf| if path.is_dir() { walk(&path) } else { vec![path] };
    entries.flat_map(below).collect()
}

#[test]
fn wrong_credentials_a_missing_bucket_and_a_missing_name_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    pictures(&server.bucket("photos"), 2);
    let arguments = ["pack", "s3://photos/cat", "a.set"];
    let mut wrong = server.program(folder.path(), &arguments);
    wrong.env("AWS_SECRET_ACCESS_KEY", "another");
    run(wrong).refused(&["s3://photos/cat", "HTTP status 403", "AWS_SECRET_ACCESS_KEY"]);
    let mut anonymous = server.program(folder.path(), &[&arguments[..], &["--anonymous"]].concat());
    anonymous.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    run(anonymous).refused(&["s3://photos/cat", "HTTP status 403", "--anonymous"]);
    let said = server.pack(folder.path(), "s3://nothing/cat", "a.set", &[]);
    said.refused(&["s3://nothing/cat", "404"]);
    let said = server.pack(folder.path(), "s3://photos/cow", "a.set", &[]);
    said.refused(&["s3://photos/cow", "neither an object of that name nor one below"]);
    assert!(!folder.path().join("a.set").exists());
}

#[test]
fn what_must_be_here_is_refused_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let server = S3::start(&folder.path().join("store"));
    let here = pictures(&server.bucket("photos"), 2);
    let said = run(server.program(folder.path(), &["index", "s3://photos", "a.idx"]));
    said.refused(&["s3://photos", "must be on this machine", "pack it instead"]);
    pack_here(folder.path(), &here, "here.set", &[]);
    let said = run(server.program(folder.path(), &["unpack", "here.set", "s3://photos/out"]));
    said.refused(&["s3://photos/out", "cannot be written to", "a folder on this machine"]);
    let url = "s3://photos/out.set";
    let here = here.display().to_string();
    let said = run(server.program(folder.path(), &["pack", &here, url]));
    said.refused(&[url, "cannot be written to"]);
    assert!(!folder.path().join("s3:").exists());
}
