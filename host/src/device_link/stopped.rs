//! Detects processes that a signal has stopped: they are alive but do not respond until continued.

use crate::causes::{Loss, LossCause};
use meetpoint_link::fd_channel::connect_now;
use std::path::Path;

/// The loss of a device whose process SIGSTOP or a debugger has stopped; `None` if it is not
/// stopped.
pub(super) fn if_stopped(process_id: u32) -> Option<Loss> {
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).ok()?;
    is_stopped(&stat).then(|| LossCause::ProcessStopped { process_id }.into())
}

/// The process that listens on a socket, to which the system still connects while the process is
/// stopped. Also `None` if the queue of its connections is full.
pub(super) fn listener(socket: &Path) -> Option<u32> {
    let stream = connect_now(socket).ok()?;
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// Whether a line of `/proc/PID/stat` describes a stopped process: see proc_pid_stat(5). The
/// program's name, which precedes the state, may contain any character but ends at the last
/// parenthesis.
fn is_stopped(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    matches!(state, Some("T" | "t"))
}

#[cfg(test)]
mod tests {
    use super::{if_stopped, is_stopped, listener};

    #[test]
    fn the_state_is_read_behind_the_name_of_the_program() {
        assert!(is_stopped("12 (meetpoint) T 1 12"));
        assert!(is_stopped("12 (a) b (c)) t 1 12"));
        assert!(!is_stopped("12 (T) S 1 12"));
        assert!(!is_stopped(""));
    }

    #[test]
    fn the_process_that_listens_is_found_by_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        assert_eq!(listener(&socket), None);
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(listener(&socket), Some(std::process::id()));
    }

    #[test]
    fn a_process_that_runs_is_not_stopped() {
        assert_eq!(if_stopped(std::process::id()), None);
    }
}
