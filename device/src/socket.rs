//! The socket's place in the file system: made for its owner alone, taken away at the end.

use crate::Error;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that a socket's path may have: `sun_path` without its closing zero (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// How long another process may hold the folder while it makes its own socket.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Begins the names of folders that hosts make for a device's socket and nothing else.
const PRIVATE_FOLDER_PREFIX: &str = "meetpoint-";

/// A listening socket with a name. Dropping it removes the name, if it is still this socket's.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
    with_folder: bool,
}

impl Socket {
    /// Makes a socket that only its owner can connect to. One that nobody listens on any more is
    /// replaced; one that is alive, and anything that is no socket, is left alone.
    ///
    /// With `with_folder` the folder goes too at the end, where it is a host's private one.
    pub(crate) fn bind(path: &Path, with_folder: bool) -> Result<Self, Error> {
        if path.as_os_str().as_bytes().len() > PATH_BYTES_MAX {
            let path = path.to_path_buf();
            return Err(Error::SocketPathTooLong { path, limit: PATH_BYTES_MAX });
        }
        // Between two devices that start at once, one would take the other's newly bound socket,
        // which does not listen yet, for a dead one's.
        let lock = lock_folder(path)?;
        clear_stale(path)?;
        let listener = listen(path).map_err(|source| Error::Socket {
            action: "make",
            path: path.to_path_buf(),
            source,
        })?;
        drop(lock);
        let metadata = std::fs::symlink_metadata(path).map_err(|source| Error::Socket {
            action: "find",
            path: path.to_path_buf(),
            source,
        })?;
        let identity = identity(&metadata);
        Ok(Self { listener, path: path.to_path_buf(), identity, with_folder })
    }

    /// Another handle to the listening end.
    pub(crate) fn listener(&self) -> std::io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let own = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| identity(&metadata) == self.identity);
        if !own {
            return;
        }
        // Nothing can be done about a name that cannot be removed; the next device replaces it.
        let _ = std::fs::remove_file(&self.path);
        if self.with_folder {
            remove_private_folder(&self.path);
        }
    }
}

/// Removes the folder that a host made for a socket, for a host that no longer can.
pub(crate) fn remove_private_folder(socket: &Path) {
    let is_private = |folder: &&Path| {
        folder
            .file_name()
            .is_some_and(|name| name.as_bytes().starts_with(PRIVATE_FOLDER_PREFIX.as_bytes()))
    };
    if let Some(folder) = socket.parent().filter(is_private) {
        // Fails, as it should, when there is anything in it.
        let _ = std::fs::remove_dir(folder);
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Holds the socket's folder; released when dropped, or by the end of the process.
fn lock_folder(path: &Path) -> Result<OwnedFd, Error> {
    let failed = |source: std::io::Error| Error::Socket {
        action: "lock the folder of",
        path: path.to_path_buf(),
        source,
    };
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(Error::NotASocket { path: path.to_path_buf() }),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder =
        rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let start = Instant::now();
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed(error.into())),
        }
    }
}

fn clear_stale(path: &Path) -> Result<(), Error> {
    let failed = |action, source| Error::Socket { action, path: path.to_path_buf(), source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(Error::NotASocket { path: path.to_path_buf() });
        }
        Ok(_) => {}
    }
    match try_connect(path) {
        // One that does not accept for now is alive as well.
        Ok(()) | Err(Errno::AGAIN) => Err(Error::SocketInUse { path: path.to_path_buf() }),
        Err(Errno::CONNREFUSED) => {
            std::fs::remove_file(path).map_err(|source| failed("replace the dead", source))
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed("connect to the present", error.into())),
    }
}

/// Connects without waiting for room in the other's queue, and hangs up.
fn try_connect(path: &Path) -> rustix::io::Result<()> {
    rustix::net::connect(&stream_socket()?, &SocketAddrUnix::new(path)?)
}

fn stream_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Connecting is refused until the call of `listen`, and by then only the owner may.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let socket = stream_socket()?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    let ready = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
        .and_then(|()| Ok(rustix::net::listen(&socket, BACKLOG)?));
    if let Err(error) = ready {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_its_owners_alone_and_goes_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = Socket::bind(&path, true).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert!(!path.exists() && folder.path().exists());
    }

    #[test]
    fn a_live_socket_is_not_replaced_and_a_dead_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let alive = UnixListener::bind(&path).unwrap();
        assert!(matches!(Socket::bind(&path, false), Err(Error::SocketInUse { .. })));
        assert!(path.exists());
        drop(alive);
        let socket = Socket::bind(&path, false).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
    }

    #[test]
    fn what_is_no_socket_is_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        std::fs::write(&path, "precious").unwrap();
        let error = Socket::bind(&path, false).unwrap_err();
        assert!(matches!(error, Error::NotASocket { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(matches!(Socket::bind(folder.path(), false), Err(Error::NotASocket { .. })));
    }

    #[test]
    fn a_name_that_was_given_to_something_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = Socket::bind(&path, false).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another's").unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn a_private_folder_goes_with_its_socket_unless_there_is_more_in_it() {
        for more in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let private = folder.path().join("meetpoint-x");
            std::fs::create_dir(&private).unwrap();
            if more {
                std::fs::write(private.join("note"), "").unwrap();
            }
            drop(Socket::bind(&private.join("s"), true).unwrap());
            assert_eq!(private.exists(), more);
        }
    }

    #[test]
    fn paths_that_cannot_be_are_errors_that_name_them() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
        let error = Socket::bind(&long, false).unwrap_err().to_string();
        assert!(error.contains("205 bytes") && error.contains("107"), "{error}");
        let error = Socket::bind(Path::new("/nowhere/s"), false).unwrap_err().to_string();
        assert!(error.contains("/nowhere/s"), "{error}");
    }
}
