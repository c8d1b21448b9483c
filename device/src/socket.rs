//! The socket in the file system, and a host's private folder that may contain it.

use crate::Error;
use meetpoint_storage::{LocalSocket, SOCKET_PATH_BYTES_MAX, SocketError};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Prefix of folders that hosts create only for a device's socket.
const PRIVATE_FOLDER_PREFIX: &str = "meetpoint-";

/// A listening socket with a path. Dropping it removes the path, if it still refers to this socket.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Present until dropped.
    socket: Option<LocalSocket>,
    with_folder: bool,
}

impl Socket {
    /// Creates a socket as [`LocalSocket::bind`] does.
    ///
    /// With `with_folder`, the folder is removed as well at the end, if it is a host's private one.
    pub(crate) fn bind(path: &Path, with_folder: bool) -> Result<Self, Error> {
        let socket = LocalSocket::bind(path).map_err(|error| {
            let path = path.to_path_buf();
            match error {
                SocketError::PathTooLong => {
                    Error::SocketPathTooLong { path, limit: SOCKET_PATH_BYTES_MAX }
                }
                SocketError::InUse => Error::SocketInUse { path },
                SocketError::NotASocket => Error::NotASocket { path },
                SocketError::Io { action, source } => Error::Socket { action, path, source },
            }
        })?;
        Ok(Self { socket: Some(socket), with_folder })
    }

    /// Another handle to the listener.
    pub(crate) fn listener(&self) -> std::io::Result<UnixListener> {
        self.socket.as_ref().expect("present until dropped").listener().try_clone()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        let (path, own) = (socket.path().to_path_buf(), socket.has_its_name());
        drop(socket);
        if own && self.with_folder {
            remove_private_folder(&path);
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
        // Fails, as intended, if the folder is not empty.
        let _ = std::fs::remove_dir(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_folder_of_another_name_stays() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::create_dir(&other).unwrap();
        drop(Socket::bind(&other.join("s"), true).unwrap());
        assert!(other.exists());
    }

    #[test]
    fn invalid_paths_are_errors_that_name_them() {
        let long = Path::new("/tmp").join("x".repeat(200));
        let error = Socket::bind(&long, false).unwrap_err();
        assert!(matches!(error, Error::SocketPathTooLong { limit: 107, .. }), "{error}");
        let error = Socket::bind(Path::new("/nowhere/s"), false).unwrap_err();
        assert!(matches!(error, Error::Socket { .. }), "{error}");
    }
}
