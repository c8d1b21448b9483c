//! Tells systemd how the process is: sd_notify(3), for units of `Type=notify`.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable in which systemd names its socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// A state of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceState {
    /// Hosts can connect.
    Ready,
    /// It drains, and then ends.
    Stopping,
}

impl ServiceState {
    fn message(self) -> &'static str {
        match self {
            Self::Ready => "READY=1\nSTATUS=serving\n",
            Self::Stopping => "STOPPING=1\nSTATUS=draining\n",
        }
    }
}

/// Sends a state to systemd, if it started this process and asks for it.
pub(crate) fn notify(state: ServiceState) -> std::io::Result<()> {
    match std::env::var_os(SOCKET_VARIABLE).filter(|socket| !socket.is_empty()) {
        Some(socket) => send(&socket, state),
        None => Ok(()),
    }
}

/// Sends a state to a socket: a path, or a name that begins with `@`.
fn send(socket: &OsStr, state: ServiceState) -> std::io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.message().as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::{ServiceState, send};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    #[test]
    fn states_arrive_at_paths_and_at_abstract_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let of_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), ServiceState::Ready).unwrap();
        assert!(received(&of_path).starts_with("READY=1\n"));
        let name = format!("meetpoint-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        let of_name = UnixDatagram::bind_addr(&address).unwrap();
        send(format!("@{name}").as_ref(), ServiceState::Stopping).unwrap();
        assert!(received(&of_name).starts_with("STOPPING=1\n"));
        assert!(send("/nowhere/notify".as_ref(), ServiceState::Ready).is_err());
    }
}
