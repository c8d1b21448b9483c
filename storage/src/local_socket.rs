//! Listening Unix sockets that only one user can connect to.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most bytes of a socket's path: `sun_path` without its terminating null byte (unix(7)).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Time limit for another process that holds the folder's lock while it creates its socket.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Why a socket cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is longer than a socket address can be.
    #[error("the path has more than {SOCKET_PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// Another process listens on this path.
    #[error("another process listens there")]
    InUse,
    /// The path exists and is not a socket.
    #[error("it exists and is not a socket")]
    NotASocket,
    /// A system call failed.
    #[error("failed to {action} the socket: {source}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Cause.
        source: std::io::Error,
    },
}

/// A listening socket with a path. Dropping it removes the path, if it still refers to this socket.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
    identity: (u64, u64),
}

impl LocalSocket {
    /// Creates a non-blocking socket that only its owner can connect to. A stale socket, on which
    /// no process listens, is replaced; a socket in use, or anything that is not a socket, is an
    /// error.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        if path.as_os_str().as_bytes().len() > SOCKET_PATH_BYTES_MAX {
            return Err(SocketError::PathTooLong);
        }
        // Without the lock, one of two processes that start at the same time mistakes the other's
        // bound socket, which does not listen yet, for a stale one.
        let lock = lock_folder(path)?;
        clear_stale(path)?;
        let listener = listen(path).map_err(|source| SocketError::Io { action: "make", source })?;
        drop(lock);
        let metadata = std::fs::symlink_metadata(path)
            .map_err(|source| SocketError::Io { action: "find", source })?;
        Ok(Self { listener, path: path.to_path_buf(), identity: identity(&metadata) })
    }

    /// The listener.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still refers to this socket.
    pub fn has_its_name(&self) -> bool {
        std::fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| identity(&metadata) == self.identity)
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if self.has_its_name() {
            // If the path cannot be removed, the next socket replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The process id of the peer of a connection, if it runs as this user or as root. For a connection
/// that this process initiated, the peer is the process that listens.
pub fn trusted_peer(connection: impl AsFd) -> Option<u32> {
    let other = rustix::net::sockopt::socket_peercred(connection).ok()?;
    if other.uid != rustix::process::geteuid() && !other.uid.is_root() {
        return None;
    }
    u32::try_from(other.pid.as_raw_nonzero().get()).ok()
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Locks the socket's folder; the lock is released when it is dropped or the process ends.
fn lock_folder(path: &Path) -> Result<OwnedFd, SocketError> {
    let failed =
        |error: Errno| SocketError::Io { action: "lock the folder of", source: error.into() };
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(SocketError::NotASocket),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty()).map_err(failed)?;
    let start = Instant::now();
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) if start.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

fn clear_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |action, source| SocketError::Io { action, source };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", error)),
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(SocketError::NotASocket),
        Ok(_) => {}
    }
    match try_connect(path) {
        // A process that does not accept connections at the moment is alive as well.
        Ok(()) | Err(Errno::AGAIN) => Err(SocketError::InUse),
        Err(Errno::CONNREFUSED) => {
            std::fs::remove_file(path).map_err(|source| failed("replace the dead", source))
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed("connect to the present", error.into())),
    }
}

/// Connects without waiting for room in the peer's queue, and disconnects.
fn try_connect(path: &Path) -> rustix::io::Result<()> {
    rustix::net::connect(&stream_socket()?, &SocketAddrUnix::new(path)?)
}

fn stream_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Connections are refused until `listen` is called; by then the mode admits the owner only.
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
        let socket = LocalSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_live_socket_is_not_replaced_and_a_dead_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let alive = UnixListener::bind(&path).unwrap();
        assert!(matches!(LocalSocket::bind(&path), Err(SocketError::InUse)));
        assert!(path.exists());
        drop(alive);
        let socket = LocalSocket::bind(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(socket);
    }

    #[test]
    fn what_is_not_a_socket_is_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        std::fs::write(&path, "precious").unwrap();
        assert!(matches!(LocalSocket::bind(&path), Err(SocketError::NotASocket)));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert!(matches!(LocalSocket::bind(folder.path()), Err(SocketError::NotASocket)));
    }

    #[test]
    fn a_name_that_was_given_to_something_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let socket = LocalSocket::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another's").unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn paths_that_cannot_be_sockets_are_refused() {
        let long = PathBuf::from(format!("/tmp/{}", "x".repeat(200)));
        assert!(matches!(LocalSocket::bind(&long), Err(SocketError::PathTooLong)));
        let absent = LocalSocket::bind(Path::new("/nowhere/s"));
        assert!(matches!(absent, Err(SocketError::Io { .. })));
    }

    #[test]
    fn the_peer_of_a_connection_within_this_process_is_this_process() {
        let (one, other) = UnixStream::pair().unwrap();
        assert_eq!(trusted_peer(&one), Some(std::process::id()));
        assert_eq!(trusted_peer(&other), Some(std::process::id()));
    }
}
