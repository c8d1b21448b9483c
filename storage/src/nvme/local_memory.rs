//! Commands of the Subsystem Local Memory command set: move bytes between host, blocks and the
//! memory of a drive.
//!
//! NVM Express Subsystem Local Memory Command Set Specification 1.0, chapter 3. Operation codes and
//! fields were taken from a public implementation of a target and not compared with the document
//! itself. No drive or emulator that executes them was available; the tests check only the bytes.
//! Offsets and lengths are multiples of 4 bytes.

use super::command::{Command, halves};

/// Command set identifier (CSI).
pub const COMMAND_SET: u8 = 3;

/// Memory Read, command 02h: from the drive's memory to the host.
pub fn read(namespace: u32, begin: u64, bytes: u32) -> Command {
    range(0x02, namespace, begin, bytes)
}

/// Memory Write, command 05h: from the host to the drive's memory.
pub fn write(namespace: u32, begin: u64, bytes: u32) -> Command {
    range(0x05, namespace, begin, bytes)
}

/// Memory Fill, command 04h: zeroes.
pub fn fill(namespace: u32, begin: u64, bytes: u32) -> Command {
    range(0x04, namespace, begin, bytes)
}

/// First byte in CDW10 and CDW11, length in CDW12.
fn range(opcode: u8, namespace: u32, begin: u64, bytes: u32) -> Command {
    let [low, high] = halves(begin);
    Command {
        opcode,
        namespace,
        dwords_10_to_15: [low, high, bytes, 0, 0, 0],
        ..Command::default()
    }
}

/// Bytes of a source range.
pub const SOURCE_RANGE_BYTES: usize = 32;

/// Blocks of another namespace that are copied into the drive's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceBlocks {
    /// Namespace of the blocks (SNSID).
    pub namespace: u32,
    /// First block (SLBA).
    pub first: u64,
    /// Blocks, 1 to 65,536 (NLB, 0's based).
    pub blocks: u32,
}

impl SourceBlocks {
    /// The range in format 2h: NVM Command Set Specification 1.1, Copy command.
    pub fn encode(&self) -> [u8; SOURCE_RANGE_BYTES] {
        let blocks = self.blocks.clamp(1, 1 << 16) - 1;
        let mut bytes = [0; SOURCE_RANGE_BYTES];
        bytes[0..4].copy_from_slice(&self.namespace.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..18].copy_from_slice(&(blocks as u16).to_le_bytes());
        bytes
    }
}

/// Memory Copy, command 01h, from ranges of blocks: its data are `ranges` source ranges in format
/// 2h, 1 to 256, `bytes` the bytes of all of them.
///
/// ```text
/// CDW2, CDW3    bytes        CDW10, CDW11    first byte of the target
/// CDW12   11:8  format of the ranges    7:0  ranges less one
/// ```
pub fn copy_blocks(namespace: u32, begin: u64, bytes: u64, ranges: u32) -> Command {
    const FORMAT: u32 = 2;
    let ([bytes_low, bytes_high], [low, high]) = (halves(bytes), halves(begin));
    Command {
        opcode: 0x01,
        namespace,
        dwords_2_to_5: [bytes_low, bytes_high, 0, 0],
        dwords_10_to_15: [low, high, FORMAT << 8 | (ranges.clamp(1, 256) - 1), 0, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(dwords: &[(usize, u32)]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for &(dword, value) in dwords {
            bytes[4 * dword..][..4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn memory_commands_name_first_byte_and_length() {
        for (opcode, command) in [(2, read as fn(u32, u64, u32) -> Command), (5, write), (4, fill)]
        {
            let expected = [(0, opcode), (1, 3), (10, 0x1000), (11, 1), (12, 0x2000)];
            assert_eq!(command(3, 0x1_0000_1000, 0x2000).encode(), entry(&expected));
        }
    }

    #[test]
    fn a_copy_names_its_target_and_its_data_name_the_blocks() {
        let expected = [(0, 1), (1, 3), (2, 0x3000), (10, 0x1000), (12, 0x0201)];
        assert_eq!(copy_blocks(3, 0x1000, 0x3000, 2).encode(), entry(&expected));
        let source = SourceBlocks { namespace: 1, first: 0x0102, blocks: 257 };
        let mut bytes = [0; SOURCE_RANGE_BYTES];
        (bytes[0], bytes[8], bytes[9], bytes[17]) = (1, 2, 1, 1);
        assert_eq!(source.encode(), bytes);
    }
}
