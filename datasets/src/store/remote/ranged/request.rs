//! One range of an object: requested with deadlines, repeated with backoff and jitter, and refused
//! if the object is not the one that was opened.

use super::super::Deadlines;
use super::super::connect::{Client, credentials, refused};
use super::super::listing::tag;
use crate::error::RemoteError;
use futures_util::StreamExt;
use meetpoint_diagnose::Remedy;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStoreScheme as Scheme};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Receives the bytes of a range, with their offset in the object.
type Sink<'s> = dyn FnMut(u64, &[u8]) -> Result<(), RemoteError> + Send + 's;

/// Requests for a range without progress between them.
const ATTEMPTS_MAX: u32 = 6;
/// Backoff after the first failure; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// An object that is read in ranges.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) key: Key,
    pub(super) url: String,
    /// The length that `dataset.json` names; `None` before it is known.
    pub(super) bytes: Option<u64>,
    /// The tag and time of the first answer, which later ones must have as well.
    pub(super) version: OnceLock<Version>,
}

/// What identifies the content of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// As the server gives it.
    header: Option<String>,
    tag: Option<String>,
    /// Seconds of the last change, where there is no tag.
    modified: i64,
}

/// Counts of requests.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) fetched_bytes: AtomicU64,
}

/// How requests are sent.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) client: Client,
    pub(super) scheme: Scheme,
    pub(super) counts: Counts,
    /// Whether the last range failed after all retries: the next one is tried once.
    pub(super) fails_fast: AtomicBool,
    pub(super) deadlines: Deadlines,
}

/// Why an attempt ended early.
enum Ended {
    /// It may succeed later.
    Passing(String, Option<u16>),
    /// It cannot.
    For(RemoteError),
}

impl Requests {
    /// Fetches a range and passes its bytes to `sink` with their offsets, each byte once and in
    /// order.
    pub(super) async fn range(
        &self,
        object: &Object,
        range: Range<u64>,
        sink: &mut Sink<'_>,
    ) -> Result<(), RemoteError> {
        let (started, mut at, mut attempts) = (Instant::now(), range.start, 0);
        let attempts_max = match self.fails_fast.load(Ordering::Relaxed) {
            true => 1,
            false => ATTEMPTS_MAX,
        };
        loop {
            let before = at;
            let ended = match self.attempt(object, at..range.end, &mut at, sink).await {
                Ok(()) => {
                    self.fails_fast.store(false, Ordering::Relaxed);
                    return Ok(());
                }
                Err(ended) => ended,
            };
            let (problem, status) = match ended {
                Ended::For(error) => return Err(error),
                Ended::Passing(problem, status) => (problem, status),
            };
            attempts = if at > before { 1 } else { attempts + 1 };
            let pause = backoff(attempts);
            if attempts >= attempts_max || started.elapsed() + pause > self.deadlines.range {
                self.fails_fast.store(true, Ordering::Relaxed);
                return Err(self.given_up(object, (at, range.end), attempts, (problem, status)));
            }
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
        }
    }

    /// Fetches a whole object of at most `bytes_max` bytes.
    pub(super) async fn whole(
        &self,
        object: &Object,
        bytes_max: u64,
    ) -> Result<Vec<u8>, RemoteError> {
        let (started, mut attempts) = (Instant::now(), 0);
        loop {
            let mut bytes = Vec::new();
            let (problem, status) = match self.attempt_whole(object, bytes_max, &mut bytes).await {
                Ok(()) => return Ok(bytes),
                Err(Ended::For(error)) => return Err(error),
                Err(Ended::Passing(problem, status)) => (problem, status),
            };
            attempts += 1;
            let pause = backoff(attempts);
            if attempts >= ATTEMPTS_MAX || started.elapsed() + pause > self.deadlines.range {
                return Err(self.given_up(object, (0, 0), attempts, (problem, status)));
            }
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(pause).await;
        }
    }

    async fn attempt_whole(
        &self,
        object: &Object,
        bytes_max: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), Ended> {
        let longest = self.deadlines.quiet;
        let quiet = || Ended::Passing(format!("nothing arrived for {longest:?}"), None);
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.client.get_opts(&object.key, GetOptions::default());
        let result = match timeout(longest, answer).await.map_err(|_| quiet())? {
            Ok(result) => result,
            Err(error) => return Err(self.refusal(object, &(0..0), &error)),
        };
        let bytes = result.meta.size;
        let mut stream = result.into_stream();
        while let Some(next) = timeout(longest, stream.next()).await.map_err(|_| quiet())? {
            let piece = next.map_err(|error| Ended::Passing(words(self, object, &error), None))?;
            self.counts.fetched_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            into.extend_from_slice(&piece);
            if into.len() as u64 > bytes_max {
                let (url, limit) = (object.url.clone(), bytes_max);
                return Err(Ended::For(RemoteError::TooLarge { url, bytes, limit }));
            }
        }
        match into.len() as u64 == bytes {
            true => Ok(()),
            false => Err(Ended::Passing("the answer ended early".to_owned(), None)),
        }
    }

    fn given_up(
        &self,
        object: &Object,
        (offset, end): (u64, u64),
        attempts: u32,
        (problem, status): (String, Option<u16>),
    ) -> RemoteError {
        let remedy = match status {
            Some(429 | 503) => Remedy::advice("lower the load on the store").or("try again later"),
            Some(500..) => "try again later".into(),
            _ => Remedy::advice("check host and network").or("try again later"),
        };
        let url = object.url.clone();
        let bytes = end.saturating_sub(offset);
        RemoteError::Range { url, offset, bytes, attempts, status, problem, remedy }
    }

