//! Fetches one object into a file: the complete object that was listed, or nothing.

use super::TransferMonitor;
use super::cache::create_private;
use super::connect::{Client, refused};
use super::listing::{Object, modified, tag};
use crate::error::RemoteError;
use futures_util::TryStreamExt;
use meetpoint_diagnose::{Change, Remedy, Setting};
use object_store::{GetOptions, GetRange, ObjectStoreScheme as Scheme};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum number of attempts to resume a transfer without progress.
const ATTEMPTS_MAX: u32 = 4;

/// The object to fetch, and its names.
pub(super) struct DownloadRequest<'a> {
    /// The object, as it was listed.
    pub(super) object: &'a Object,
    /// Its tag from an earlier transfer, if the listing has none.
    pub(super) tag: Option<&'a str>,
    /// Its URL.
    pub(super) url: &'a str,
    /// The kind of store.
    pub(super) scheme: &'a Scheme,
}

/// Why a transfer ended early.
enum TransferError {
    /// It can be resumed.
    Resumable(RemoteError),
    /// It cannot be resumed.
    Fatal(RemoteError),
}

/// Fetches an object into a new file and returns its tag. An interrupted transfer is resumed.
pub(super) async fn download(
    client: &Client,
    request: &DownloadRequest<'_>,
    to: &Path,
    watch: &TransferMonitor,
) -> Result<Option<String>, RemoteError> {
    let failed = |error: std::io::Error| RemoteError::Cache {
        path: to.to_path_buf(),
        problem: error.to_string(),
    };
    let mut file = create_private(to).map_err(failed)?;
    let (mut got, mut furthest) = (0, 0);
    let mut tag = request.tag.map(str::to_owned);
    let mut attempts = 0;
    while got < request.object.bytes || attempts == 0 {
        match from(client, request, &mut tag, &mut file, &mut got, (to, watch)).await {
            Ok(()) => {}
            Err(TransferError::Fatal(error)) => return Err(error),
            Err(TransferError::Resumable(error)) if attempts >= ATTEMPTS_MAX && got <= furthest => {
                return Err(error);
            }
            Err(TransferError::Resumable(_)) => {
                tokio::time::sleep(Duration::from_millis(100 << attempts.min(5))).await;
            }
        }
        attempts = if got > furthest { 1 } else { attempts + 1 };
        furthest = furthest.max(got);
    }
    Ok(tag)
}

/// Fetches the missing part in one request.
async fn from(
    client: &Client,
    request: &DownloadRequest<'_>,
    tag_known: &mut Option<String>,
    file: &mut File,
    got: &mut u64,
    (to, watch): (&Path, &TransferMonitor),
) -> Result<(), TransferError> {
    let DownloadRequest { object, url, scheme, .. } = *request;
    let refusal = |error: &object_store::Error| refused(url.to_owned(), scheme, error);
    let changed =
        |what: String| TransferError::Fatal(RemoteError::Changed { url: url.to_owned(), what });
    let range = (*got > 0).then_some(GetRange::Offset(*got));
    let options = GetOptions { range, ..GetOptions::default() };
    let asked = watch.unless_stopped(client.get_opts(&object.key, options)).await;
    let result = match asked.map_err(TransferError::Fatal)? {
        Ok(result) => result,
        // The server does not support ranges: fetch the whole object again.
        Err(object_store::Error::NotSupported { source }) if *got > 0 => {
            restart(file, got).map_err(|error| TransferError::Fatal(cache(to, &error)))?;
            return Err(TransferError::Resumable(refusal(&object_store::Error::NotSupported {
                source,
            })));
        }
        Err(object_store::Error::NotFound { .. }) => {
            return Err(changed("HTTP status 404: it is no longer there".to_owned()));
        }
        Err(error) => return Err(TransferError::Fatal(refusal(&error))),
    };
    let meta = &result.meta;
    if meta.size != object.bytes {
        return Err(changed(format!("it had {} bytes, and has {}", object.bytes, meta.size)));
    }
    let now = tag(meta);
    let (listed, known) = (object.tag.as_ref(), tag_known.as_ref());
    match (listed.or(known), &now) {
        (Some(before), Some(now)) if before != now => {
            return Err(changed(format!("its ETag was {before}, and is {now}")));
        }
        (Some(_), Some(_)) => {}
        // Without a tag, compare the time, which HTTP reports in seconds.
        _ if modified(meta).0 != object.modified.0 => {
            return Err(changed("its modification time differs".to_owned()));
        }
        _ => {}
    }
    *tag_known = now.or(tag_known.take());
    let mut stream = result.into_stream();
    loop {
        let next = watch.unless_stopped(stream.try_next()).await;
        let bytes = match next.map_err(TransferError::Fatal)? {
            Ok(Some(bytes)) => bytes,
            Ok(None) if *got < object.bytes => {
                return Err(TransferError::Resumable(short(url, *got, object)));
            }
            Ok(None) => return Ok(()),
            Err(error) => return Err(TransferError::Resumable(refusal(&error))),
        };
        if bytes.len() as u64 > object.bytes - *got {
            return Err(changed(format!("more than its {} bytes were received", object.bytes)));
        }
        file.write_all(&bytes).map_err(|error| TransferError::Fatal(cache(to, &error)))?;
        *got += bytes.len() as u64;
        watch.fetched_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

/// Truncates the file to start again.
fn restart(file: &mut File, got: &mut u64) -> std::io::Result<()> {
    file.set_len(0)?;
    std::io::Seek::rewind(file)?;
    *got = 0;
    Ok(())
}

fn cache(path: &Path, error: &std::io::Error) -> RemoteError {
    RemoteError::Cache { path: path.to_path_buf(), problem: error.to_string() }
}

fn short(url: &str, got: u64, object: &Object) -> RemoteError {
    RemoteError::Refused {
        url: url.to_owned(),
        status: None,
        problem: format!("the transfer ended after {got} of {} bytes", object.bytes),
        remedy: Remedy::by("check the network, and resume", Setting::Resume, Change::On),
    }
}
