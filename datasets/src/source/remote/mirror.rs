//! The objects of a source elsewhere, as files: which of them are held, and which make room.
//!
//! A file that was opened and then makes room stays readable for who has it open, and its bytes are
//! given back when it is closed. So what lies on the drive is at most what may be held and the
//! files that a source has open at once.

use super::address::Address;
use super::cache::{Folder, placeholder, put};
use super::download::{Wanted, download};
use super::listing::{Listing, Object, list};
use super::store::{Store, connect};
use super::{RemoteError, RemoteOptions, Watch};
use crate::Error;
use crate::source::SourceStamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Objects that are fetched at once.
const FETCHING_MAX: usize = 16;
/// Objects behind an opened one that may be fetched ahead.
const AHEAD_OBJECTS: usize = 64;
/// Bytes of objects that are fetched and not opened yet; one of them may be longer.
const AHEAD_BYTES: u64 = 256 << 20;
/// Time that transfers have to end when nobody wants them any more.
const ENDING: Duration = Duration::from_secs(2);

/// All that are in use, so that a file is known as one of them by its path.
static MIRRORS: RwLock<Vec<(PathBuf, Weak<Mirror>)>> = RwLock::new(Vec::new());

/// The mirror that a path lies in.
pub(crate) fn mirror_of(path: &Path) -> Option<Arc<Mirror>> {
    let mirrors = MIRRORS.read().unwrap_or_else(PoisonError::into_inner);
    let found = mirrors.iter().find(|(root, _)| path.starts_with(root));
    found.and_then(|(_, mirror)| mirror.upgrade())
}

/// The objects of a source elsewhere, as files.
#[derive(Debug)]
pub struct Mirror {
    shared: Arc<Shared>,
    /// What is opened: a file or a folder.
    opened: PathBuf,
    stamp: SourceStamp,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
    /// Removed when this is dropped, after the runtime.
    folder: Folder,
}

/// What transfers share with who waits for them.
#[derive(Debug)]
struct Shared {
    store: Store,
    address: Address,
    objects: Vec<Object>,
    /// Places of the objects by the path of their file.
    places: HashMap<PathBuf, usize>,
    root: PathBuf,
    base: String,
    incoming: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
    /// Told when an object is there, or none will be.
    changed: Condvar,
    watch: Watch,
}

/// What is held.
#[derive(Debug)]
struct State {
    slots: Vec<Slot>,
    /// Bytes that are held or on their way.
    bytes: u64,
    /// Transfers on their way.
    fetching: usize,
    /// Bytes of objects that nobody has opened yet, here or on their way.
    ahead_bytes: u64,
    /// Objects that were opened, by when that was last.
    used: BTreeMap<u64, usize>,
    /// Objects that nobody has opened yet.
    unused: BTreeSet<usize>,
    /// Goes up by one for each that is opened.
    clock: u64,
    /// Tags that transfers told, where the listing has none.
    tags: HashMap<usize, String>,
    /// What ended it.
    failure: Option<RemoteError>,
    /// A transfer ahead failed: what is wanted is fetched when it is.
    is_alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Absent,
    Fetching,
    /// Here, since that time if it was opened.
    Held(Option<u64>),
    /// Here, and never to make room.
    Kept,
}

/// What becomes of a wish for room.
enum Room {
    Made,
    /// When others are through.
    Later,
}

