//! Parses the structures that the Identify command returns.
//!
//! NVM Express Base Specification 2.0, section 5.17 (figure 275: controller; CNS 1Ch: I/O command
//! sets); NVM Command Set Specification 1.0, figures 97 and 98 (namespace and block formats).

/// Bytes of each structure.
pub(crate) const IDENTIFY_BYTES: usize = 4096;

/// CNS values.
pub(crate) const NAMESPACE: u8 = 0x00;
pub(crate) const CONTROLLER: u8 = 0x01;
pub(crate) const COMMAND_SETS: u8 = 0x1c;

/// Smallest possible memory page of a controller (CAP.MPSMIN 0), in bytes. The unit of the
/// maximum transfer size is this or more.
const PAGE_BYTES_MIN: u64 = 4096;

/// A controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controller {
    /// Serial number.
    pub serial: String,
    /// Model.
    pub model: String,
    /// Maximum bytes of one command, for the smallest page size; `None` for no limit.
    pub transfer_bytes_max: Option<u64>,
    /// Whether a volatile write cache is present, which Flush empties.
    pub has_volatile_cache: bool,
}

impl Controller {
    /// Parses the structure.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> Self {
        let text = |from: usize, to: usize| {
            String::from_utf8_lossy(&bytes[from..to]).trim_matches([' ', '\0']).to_owned()
        };
        // MDTS: a power of two, in pages; 0 for no limit.
        let transfer_bytes_max = match bytes[77] {
            0 => None,
            power => PAGE_BYTES_MIN.checked_shl(power.into()).filter(|&bytes| bytes > 0),
        };
        Self {
            serial: text(4, 24),
            model: text(24, 64),
            transfer_bytes_max,
            has_volatile_cache: bytes[525] & 1 != 0,
        }
    }
}

/// A namespace of the NVM command set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespace {
    /// Its size in blocks.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of metadata of a block.
    pub metadata_bytes: u16,
}

impl Namespace {
    /// Parses the structure; `None` if its format is not defined.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> Option<Self> {
        let blocks = u64::from_le_bytes(bytes[0..8].try_into().expect("eight bytes"));
        // FLBAS: the low four bits of the format's index, and at bits 6:5 two more bits, which are
        // valid only if there are more than 16 formats.
        let (formats, selected) = (usize::from(bytes[25]) + 1, bytes[26]);
        let mut format = usize::from(selected & 0x0f);
        if formats > 16 {
            format |= usize::from(selected >> 5 & 3) << 4;
        }
        if format >= formats.min(64) {
            return None;
        }
        let described = &bytes[128 + 4 * format..][..4];
        let metadata_bytes = u16::from_le_bytes([described[0], described[1]]);
        // LBADS: a power of two; less than 512 bytes is not supported by the specification.
        let power = u32::from(described[2]);
        (9..=16).contains(&power).then_some(Self {
            blocks,
            block_bytes: 1 << power,
            metadata_bytes,
        })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes.into())
    }
}

/// The I/O command sets that a controller can be set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandSets {
    bits: u64,
}

impl CommandSets {
    /// Command set identifiers, with their names.
    const NAMES: [(u32, &'static str); 5] = [
        (0, "NVM"),
        (1, "key value"),
        (2, "zoned namespaces"),
        (Self::LOCAL_MEMORY, "subsystem local memory"),
        (Self::PROGRAMS, "computational programs"),
    ];
    const LOCAL_MEMORY: u32 = 3;
    const PROGRAMS: u32 = 4;

    /// Only the NVM command set: the default for drives that do not list their command sets.
    pub const NVM_ONLY: Self = Self { bits: 1 };

    /// Parses the structure: 512 combinations, of which a controller uses one.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> Self {
        let combinations = bytes.chunks_exact(8);
        let bits = combinations
            .map(|vector| u64::from_le_bytes(vector.try_into().expect("eight bytes")))
            .fold(0, |all, vector| all | vector);
        Self { bits }
    }

    fn has(self, identifier: u32) -> bool {
        self.bits >> identifier & 1 != 0
    }

    /// Whether programs can be loaded and executed on the drive.
    pub fn has_programs(self) -> bool {
        self.has(Self::PROGRAMS)
    }

    /// Whether the drive has memory that programs work on.
    pub fn has_local_memory(self) -> bool {
        self.has(Self::LOCAL_MEMORY)
    }

    /// The names of the known command sets.
    pub fn names(self) -> Vec<&'static str> {
        let named = Self::NAMES.iter().filter(|&&(identifier, _)| self.has(identifier));
        named.map(|&(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structure(set: &[(usize, &[u8])]) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        for (at, value) in set {
            bytes[*at..*at + value.len()].copy_from_slice(value);
        }
        bytes
    }

    #[test]
    fn a_controller_has_texts_without_padding_and_its_largest_transfer() {
        let bytes = structure(&[(4, b"csd0    "), (24, b"QEMU NVMe Ctrl  "), (77, &[7])]);
        let controller = Controller::parse(&bytes);
        assert_eq!((&*controller.serial, &*controller.model), ("csd0", "QEMU NVMe Ctrl"));
        assert_eq!(controller.transfer_bytes_max, Some(512 << 10));
        assert!(!controller.has_volatile_cache);
        assert!(Controller::parse(&structure(&[(525, &[7])])).has_volatile_cache);
        for power in [0, 52, 64, 255] {
            let unlimited = Controller::parse(&structure(&[(77, &[power])]));
            assert_eq!(unlimited.transfer_bytes_max, None, "{power}");
        }
    }

    #[test]
    fn a_namespace_has_the_block_size_of_its_selected_format() {
        let formats: [u8; 8] = [0, 0, 9, 0, 8, 0, 12, 0];
        let of = |selected: u8| {
            structure(&[(0, &1000_u64.to_le_bytes()), (25, &[1, selected]), (128, &formats)])
        };
        let small = Namespace::parse(&of(0)).unwrap();
        assert_eq!((small.block_bytes, small.metadata_bytes, small.bytes()), (512, 0, 512_000));
        let large = Namespace::parse(&of(1)).unwrap();
        assert_eq!((large.block_bytes, large.metadata_bytes), (4096, 8));
        assert_eq!(Namespace::parse(&of(2)), None, "there is no third format");
        assert_eq!(Namespace::parse(&structure(&[])), None, "a block of one byte");
    }

    #[test]
    fn more_than_sixteen_formats_use_two_more_bits() {
        let mut bytes = structure(&[(25, &[17, 0x21])]);
        bytes[128 + 4 * 17 + 2] = 12;
        bytes[128 + 4 + 2] = 9;
        assert_eq!(Namespace::parse(&bytes).unwrap().block_bytes, 4096);
        bytes[25] = 15;
        assert_eq!(Namespace::parse(&bytes).unwrap().block_bytes, 512);
    }

    #[test]
    fn command_sets_are_those_of_all_combinations() {
        let sets = CommandSets::parse(&structure(&[(0, &[0x01]), (8, &[0x19])]));
        assert!(sets.has_programs() && sets.has_local_memory());
        let names = ["NVM", "subsystem local memory", "computational programs"];
        assert_eq!(sets.names(), names);
        assert_eq!(CommandSets::NVM_ONLY.names(), ["NVM"]);
        assert!(!CommandSets::NVM_ONLY.has_programs());
    }
}
