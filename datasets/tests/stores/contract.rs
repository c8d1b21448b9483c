//! The contract of stores: the tests of local and remote stores call [`check`].

use meetpoint_datasets::store::{FileKind, StorePath, Walk, WalkEntry, WalkOptions};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files that a store must hold below a folder.
pub(crate) fn files() -> Vec<(&'static str, Vec<u8>)> {
    let long: Vec<u8> = (0..300_000_u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    vec![
        ("a.txt", b"one".to_vec()),
        ("b/c d.bin", long),
        ("b/deep/er/x", b"two".to_vec()),
        ("b/ß.txt", b"three".to_vec()),
        ("ba/a.txt", b"four".to_vec()),
        ("empty", Vec::new()),
    ]
}

/// Panics if a store with [`files`] below `root` violates the contract.
pub(crate) fn check(root: &StorePath) {
    metadata_name_what_there_is(root);
    folders_list_what_is_in_them(root);
    walks_see_everything_once_and_pass_over_folders(root);
    open_files_have_positions_of_their_own(root);
    paths_resolve_to_one_name(root);
    root.reserve().unwrap();
    root.store().check().unwrap();
    root.store().check_unchanged().unwrap();
}

fn metadata_name_what_there_is(root: &StorePath) {
    for (name, bytes) in files() {
        let path = root.join(name);
        let metadata = path.metadata().unwrap();
        assert_eq!((metadata.kind, metadata.bytes), (FileKind::File, bytes.len() as u64), "{name}");
        assert!(path.is_file() && path.exists() && !path.is_dir() && !path.is_link(), "{name}");
        assert_eq!(
            metadata,
            path.metadata().unwrap(),
            "{name}: the same as long as nothing writes"
        );
    }
    for folder in ["", "b", "b/deep", "b/deep/er", "ba"] {
        let path = root.join(folder);
        assert_eq!(path.metadata().unwrap().kind, FileKind::Folder, "{folder}");
        assert!(path.open().is_err(), "{folder} is not a file");
    }
    // A prefix of a name is not a name.
    for nothing in ["b/d", "a", "b/deep/er/x/y", "nothing/at/all"] {
        let path = root.join(nothing);
        assert!(!path.exists() && path.open().is_err() && path.list().is_err(), "{nothing}");
    }
    let error = root.join("b/nothing").open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

fn folders_list_what_is_in_them(root: &StorePath) {
    let listed = |folder: &str| {
        let folder = root.join(folder);
        let entries = folder.list().unwrap().map(|entry| {
            let (path, kind) = entry.unwrap();
            assert_eq!(path.folder().path(), folder.path());
            (path.file_name().unwrap().to_str().unwrap().to_owned(), kind == FileKind::Folder)
        });
        entries.collect::<BTreeSet<_>>()
    };
    let set = |entries: &[(&str, bool)]| {
        entries.iter().map(|(name, is_folder)| ((*name).to_owned(), *is_folder)).collect()
    };
    let all: BTreeSet<_> = set(&[("a.txt", false), ("b", true), ("ba", true), ("empty", false)]);
    assert_eq!(listed(""), all);
    assert_eq!(listed("b"), set(&[("c d.bin", false), ("deep", true), ("ß.txt", false)]));
    assert_eq!(listed("b/deep"), set(&[("er", true)]));
    assert!(root.join("a.txt").list().is_err(), "a file has no entries");
}

fn walks_see_everything_once_and_pass_over_folders(root: &StorePath) {
    let options = |min_depth, max_depth| WalkOptions { min_depth, max_depth, follow_links: true };
    let below = |found: &WalkEntry| found.path.strip_prefix(root.path()).unwrap().to_path_buf();
    let walked = |options| {
        let mut paths = Vec::new();
        for found in root.store().walk(root.path(), options) {
            let found = found.unwrap();
            assert_eq!(below(&found).components().count(), found.depth);
            assert!(!found.is_link);
            // A folder precedes its entries.
            let parent = below(&found).parent().map(Path::to_path_buf);
            assert!(found.depth <= 1 || parent.is_some_and(|parent| paths.contains(&parent)));
            paths.push(below(&found));
        }
        let all: BTreeSet<PathBuf> = paths.iter().cloned().collect();
        assert_eq!(all.len(), paths.len(), "{paths:?}");
        all
    };
    let names: BTreeSet<PathBuf> = files().iter().map(|(name, _)| PathBuf::from(name)).collect();
    let folders = ["b", "b/deep", "b/deep/er", "ba"].map(PathBuf::from);
    let all: BTreeSet<PathBuf> = names.iter().cloned().chain(folders).collect();
    assert_eq!(walked(options(1, usize::MAX)), all);
    let first: BTreeSet<_> = ["a.txt", "b", "ba", "empty"].map(PathBuf::from).into();
    assert_eq!(walked(options(1, 1)), first);
    assert_eq!(walked(options(0, 0)), [PathBuf::new()].into());

    let mut seen = BTreeSet::new();
    let mut walk: Box<dyn Walk + '_> = root.store().walk(root.path(), options(1, usize::MAX));
    while let Some(found) = walk.next() {
        let found = found.unwrap();
        if below(&found) == Path::new("b") {
            walk.skip_folder();
        }
        seen.insert(below(&found));
    }
    let shallow = all.iter().filter(|path| path.parent().is_none_or(|up| !up.starts_with("b")));
    assert_eq!(seen, shallow.cloned().collect());

    let file = root.join("a.txt");
    let alone: Vec<_> = file.store().walk(file.path(), options(0, usize::MAX)).collect();
    assert!(matches!(&alone[..], [Ok(found)] if found.path == file.path() && found.depth == 0));
    let nothing = root.join("nothing");
    let mut nothing = nothing.store().walk(nothing.path(), options(0, usize::MAX));
    let error = nothing.next().unwrap().unwrap_err();
    assert_eq!((error.source.kind(), error.is_loop), (ErrorKind::NotFound, false));
}

fn open_files_have_positions_of_their_own(root: &StorePath) {
    for (name, bytes) in files() {
        let path = root.join(name);
        let (mut one, mut other) = (path.open().unwrap(), path.open().unwrap());
        assert_eq!(one.metadata().unwrap().len(), bytes.len() as u64, "{name}");
        let (mut first, mut second) = (Vec::new(), Vec::new());
        one.read_to_end(&mut first).unwrap();
        other.read_to_end(&mut second).unwrap();
        assert!(first == bytes && second == bytes, "{name}");
        let middle = bytes.len() / 2;
        one.seek(SeekFrom::Start(middle as u64)).unwrap();
        let mut rest = Vec::new();
        one.read_to_end(&mut rest).unwrap();
        assert!(rest == bytes[middle..], "{name}");
        let mut part = vec![0; bytes.len() - middle];
        other.read_exact_at(&mut part, middle as u64).unwrap();
        assert!(part == bytes[middle..], "{name}");
    }
}

fn paths_resolve_to_one_name(root: &StorePath) {
    let plain = root.join("b/deep/er/x").resolve().unwrap();
    let around = root.join("ba/../b/./deep/er/x");
    assert_eq!(around.resolve().unwrap(), plain);
    assert!(plain.starts_with(root.resolve().unwrap()));
    let mut text = String::new();
    around.open().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "two");
    assert!(root.join("nothing").resolve().is_err());
}