    /// One request; `at` is the first byte that is still missing.
    async fn attempt(
        &self,
        object: &Object,
        range: Range<u64>,
        at: &mut u64,
        sink: &mut Sink<'_>,
    ) -> Result<(), Ended> {
        let longest = self.deadlines.quiet;
        let quiet = |what: &str| Ended::Passing(format!("{what} for {longest:?}"), None);
        let known = object.version.get();
        let if_match = known.and_then(|version| version.header.clone());
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            // A weak tag never matches (RFC 9110, 13.1.1).
            if_match: if_match.filter(|tag| !tag.starts_with("W/")),
            ..GetOptions::default()
        };
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        let answer = timeout(longest, self.client.get_opts(&object.key, options)).await;
        let result = match answer.map_err(|_| quiet("there was no answer"))? {
            Ok(result) => result,
            Err(error) => return Err(self.refusal(object, &range, &error)),
        };
        let meta = &result.meta;
        let changed = |what: String| {
            let url = object.url.clone();
            Ended::For(RemoteError::ChangedInUse { url, what })
        };
        if let Some(bytes) = object.bytes
            && meta.size != bytes
        {
            let what = format!("it has {} bytes, dataset.json says {bytes}", meta.size);
            return Err(changed(what));
        }
        let version = Version {
            header: meta.e_tag.clone(),
            tag: tag(meta),
            modified: meta.last_modified.timestamp(),
        };
        match known {
            Some(Version { tag: Some(before), .. }) => {
                if let Some(now) = version.tag.as_ref().filter(|now| *now != before) {
                    return Err(changed(format!("its ETag was {before}, and is {now}")));
                }
            }
            Some(before) if before.modified != version.modified => {
                return Err(changed("its modification time differs".to_owned()));
            }
            Some(_) => {}
            None => drop(object.version.set(version)),
        }
        let mut stream = result.into_stream();
        while *at < range.end {
            let next = timeout(longest, stream.next()).await;
            let bytes = match next.map_err(|_| quiet("nothing arrived"))? {
                Some(Ok(bytes)) => bytes,
                Some(Err(error)) => {
                    return Err(Ended::Passing(words(self, object, &error), None));
                }
                None => {
                    let problem = format!(
                        "the answer ended after {} of {} bytes",
                        *at - range.start,
                        range.end - range.start
                    );
                    return Err(Ended::Passing(problem, None));
                }
            };
            self.counts.fetched_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            if bytes.len() as u64 > range.end - *at {
                let problem = "the answer has more bytes than were requested".to_owned();
                return Err(Ended::Passing(problem, None));
            }
            sink(*at, &bytes).map_err(Ended::For)?;
            *at += bytes.len() as u64;
        }
        Ok(())
    }

    /// The meaning of an error in answer to a request.
    fn refusal(&self, object: &Object, range: &Range<u64>, error: &object_store::Error) -> Ended {
        let url = object.url.clone();
        match error {
            object_store::Error::NotFound { .. } => {
                return Ended::For(RemoteError::MissingObject { url });
            }
            object_store::Error::Precondition { .. } => {
                let what = "its ETag is another one".to_owned();
                return Ended::For(RemoteError::ChangedInUse { url, what });
            }
            object_store::Error::NotSupported { .. } => {
                let problem = "the server answers with the whole object, not with the range";
                return Ended::For(RemoteError::Range {
                    url,
                    offset: range.start,
                    bytes: range.end - range.start,
                    attempts: 1,
                    status: Some(200),
                    problem: problem.to_owned(),
                    remedy: Remedy::advice("use a server that supports range requests")
                        .or("copy the dataset to a folder of this machine"),
                });
            }
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => {
                return Ended::For(refused(url, &self.scheme, error));
            }
            _ => {}
        }
        match refused(url, &self.scheme, error) {
            RemoteError::Refused { url, status: Some(status @ 400..=499), problem, .. }
                if !matches!(status, 408 | 429) =>
            {
                let remedy = match status {
                    // Not satisfiable: the object is shorter.
                    416 => Remedy::advice("copy the dataset to the store again"),
                    _ => credentials(&self.scheme),
                };
                Ended::For(RemoteError::Range {
                    url,
                    offset: range.start,
                    bytes: range.end - range.start,
                    attempts: 1,
                    status: Some(status),
                    problem,
                    remedy,
                })
            }
            RemoteError::Refused { status, problem, .. } => Ended::Passing(problem, status),
            other => Ended::For(other),
        }
    }
}

/// The message of a failed transfer.
fn words(requests: &Requests, object: &Object, error: &object_store::Error) -> String {
    match refused(object.url.clone(), &requests.scheme, error) {
        RemoteError::Refused { problem, .. } => problem,
        other => other.to_string(),
    }
}

/// The pause after a number of failures, from half of the backoff to all of it: clients that failed
/// together do not return together.
fn backoff(attempts: u32) -> Duration {
    let longest = BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(10)).min(BACKOFF_MAX);
    let random = RandomState::new().build_hasher().finish();
    let half = u64::try_from(longest.as_millis() / 2).unwrap_or(u64::MAX);
    Duration::from_millis(half + random % (half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        for (attempts, longest) in [(1, 100), (2, 200), (4, 800), (20, 5000)] {
            let pauses: Vec<u64> = (0..8).map(|_| backoff(attempts).as_millis() as u64).collect();
            assert!(
                pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)),
                "{pauses:?}"
            );
        }
    }
}
