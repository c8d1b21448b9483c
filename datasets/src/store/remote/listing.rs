//! Lists the objects of a URL, with their paths.

use super::TransferMonitor;
use super::address::Address;
use super::connect::{Client, refused};
use crate::error::RemoteError;
use crate::natural_order;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStoreExt, ObjectStoreScheme as Scheme};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Maximum number of concurrent requests for objects of a pattern.
const ASKED_AT_ONCE: usize = 16;
/// Longest name of a file.
const NAME_BYTES_MAX: usize = 255;
/// Suffixes of the side files of `X.msgpack` in datadings.
const SIDE_FILES: [&str; 3] = [".offsets", ".keys", ".index"];

/// An object, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// Its name in the store.
    pub(super) key: Key,
    /// Path below the common folder.
    pub(super) file: PathBuf,
    /// Its length.
    pub(super) bytes: u64,
    /// Seconds and nanoseconds of its last change.
    pub(super) modified: (i64, u32),
    /// Its ETag, without quotes.
    pub(super) tag: Option<String>,
}

/// All objects of a URL.
#[derive(Debug)]
pub(super) struct Listing {
    /// The objects, in natural order of the files.
    pub(super) objects: Vec<Object>,
    /// URL of the opened source.
    pub(super) opened: PathBuf,
    /// URL of the common folder.
    pub(super) base: PathBuf,
}

/// The tag of an object, normalised across kinds of requests.
pub(super) fn tag(meta: &ObjectMeta) -> Option<String> {
    let tag = meta.e_tag.as_deref()?;
    Some(tag.trim_start_matches("W/").trim_matches('"').to_owned()).filter(|tag| !tag.is_empty())
}

/// The modification time of an object.
pub(super) fn modified(meta: &ObjectMeta) -> (i64, u32) {
    (meta.last_modified.timestamp(), meta.last_modified.timestamp_subsec_nanos())
}

/// Lists the objects of an address.
pub(super) async fn list(
    client: &Client,
    address: &Address,
    watch: &TransferMonitor,
) -> Result<Listing, RemoteError> {
    watch.listed.store(0, Ordering::Relaxed);
    let (metas, top) = if address.is_pattern {
        (named(client, address).await?, common_folder(&address.keys))
    } else {
        let key = &address.keys[0];
        (of_name(client, address, key, watch).await?, parent_of(key))
    };
    let base = PathBuf::from(address.url_of(&top).trim_end_matches('/'));
    let opened = match top == address.keys[0] || address.is_pattern {
        true => base.clone(),
        false => base.join(last_part(&address.keys[0])),
    };
    let mut objects = Vec::with_capacity(metas.len());
    for meta in metas {
        let file = file_of(address, &meta.location, &top)?;
        let (modified, tag) = (modified(&meta), tag(&meta));
        objects.push(Object { key: meta.location, file, bytes: meta.size, modified, tag });
    }
    drop_folder_marks(&mut objects);
    let name = |object: &Object| object.file.to_string_lossy().into_owned();
    objects.sort_by_cached_key(|object| object.key.to_string());
    objects.sort_by(|left, right| natural_order(&name(left), &name(right)));
    check_names(address, &objects)?;
    Ok(Listing { objects, opened, base })
}

/// The objects below a name, or else the object of that name.
async fn of_name(
    client: &Client,
    address: &Address,
    key: &Key,
    watch: &TransferMonitor,
) -> Result<Vec<ObjectMeta>, RemoteError> {
    // On a web server, only folders can be listed, if anything.
    let is_listed = address.is_folder || address.scheme != Scheme::Http;
    let listed = if is_listed { below(client, address, watch).await } else { Ok(Vec::new()) };
    let refusal = match listed {
        // Permission to read an object does not imply permission to list.
        Err(RemoteError::Refused { status: Some(401 | 403), .. }) if !address.is_folder => {
            listed.err()
        }
        Err(error) => return Err(error),
        Ok(metas) if !metas.is_empty() => return Ok(metas),
        Ok(_) => None,
    };
    let nothing = || RemoteError::Nothing { url: address.text.clone() };
    if address.is_folder {
        return Err(nothing());
    }
    let mut metas = match client.head(key).await {
        Ok(meta) => vec![meta],
        Err(object_store::Error::NotFound { .. }) if is_listed && refusal.is_none() => {
            return Err(nothing());
        }
        Err(error) => {
            let url = address.url_of(key);
            return Err(refusal.unwrap_or_else(|| refused(url, &address.scheme, &error)));
        }
    };
    if key.as_ref().ends_with(".msgpack") {
        metas.extend(beside(client, address, key).await?);
    }
    Ok(metas)
}

/// The side files of a datadings file.
async fn beside(
    client: &Client,
    address: &Address,
    key: &Key,
) -> Result<Vec<ObjectMeta>, RemoteError> {
    let mut metas = Vec::new();
    for suffix in SIDE_FILES {
        let side = Key::parse(format!("{key}{suffix}")).expect("a suffix makes no other parts");
        match client.head(&side).await {
            Ok(meta) => metas.push(meta),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(refused(address.url_of(&side), &address.scheme, &error)),
        }
    }
    Ok(metas)
}