impl Mirror {
    /// Lists what a URL names, and lays out its placeholders.
    pub(in crate::source) fn of(url: &str, options: &RemoteOptions) -> Result<Self, Error> {
        let address = Address::parse(url)?;
        let store = connect(&address, options)?;
        let failed = |error: io::Error| RemoteError::Cache {
            path: PathBuf::from("a runtime"),
            problem: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("transfers")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listing = list(&store, &address, &options.watch);
        let listing = runtime.block_on(options.watch.unless_stopped(listing));
        let listing = listing.and_then(|listed| listed).map_err(Error::of_remote)?;
        let folder = Folder::create(options.cache.as_deref())?;
        let root = folder.files();
        lay_out(&listing, &root, &folder.incoming())?;
        let places = listing.objects.iter().zip(0..);
        let places = places.map(|(object, place)| (root.join(&object.file), place)).collect();
        let state = Mutex::new(State::new(listing.objects.len()));
        let (opened, stamp) = (root.join(&listing.opened), listing.stamp());
        let shared = Arc::new(Shared {
            store,
            address,
            objects: listing.objects,
            places,
            root,
            base: listing.base,
            incoming: folder.incoming(),
            bytes_max: options.cache_bytes,
            state,
            changed: Condvar::new(),
            watch: options.watch.clone(),
        });
        Ok(Self { shared, opened, stamp, runtime: Some(runtime), folder })
    }

    /// Lets the files be known by their paths.
    pub(super) fn register(self: &Arc<Self>) {
        let mut mirrors = MIRRORS.write().unwrap_or_else(PoisonError::into_inner);
        mirrors.retain(|(_, mirror)| mirror.strong_count() > 0);
        let root = self.folder.files();
        if !mirrors.iter().any(|(known, _)| *known == root) {
            mirrors.push((root, Arc::downgrade(self)));
        }
    }

    /// What a source is to open.
    pub(super) fn opened(&self) -> &Path {
        &self.opened
    }

    /// A path that a user gave, as one of the files here if it is.
    pub(super) fn inner(&self, path: &Path) -> PathBuf {
        let inside = self.opened.join(path);
        if path.is_relative() && inside.exists() { inside } else { path.to_path_buf() }
    }

    /// Names, lengths, times and tags of all objects, as they were listed.
    pub(in crate::source) fn stamp(&self) -> SourceStamp {
        self.stamp
    }

    /// Fails if an object could not be fetched.
    pub(in crate::source) fn check(&self) -> Result<(), Error> {
        match &self.shared.lock().failure {
            None => Ok(()),
            Some(failure) => Err(Error::of_remote(failure.clone())),
        }
    }

    /// Fails if the objects are others than those that were listed.
    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        self.check()?;
        let shared = &self.shared;
        let listed = list(&shared.store, &shared.address, &shared.watch);
        let now = self.runtime().block_on(shared.watch.unless_stopped(listed));
        let now = now.and_then(|listed| listed).map_err(Error::of_remote)?;
        if now.stamp() == self.stamp {
            return Ok(());
        }
        let before: HashMap<_, _> = shared.objects.iter().map(|one| (&one.key, one)).collect();
        let other = now.objects.iter().find(|one| before.get(&one.key) != Some(one));
        let there: std::collections::HashSet<_> = now.objects.iter().map(|one| &one.key).collect();
        let gone = shared.objects.iter().find(|one| !there.contains(&one.key));
        let (key, what) = match (other, gone) {
            (Some(one), _) if before.contains_key(&one.key) => (&one.key, "it is another one"),
            (Some(one), _) => (&one.key, "it was not there before"),
            (None, Some(one)) => (&one.key, "it is no longer there"),
            (None, None) => (&shared.address.keys[0], "its objects are others"),
        };
        let url = shared.address.url_of(key);
        Err(RemoteError::Changed { url, what: what.to_owned() }.into())
    }

