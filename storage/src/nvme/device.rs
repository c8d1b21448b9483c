//! Sends admin commands through the character device of a drive or namespace. The only file that
//! calls the NVMe driver by ioctl.
#![expect(unsafe_code, reason = "ioctl has no safe wrapper, and takes pointers to memory")]

use super::command::{Command, Memory, identify};
use super::identify::{
    COMMAND_SETS, CONTROLLER, CommandSets, Controller, IDENTIFY_BYTES, NAMESPACE, Namespace,
};
use super::status::Status;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `NVME_IOCTL_ID` of `linux/nvme_ioctl.h`.
const IOCTL_ID: u64 = 0x4e40;

/// `NVME_IOCTL_ADMIN_CMD`.
const IOCTL_ADMIN_COMMAND: u64 = 0xc048_4e41;

/// Bytes of the data buffer of an admin command, which are also its alignment.
#[repr(C, align(4096))]
struct Page([u8; IDENTIFY_BYTES]);

/// An open character device of a drive (`/dev/nvme0`) or a namespace (`/dev/ng0n1`).
#[derive(Debug)]
pub struct NvmeDevice {
    file: File,
}

impl NvmeDevice {
    /// Opens the device for reading, or for reading and writing.
    pub fn open(path: &Path, writable: bool) -> io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let file = File::options().read(true).write(writable).open(path)?;
        if file.metadata()?.file_type().is_char_device() {
            Ok(Self { file })
        } else {
            Err(crate::open::irregular())
        }
    }

    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// The identifier of its namespace.
    pub fn namespace_id(&self) -> io::Result<u32> {
        // SAFETY: this request takes no pointer.
        let id = unsafe { libc::ioctl(self.file.as_raw_fd(), IOCTL_ID as _) };
        u32::try_from(id).map_err(|_| match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOTTY) => not_nvme(),
            error => error,
        })
    }

    /// Sends an admin command that returns up to 4 KiB. If the drive rejects it, the inner error is
    /// a [`Status`].
    pub fn admin(&self, command: &Command) -> io::Result<Box<[u8; IDENTIFY_BYTES]>> {
        let mut page = Box::new(Page([0; IDENTIFY_BYTES]));
        let memory = Memory {
            address: (&raw mut page.0).expose_provenance() as u64,
            bytes: IDENTIFY_BYTES as u32,
        };
        let mut passed = command.passthrough(memory).ok_or_else(|| {
            let problem = "Linux cannot pass a command that uses CDW4 or CDW5";
            io::Error::new(io::ErrorKind::Unsupported, problem)
        })?;
        let fd = self.file.as_raw_fd();
        // SAFETY: the structure is 72 bytes long, as the request says, and the page that it names
        // outlives the call, which ends when the command has.
        let answer = unsafe { libc::ioctl(fd, IOCTL_ADMIN_COMMAND as _, passed.as_mut_ptr()) };
        match u16::try_from(answer) {
            Ok(field) => match Status::new(field) {
                None => Ok(Box::new(page.0)),
                Some(status) => Err(io::Error::other(status)),
            },
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::ENOTTY) => Err(not_nvme()),
                error => Err(error),
            },
        }
    }

    /// Identifies the controller.
    pub fn controller(&self) -> io::Result<Controller> {
        Ok(Controller::parse(&*self.admin(&identify(CONTROLLER, 0, 0))?))
    }

    /// Identifies a namespace.
    pub fn namespace(&self, id: u32) -> io::Result<Namespace> {
        let found = Namespace::parse(&*self.admin(&identify(NAMESPACE, id, 0))?);
        found.ok_or_else(|| {
            let problem = "the namespace has a format that is not defined";
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })
    }

    /// The command sets of the controller. `None` if it does not list them, which revision 2.0 of
    /// the specification introduced.
    pub fn command_sets(&self) -> io::Result<Option<CommandSets>> {
        // Controller FFFFh: the one that executes the command.
        match self.admin(&identify(COMMAND_SETS, 0, 0xffff)) {
            Ok(bytes) => Ok(Some(CommandSets::parse(&bytes))),
            Err(error) if status_of(&error).is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The status with which a drive answered, if the error contains one.
pub fn status_of(error: &io::Error) -> Option<Status> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Status>()).copied()
}

fn not_nvme() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not the character device of an NVMe namespace")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_other_devices_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ng0n1");
        std::fs::write(&path, [0; 4096]).unwrap();
        let refused = NvmeDevice::open(&path, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        let zero = NvmeDevice::open(Path::new("/dev/zero"), false).unwrap();
        assert_eq!(zero.namespace_id().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(zero.controller().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_status_is_found_in_an_error() {
        let status = Status::new(0x4001).unwrap();
        assert_eq!(status_of(&io::Error::other(status)), Some(status));
        assert_eq!(status_of(&io::Error::from_raw_os_error(libc::EIO)), None);
    }
}