/// The objects below a name.
async fn below(
    client: &Client,
    address: &Address,
    watch: &TransferMonitor,
) -> Result<Vec<ObjectMeta>, RemoteError> {
    let failed = |error| refused(address.text.clone(), &address.scheme, &error);
    let key = &address.keys[0];
    let prefix = (!key.as_ref().is_empty()).then_some(key);
    let mut all = Vec::new();
    let mut listed = client.list(prefix);
    while let Some(meta) = watch.unless_stopped(listed.try_next()).await?.map_err(failed)? {
        watch.listed.fetch_add(1, Ordering::Relaxed);
        all.push(meta);
    }
    Ok(all)
}

/// The objects of a pattern.
async fn named(client: &Client, address: &Address) -> Result<Vec<ObjectMeta>, RemoteError> {
    let asked = address.keys.iter().map(|key| async move {
        let meta = client.head(key).await;
        meta.map_err(|error| refused(address.url_of(key), &address.scheme, &error))
    });
    futures_util::stream::iter(asked).buffered(ASKED_AT_ONCE).try_collect().await
}

/// The last part of a name.
fn last_part(key: &Key) -> &str {
    key.as_ref().rsplit('/').next().unwrap_or_default()
}

/// The parent folder of a name.
fn parent_of(key: &Key) -> Key {
    let parent = key.as_ref().rsplit_once('/').map_or("", |(parent, _)| parent);
    Key::parse(parent).expect("a part of a name is one")
}

/// The common parent folder of all names.
fn common_folder(keys: &[Key]) -> Key {
    let mut common = parent_of(&keys[0]);
    for key in keys {
        while !key.prefix_matches(&common) {
            common = parent_of(&common);
        }
    }
    common
}

/// The path of an object below the common folder.
fn file_of(address: &Address, key: &Key, top: &Key) -> Result<PathBuf, RemoteError> {
    let name =
        |problem| RemoteError::Name { url: address.text.clone(), key: key.to_string(), problem };
    let below = key.as_ref().strip_prefix(top.as_ref()).unwrap_or(key.as_ref());
    let mut file = PathBuf::new();
    for part in below.trim_start_matches('/').split('/') {
        let problem = match part {
            "" => Some("has an empty part in its name"),
            "." | ".." => Some("has a part in its name that leads elsewhere"),
            _ if part.contains('\0') => Some("has a zero byte in its name"),
            _ if part.len() > NAME_BYTES_MAX => Some("has a part of more than 255 bytes"),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(name(problem));
        }
        file.push(part);
    }
    Ok(file)
}

/// Removes empty objects that denote the folder of other objects.
fn drop_folder_marks(objects: &mut Vec<Object>) {
    let mut folders = HashSet::new();
    for object in objects.iter() {
        folders.extend(object.file.ancestors().skip(1).map(PathBuf::from));
    }
    objects.retain(|object| object.bytes > 0 || !folders.contains(&object.file));
}

/// Refuses an object whose name is also that of a folder, or that occurs twice.
fn check_names(address: &Address, objects: &[Object]) -> Result<(), RemoteError> {
    let mut files = HashSet::new();
    let fault = |object: &Object, problem| RemoteError::Name {
        url: address.text.clone(),
        key: object.key.to_string(),
        problem,
    };
    for object in objects {
        if !files.insert(object.file.as_path()) {
            return Err(fault(object, "is named twice"));
        }
    }
    let is_above =
        |object: &&Object| object.file.ancestors().skip(1).any(|folder| files.contains(folder));
    match objects.iter().find(is_above) {
        None => Ok(()),
        Some(object) => Err(fault(object, "is below another object as if that were a folder")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, bytes: u64) -> Object {
        Object {
            key: Key::from(name),
            file: PathBuf::from(name),
            bytes,
            modified: (0, 0),
            tag: None,
        }
    }

    #[test]
    fn folder_markers_are_not_objects_and_a_name_is_a_file_or_a_folder() {
        let address = Address::parse("s3://bucket/a").unwrap();
        let mut objects = vec![object("a", 0), object("a/b", 3), object("empty", 0)];
        drop_folder_marks(&mut objects);
        assert_eq!(objects, [object("a/b", 3), object("empty", 0)]);
        assert!(check_names(&address, &objects).is_ok());
        objects.push(object("a", 1));
        let error = check_names(&address, &objects).unwrap_err().to_string();
        assert!(error.contains("\"a/b\"") && error.contains("below another"), "{error}");
        assert!(check_names(&address, &[object("x", 1), object("x", 1)]).is_err());
    }

    #[test]
    fn the_folder_of_a_pattern_is_that_of_all_its_names() {
        let keys = |names: &[&str]| names.iter().map(|name| Key::from(*name)).collect::<Vec<_>>();
        assert_eq!(common_folder(&keys(&["d/a.tar", "d/b.tar"])).as_ref(), "d");
        assert_eq!(common_folder(&keys(&["d/e/a", "d/f/b"])).as_ref(), "d");
        assert_eq!(common_folder(&keys(&["da/a", "db/b"])).as_ref(), "");
        assert_eq!(common_folder(&keys(&["a"])).as_ref(), "");
    }

    #[test]
    fn names_that_lead_elsewhere_or_are_no_file_names_are_refused() {
        let address = Address::parse("s3://bucket/d").unwrap();
        let file = |name: &str| {
            let key = Key::from_iter(["d"]).join(name);
            file_of(&address, &key, &Key::from(""))
        };
        assert_eq!(file("a b").unwrap(), PathBuf::from("d/a b"));
        assert!(file(&"x".repeat(256)).unwrap_err().to_string().contains("255"));
    }
}