    /// Opens a file, whose object is fetched where it is not held.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        let place = match self.shared.places.get(path) {
            Some(place) => *place,
            None => {
                let real = path.canonicalize()?;
                let known = self.shared.places.get(&real);
                *known.ok_or_else(|| io::Error::other("no object of the source"))?
            }
        };
        self.obtain(place, false).map_err(io::Error::other)
    }

    /// Fetches all files below a folder, which then stay.
    pub(crate) fn hold_all(&self, folder: &Path) -> io::Result<()> {
        let shared = &self.shared;
        let below = |(path, place): (&PathBuf, &usize)| {
            path.starts_with(folder).then_some((*place, shared.objects[*place].bytes))
        };
        let mut all: Vec<_> = shared.places.iter().filter_map(below).collect();
        all.sort_unstable();
        let bytes = all.iter().map(|(_, bytes)| bytes).sum();
        if bytes > shared.bytes_max {
            let url = shared.text(&folder.display().to_string());
            let error = RemoteError::TooLarge { url, bytes, limit: shared.bytes_max };
            shared.lock().failure = Some(error.clone());
            return Err(io::Error::other(error));
        }
        all.into_iter()
            .try_for_each(|(place, _)| self.obtain(place, true).map(drop).map_err(io::Error::other))
    }

    /// An error in terms of the URL.
    pub(in crate::source) fn told(&self, error: Error) -> Error {
        if matches!(error, Error::Interrupted | Error::Remote(_)) {
            return error;
        }
        if let Err(failure) = self.check() {
            return failure;
        }
        let text = error.to_string();
        let told = self.text(&text);
        if told == text { error } else { Error::Elsewhere { told, error: Box::new(error) } }
    }

    /// A text with the URL in place of the paths.
    pub(super) fn text(&self, text: &str) -> String {
        self.shared.text(text)
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when the mirror is dropped")
    }

    /// Waits for an object and opens its file.
    fn obtain(&self, place: usize, is_kept: bool) -> Result<File, RemoteError> {
        let shared = &self.shared;
        let mut state = shared.lock();
        let outcome = loop {
            if let Some(failure) = &state.failure {
                break Err(failure.clone());
            }
            match state.slots[place] {
                Slot::Held(_) | Slot::Kept => break Ok(()),
                Slot::Fetching => {}
                Slot::Absent => match shared.make_room(&mut state, place, true) {
                    Err(error) => break Err(error),
                    Ok(Room::Later) => {}
                    Ok(Room::Made) => {
                        state.begin(place, shared.objects[place].bytes);
                        drop(state);
                        let fetched = self.runtime().block_on(shared.fetch(place));
                        state = shared.lock();
                        if let Err(error) = fetched {
                            break Err(error);
                        }
                        continue;
                    }
                },
            }
            let waited = shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        };
        if let Err(error) = outcome {
            state.failure.get_or_insert_with(|| error.clone());
            drop(state);
            shared.changed.notify_all();
            return Err(error);
        }
        state.touch(place, shared.objects[place].bytes, is_kept);
        // Opened under the lock, since the file may make room right after.
        let path = shared.root.join(&shared.objects[place].file);
        let file = File::open(&path).map_err(|error| cache_error(&path, &error))?;
        self.fetch_ahead(&mut state, place);
        Ok(file)
    }

    /// Begins to fetch what probably follows.
    fn fetch_ahead(&self, state: &mut State, place: usize) {
        let shared = &self.shared;
        let last = shared.objects.len().min(place + 1 + AHEAD_OBJECTS);
        for next in place + 1..last {
            let bytes = shared.objects[next].bytes;
            let is_full = state.fetching >= FETCHING_MAX
                || (state.ahead_bytes > 0 && state.ahead_bytes + bytes > AHEAD_BYTES);
            if is_full || state.is_alone || state.failure.is_some() {
                return;
            }
            if state.slots[next] != Slot::Absent {
                continue;
            }
            if !matches!(shared.make_room(state, next, false), Ok(Room::Made)) {
                return;
            }
            state.begin(next, bytes);
            let shared = Arc::clone(shared);
            self.runtime().spawn(async move {
                if shared.fetch(next).await.is_err() {
                    // Who wants it asks again, and is told.
                    shared.lock().is_alone = true;
                }
            });
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(ENDING);
        }
        let mut mirrors = MIRRORS.write().unwrap_or_else(PoisonError::into_inner);
        mirrors.retain(|(_, mirror)| mirror.strong_count() > 0);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), &self.base)
    }

    /// Fetches an object, for which there is room.
    async fn fetch(&self, place: usize) -> Result<(), RemoteError> {
        let object = &self.objects[place];
        let tag = self.lock().tags.get(&place).cloned();
        let url = self.address.url_of(&object.key);
        let wanted =
            Wanted { object, tag: tag.as_deref(), url: &url, scheme: &self.address.scheme };
        let incoming = self.incoming.join(place.to_string());
        let fetched = download(&self.store, &wanted, &incoming, &self.watch).await;
        let fetched = fetched.and_then(|tag| {
            let to = self.root.join(&object.file);
            let put = File::open(&incoming).and_then(|file| {
                file.set_permissions(Permissions::from_mode(0o600))?;
                put(&file, &incoming, &to, object.modified)
            });
            put.map_err(|error| cache_error(&incoming, &error)).map(|()| tag)
        });
        let mut state = self.lock();
        state.fetching -= 1;
        let outcome = match fetched {
            Ok(tag) => {
                if let (None, Some(tag)) = (&object.tag, tag) {
                    state.tags.insert(place, tag);
                }
                state.slots[place] = Slot::Held(None);
                state.unused.insert(place);
                Ok(())
            }
            Err(error) => {
                let _ = std::fs::remove_file(&incoming);
                state.slots[place] = Slot::Absent;
                state.bytes -= object.bytes;
                state.ahead_bytes -= object.bytes;
                Err(error)
            }
        };
        drop(state);
        self.changed.notify_all();
        outcome
    }

    /// Lets others go until an object has room; of those that nobody has opened yet only where
    /// somebody waits for this one.
    fn make_room(
        &self,
        state: &mut State,
        place: usize,
        is_wanted: bool,
    ) -> Result<Room, RemoteError> {
        let bytes = self.objects[place].bytes;
        if bytes > self.bytes_max {
            let url = self.address.url_of(&self.objects[place].key);
            return Err(RemoteError::TooLarge { url, bytes, limit: self.bytes_max });
        }
        while state.bytes + bytes > self.bytes_max {
            let oldest = state.used.first_key_value().map(|(_, place)| *place);
            // The last in order is wanted last.
            let unused = || state.unused.last().copied().filter(|_| is_wanted);
            match oldest.or_else(unused) {
                Some(victim) => self.let_go(state, victim)?,
                None if state.fetching > 0 || !is_wanted => return Ok(Room::Later),
                None => {
                    // What is kept takes all of it.
                    let url = self.address.text.clone();
                    let bytes = state.bytes + bytes;
                    return Err(RemoteError::TooLarge { url, bytes, limit: self.bytes_max });
                }
            }
        }
        Ok(Room::Made)
    }

    /// Puts a placeholder in the place of a file.
    fn let_go(&self, state: &mut State, place: usize) -> Result<(), RemoteError> {
        let object = &self.objects[place];
        let to = self.root.join(&object.file);
        let incoming = self.incoming.join(format!("{place}-gone"));
        placeholder(&incoming, &to, object.bytes, object.modified)
            .map_err(|error| cache_error(&to, &error))?;
        match state.slots[place] {
            Slot::Held(Some(time)) => drop(state.used.remove(&time)),
            _ => {
                state.unused.remove(&place);
                state.ahead_bytes -= object.bytes;
            }
        }
        state.slots[place] = Slot::Absent;
        state.bytes -= object.bytes;
        Ok(())
    }
}

