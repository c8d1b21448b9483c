//! Files that cannot be opened: no kind of source yields different samples without an error.

use super::stores::{SOURCES, Yielded, golden, in_memory, read};
use meetpoint_datasets::Error;
use meetpoint_datasets::source::detect;
use meetpoint_datasets::store::{Faulty, StorePath};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads a source in which a file cannot be opened; returns the opened files and the result.
fn read_without(
    fault: Option<PathBuf>,
    from: &StorePath,
    (kind, split): (&str, Option<&str>),
) -> (Vec<PathBuf>, Result<Yielded, Error>) {
    let faults = fault.map(|path| (path, ErrorKind::PermissionDenied));
    let store = Arc::new(Faulty::new(from.clone(), faults));
    let result = read(&StorePath::new(store.clone(), from.path()), kind, split);
    (store.opened().into_iter().collect(), result)
}

#[test]
fn a_file_that_does_not_open_is_named_whatever_kind_of_source_it_belongs_to() {
    for (name, inner, split) in SOURCES {
        let folder = in_memory(&golden(name));
        let from = if inner.is_empty() { folder } else { folder.join(inner) };
        let how = (detect(&from).unwrap().name, split);
        let (opened, whole) = read_without(None, &from, how);
        whole.unwrap();
        assert!(!opened.is_empty(), "{name}");
        for path in opened {
            let (_, result) = read_without(Some(path.clone()), &from, how);
            match result {
                Ok(yielded) => panic!("{name}: {path:?} is missed by nobody: {yielded:?}"),
                Err(error) => {
                    let file = path.file_name().unwrap().to_str().unwrap();
                    let error = error.to_string();
                    assert!(error.contains(file), "{name}: {path:?}: {error}");
                }
            }
        }
    }
}
