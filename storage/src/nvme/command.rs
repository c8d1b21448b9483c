//! Encodes NVMe commands: as submission queue entries, and in the structure that Linux expects.
//!
//! NVM Express Base Specification 2.0, section 3.3.3.1 (submission queue entry, figures 86 and 87);
//! the structure of Linux is `nvme_uring_cmd` of `linux/nvme_ioctl.h`.

/// Bytes of a submission queue entry.
pub const COMMAND_BYTES: usize = 64;

/// Bytes of a command in Linux's structure.
pub(crate) const PASSTHROUGH_BYTES: usize = 72;

/// A command without its data pointer and identifier, which the driver fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Command {
    /// Operation code (CDW0, bits 7:0).
    pub opcode: u8,
    /// Namespace (CDW1, NSID); 0 for none.
    pub namespace: u32,
    /// CDW2 to CDW5.
    pub dwords_2_to_5: [u32; 4],
    /// CDW10 to CDW15.
    pub dwords_10_to_15: [u32; 6],
}

/// Memory from or to which a command moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) address: u64,
    pub(crate) bytes: u32,
}

impl Command {
    /// The submission queue entry, with an empty data pointer and identifier 0.
    pub fn encode(&self) -> [u8; COMMAND_BYTES] {
        let mut bytes = [0; COMMAND_BYTES];
        bytes[0] = self.opcode;
        put(&mut bytes, 4, &[self.namespace]);
        put(&mut bytes, 8, &self.dwords_2_to_5);
        put(&mut bytes, 40, &self.dwords_10_to_15);
        bytes
    }

    /// The command in Linux's structure. `None` if CDW4 or CDW5 is set, for which the structure
    /// has no fields.
    pub(crate) fn passthrough(&self, memory: Memory) -> Option<[u8; PASSTHROUGH_BYTES]> {
        let [dword_2, dword_3, 0, 0] = self.dwords_2_to_5 else { return None };
        let mut bytes = [0; PASSTHROUGH_BYTES];
        let mut native = |at: usize, value: &[u8]| {
            bytes[at..at + value.len()].copy_from_slice(value);
        };
        native(0, &[self.opcode]);
        native(4, &self.namespace.to_ne_bytes());
        native(8, &dword_2.to_ne_bytes());
        native(12, &dword_3.to_ne_bytes());
        native(24, &memory.address.to_ne_bytes());
        native(36, &memory.bytes.to_ne_bytes());
        for (index, dword) in self.dwords_10_to_15.iter().enumerate() {
            native(40 + 4 * index, &dword.to_ne_bytes());
        }
        Some(bytes)
    }
}

/// Writes 32-bit values, little-endian.
fn put(bytes: &mut [u8], at: usize, dwords: &[u32]) {
    for (index, dword) in dwords.iter().enumerate() {
        bytes[at + 4 * index..][..4].copy_from_slice(&dword.to_le_bytes());
    }
}

/// The low and the high dword of a 64-bit field.
pub(crate) fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Commands of the NVM command set: NVM Command Set Specification 1.0, chapter 3.
pub(crate) mod nvm {
    use super::{Command, halves};

    /// Flush: Base Specification 2.0, section 7.1.
    pub(crate) fn flush(namespace: u32) -> Command {
        Command { opcode: 0x00, namespace, ..Command::default() }
    }

    /// Write: section 3.2.6. `blocks` is from 1 to 65,536.
    pub(crate) fn write(namespace: u32, first: u64, blocks: u32) -> Command {
        blocks_command(0x01, namespace, first, blocks)
    }

    /// Read: section 3.2.4. `blocks` is from 1 to 65,536.
    pub(crate) fn read(namespace: u32, first: u64, blocks: u32) -> Command {
        blocks_command(0x02, namespace, first, blocks)
    }

    fn blocks_command(opcode: u8, namespace: u32, first: u64, blocks: u32) -> Command {
        debug_assert!((1..=1 << 16).contains(&blocks), "a command moves 1 to 65,536 blocks");
        let [low, high] = halves(first);
        // The number of blocks is 0's based.
        Command {
            opcode,
            namespace,
            dwords_10_to_15: [low, high, blocks - 1, 0, 0, 0],
            ..Command::default()
        }
    }
}

/// Identify: Base Specification 2.0, section 5.17; `structure` is the CNS value.
pub(crate) fn identify(structure: u8, namespace: u32, controller: u16) -> Command {
    let dword_10 = u32::from(structure) | u32::from(controller) << 16;
    Command {
        opcode: 0x06,
        namespace,
        dwords_10_to_15: [dword_10, 0, 0, 0, 0, 0],
        ..Command::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of an entry that are not zero, with their offsets.
    fn set(bytes: &[u8]) -> Vec<(usize, u8)> {
        bytes.iter().copied().enumerate().filter(|&(_, byte)| byte != 0).collect()
    }

    #[test]
    fn a_read_names_first_block_and_blocks_less_one() {
        let bytes = nvm::read(3, 0x0102_0304_0506, 256).encode();
        let dword_10 = [(40, 6), (41, 5), (42, 4), (43, 3), (44, 2), (45, 1)];
        let expected = [&[(0, 2), (4, 3)][..], &dword_10, &[(48, 255)]].concat();
        assert_eq!(set(&bytes), expected);
    }

    #[test]
    fn write_flush_and_identify_have_their_operation_codes() {
        assert_eq!(set(&nvm::write(1, 1, 1).encode()), [(0, 1), (4, 1), (40, 1)]);
        assert_eq!(set(&nvm::flush(1).encode()), [(4, 1)]);
        let sets = identify(0x1c, 0, 0xffff).encode();
        assert_eq!(set(&sets), [(0, 6), (40, 0x1c), (42, 0xff), (43, 0xff)]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn linux_takes_the_same_fields_at_its_own_offsets() {
        let command = nvm::read(3, 7, 2);
        let memory = Memory { address: 0x1000, bytes: 0x400 };
        let bytes = command.passthrough(memory).unwrap();
        let expected = [(0, 2), (4, 3), (25, 0x10), (37, 4), (40, 7), (48, 1)];
        assert_eq!(set(&bytes), expected);
    }

    #[test]
    fn a_command_that_uses_dword_4_cannot_be_passed_through() {
        let command = Command { dwords_2_to_5: [0, 0, 1, 0], ..Command::default() };
        assert_eq!(command.passthrough(Memory { address: 0, bytes: 0 }), None);
    }
}