impl State {
    fn new(objects: usize) -> Self {
        Self {
            slots: vec![Slot::Absent; objects],
            bytes: 0,
            fetching: 0,
            ahead_bytes: 0,
            used: BTreeMap::new(),
            unused: BTreeSet::new(),
            clock: 0,
            tags: HashMap::new(),
            failure: None,
            is_alone: false,
        }
    }

    /// An object is on its way.
    fn begin(&mut self, place: usize, bytes: u64) {
        self.slots[place] = Slot::Fetching;
        self.bytes += bytes;
        self.ahead_bytes += bytes;
        self.fetching += 1;
    }

    /// An object that is here was opened.
    fn touch(&mut self, place: usize, bytes: u64, is_kept: bool) {
        match self.slots[place] {
            Slot::Kept => return,
            Slot::Held(Some(time)) => drop(self.used.remove(&time)),
            _ => {
                self.unused.remove(&place);
                self.ahead_bytes -= bytes;
            }
        }
        if is_kept {
            self.slots[place] = Slot::Kept;
            return;
        }
        self.clock += 1;
        self.used.insert(self.clock, place);
        self.slots[place] = Slot::Held(Some(self.clock));
    }
}

/// Makes a placeholder for each object.
fn lay_out(listing: &Listing, root: &Path, incoming: &Path) -> Result<(), RemoteError> {
    let made = incoming.join("placeholder");
    for object in &listing.objects {
        let path = root.join(&object.file);
        let folder = path.parent().expect("a file lies in a folder");
        std::fs::create_dir_all(folder)
            .and_then(|()| placeholder(&made, &path, object.bytes, object.modified))
            .map_err(|error| cache_error(&path, &error))?;
    }
    Ok(())
}

fn cache_error(path: &Path, error: &io::Error) -> RemoteError {
    RemoteError::Cache { path: path.to_path_buf(), problem: error.to_string() }
}
