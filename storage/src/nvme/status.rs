//! The status of a completed command: NVM Express Base Specification 2.0, section 3.3.3.2.1.

/// The status of a completed command that did not succeed.
///
/// ```text
/// bit   14   13    12..11   10..8            7..0
///       DNR  More  CRD      type (SCT)       code (SC)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    field: u16,
}

/// The type of a status code (SCT).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusType {
    /// Any command.
    Generic,
    /// The command itself.
    CommandSpecific,
    /// The medium or the integrity of its data.
    Media,
    /// The path between host and namespace.
    Path,
    /// The vendor's.
    Vendor,
    /// Not defined.
    Reserved(u8),
}

impl Status {
    /// Parses the status field without the phase bit; `None` for success.
    pub fn new(field: u16) -> Option<Self> {
        (field & 0x07ff != 0).then_some(Self { field: field & 0x7fff })
    }

    /// The whole field.
    pub fn field(self) -> u16 {
        self.field
    }

    /// The type of the code.
    pub fn status_type(self) -> StatusType {
        match (self.field >> 8) as u8 & 7 {
            0 => StatusType::Generic,
            1 => StatusType::CommandSpecific,
            2 => StatusType::Media,
            3 => StatusType::Path,
            7 => StatusType::Vendor,
            other => StatusType::Reserved(other),
        }
    }

    /// The code within its type.
    pub fn code(self) -> u8 {
        self.field as u8
    }

    /// Whether the same command may succeed if it is sent again (not DNR).
    pub fn is_retryable(self) -> bool {
        self.field & 0x4000 == 0
    }

    /// The name of the code in the specification; `None` for one that is not listed here.
    pub fn name(self) -> Option<&'static str> {
        Some(match (self.status_type(), self.code()) {
            (StatusType::Generic, code) => match code {
                0x01 => "invalid command operation code",
                0x02 => "invalid field in command",
                0x04 => "data transfer error",
                0x05 => "command aborted because of power loss",
                0x06 => "internal error",
                0x07 => "command abort requested",
                0x0b => "invalid namespace or format",
                0x0d => "invalid SGL segment descriptor",
                0x13 => "invalid PRP offset",
                0x1c => "sanitize in progress",
                0x20 => "namespace is write protected",
                0x2c => "command set not enabled",
                0x80 => "logical block address out of range",
                0x81 => "capacity exceeded",
                0x82 => "namespace not ready",
                0x83 => "reservation conflict",
                _ => return None,
            },
            (StatusType::Media, code) => match code {
                0x80 => "write fault",
                0x81 => "unrecovered read error",
                0x82 => "guard check error",
                0x83 => "application tag check error",
                0x84 => "reference tag check error",
                0x85 => "compare failure",
                0x86 => "access denied",
                0x87 => "deallocated or unwritten logical block",
                _ => return None,
            },
            (
                StatusType::CommandSpecific
                | StatusType::Path
                | StatusType::Vendor
                | StatusType::Reserved(_),
                _,
            ) => return None,
        })
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match (self.name(), self.status_type()) {
            (Some(name), _) => name,
            (None, StatusType::Generic) => "unknown generic status",
            (None, StatusType::CommandSpecific) => "status of this command",
            (None, StatusType::Media) => "media error",
            (None, StatusType::Path) => "path error",
            (None, StatusType::Vendor) => "status of the vendor",
            (None, StatusType::Reserved(_)) => "undefined status",
        };
        write!(formatter, "NVMe status {:#06x}: {name}", self.field)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_is_no_status() {
        assert_eq!(Status::new(0), None);
        // The bit More alone says nothing about failure.
        assert_eq!(Status::new(0x2000), None);
    }

    #[test]
    fn type_code_and_retry_are_taken_from_their_bits() {
        let opcode = Status::new(0x4001).unwrap();
        assert_eq!((opcode.status_type(), opcode.code()), (StatusType::Generic, 1));
        assert!(!opcode.is_retryable());
        assert_eq!(opcode.to_string(), "NVMe status 0x4001: invalid command operation code");
        let read = Status::new(0x0281).unwrap();
        assert_eq!((read.status_type(), read.code()), (StatusType::Media, 0x81));
        assert!(read.is_retryable());
        assert_eq!(read.name(), Some("unrecovered read error"));
        let vendor = Status::new(0x0701).unwrap();
        assert_eq!((vendor.status_type(), vendor.name()), (StatusType::Vendor, None));
        assert_eq!(Status::new(0x0455).unwrap().status_type(), StatusType::Reserved(4));
    }
}
