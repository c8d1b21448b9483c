//! Commands of the Computational Programs command set: load a program, activate it, name the memory
//! that it works on, and execute it.
//!
//! NVM Express Computational Programs Command Set Specification 1.1; each function names the
//! figures. The layouts were taken from a public transcription of those figures and not compared
//! with the document itself. No drive or emulator that executes them was available; the tests check
//! only the bytes.

use super::command::{Command, halves};

/// Command set identifier (CSI).
pub const COMMAND_SET: u8 = 4;

/// The name of a program and its type (PIT, bits 27:25 of CDW10 of Load Program).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramName {
    /// Type of the name, 0 to 7.
    pub kind: u8,
    /// The name (PID).
    pub value: u64,
}

/// A piece of a program that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadProgram {
    /// Compute namespace.
    pub namespace: u32,
    /// Index under which the program is loaded (PIND).
    pub program: u16,
    /// Type of the program (PTYPE).
    pub program_type: u8,
    /// Its name.
    pub name: ProgramName,
    /// Bytes of the whole program (PSIZE).
    pub program_bytes: u32,
    /// Bytes of this piece (NUMB).
    pub bytes: u32,
    /// Offset of the piece in the program (LOFF).
    pub offset: u32,
}

/// Load Program, admin command 85h: figures 39 to 44, with bit 24 of CDW10 (SEL) clear.
pub fn load(piece: LoadProgram) -> Command {
    let LoadProgram { namespace, program, program_type, name, program_bytes, bytes, offset } =
        piece;
    let dword_10 =
        u32::from(program) | u32::from(program_type) << 16 | u32::from(name.kind & 7) << 25;
    let [low, high] = halves(name.value);
    Command {
        opcode: 0x85,
        namespace,
        dwords_10_to_15: [dword_10, program_bytes, low, high, bytes, offset],
        ..Command::default()
    }
}

/// Load Program with bit 24 of CDW10 (SEL) set, which unloads a program.
pub fn unload(namespace: u32, program: u16) -> Command {
    let dword_10 = u32::from(program) | 1 << 24;
    Command {
        opcode: 0x85,
        namespace,
        dwords_10_to_15: [dword_10, 0, 0, 0, 0, 0],
        ..Command::default()
    }
}

/// Program Activation Management, admin command 88h: figure 52.
pub fn activate(namespace: u32, program: u16, is_active: bool) -> Command {
    let dword_10 = u32::from(program) | u32::from(is_active) << 16;
    Command {
        opcode: 0x88,
        namespace,
        dwords_10_to_15: [dword_10, 0, 0, 0, 0, 0],
        ..Command::default()
    }
}

/// Bytes of the descriptor of a memory range.
pub const MEMORY_RANGE_BYTES: usize = 32;

/// A range of a memory namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRange {
    /// Memory namespace (MNSID).
    pub namespace: u32,
    /// Length in bytes.
    pub bytes: u32,
    /// First byte.
    pub begin: u64,
}

impl MemoryRange {
    /// The descriptor: figure 34.
    pub fn encode(&self) -> [u8; MEMORY_RANGE_BYTES] {
        let mut bytes = [0; MEMORY_RANGE_BYTES];
        bytes[0..4].copy_from_slice(&self.namespace.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.begin.to_le_bytes());
        bytes
    }
}

/// Memory Range Set Management, admin command 89h, that creates a set: figures 46 to 48. Its data
/// are the descriptors of `ranges` ranges; the drive answers with the identifier of the set.
pub fn create_range_set(namespace: u32, ranges: u8) -> Command {
    Command {
        opcode: 0x89,
        namespace,
        dwords_10_to_15: [0, ranges.into(), 0, 0, 0, 0],
        ..Command::default()
    }
}

/// Memory Range Set Management that deletes a set.
pub fn delete_range_set(namespace: u32, set: u16) -> Command {
    let dword_10 = 1 | u32::from(set) << 16;
    Command {
        opcode: 0x89,
        namespace,
        dwords_10_to_15: [dword_10, 0, 0, 0, 0, 0],
        ..Command::default()
    }
}

/// An execution of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecuteProgram {
    /// Compute namespace.
    pub namespace: u32,
    /// Index of the program (PIND).
    pub program: u16,
    /// Set of memory ranges (RSID); 0 if the ranges are in the data of the command.
    pub range_set: u16,
    /// Ranges in the data of the command (NUMR).
    pub ranges: u32,
    /// Bytes of the data of the command (DLEN).
    pub data_bytes: u32,
    /// Arguments of the program (CPARAM1 and CPARAM2).
    pub arguments: [u64; 2],
}

/// Execute Program, I/O command 01h: figures 16 to 22. With data, CDW4 is not zero, and Linux
/// cannot pass it through.
pub fn execute(execution: ExecuteProgram) -> Command {
    let ExecuteProgram { namespace, program, range_set, ranges, data_bytes, arguments } = execution;
    let [first_low, first_high] = halves(arguments[0]);
    let [second_low, second_high] = halves(arguments[1]);
    Command {
        opcode: 0x01,
        namespace,
        dwords_2_to_5: [u32::from(program) | u32::from(range_set) << 16, ranges, data_bytes, 0],
        dwords_10_to_15: [first_low, first_high, second_low, second_high, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of 16 dwords, of which those named are not zero.
    fn entry(dwords: &[(usize, u32)]) -> [u8; 64] {
        let mut bytes = [0; 64];
        for &(dword, value) in dwords {
            bytes[4 * dword..][..4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn load_program_has_index_type_name_and_piece() {
        let command = load(LoadProgram {
            namespace: 2,
            program: 0x0304,
            program_type: 0x05,
            name: ProgramName { kind: 3, value: 0x1122_3344_5566_7788 },
            program_bytes: 0x1000,
            bytes: 0x0200,
            offset: 0x0e00,
        });
        let expected = [
            (0, 0x85),
            (1, 2),
            (10, 0x0605_0304),
            (11, 0x1000),
            (12, 0x5566_7788),
            (13, 0x1122_3344),
            (14, 0x0200),
            (15, 0x0e00),
        ];
        assert_eq!(command.encode(), entry(&expected));
        let unloaded = entry(&[(0, 0x85), (1, 2), (10, 0x0100_0007)]);
        assert_eq!(unload(2, 7).encode(), unloaded);
    }

    #[test]
    fn activation_has_the_index_and_the_selection_above_it() {
        let expected = |dword_10| entry(&[(0, 0x88), (1, 1), (10, dword_10)]);
        assert_eq!(activate(1, 0xabcd, true).encode(), expected(0x0001_abcd));
        assert_eq!(activate(1, 0xabcd, false).encode(), expected(0x0000_abcd));
    }

    #[test]
    fn range_sets_are_created_from_descriptors_and_deleted_by_identifier() {
        let created = entry(&[(0, 0x89), (1, 1), (11, 3)]);
        assert_eq!(create_range_set(1, 3).encode(), created);
        let deleted = entry(&[(0, 0x89), (1, 1), (10, 0x0009_0001)]);
        assert_eq!(delete_range_set(1, 9).encode(), deleted);
        let range = MemoryRange { namespace: 5, bytes: 0x4000, begin: 0x1_0000_0000 };
        let mut expected = [0; MEMORY_RANGE_BYTES];
        (expected[0], expected[5], expected[12]) = (5, 0x40, 1);
        assert_eq!(range.encode(), expected);
    }

    #[test]
    fn execute_program_has_its_fields_in_the_first_dwords_and_its_arguments_behind_the_data() {
        let execution = ExecuteProgram {
            namespace: 1,
            program: 0x0102,
            range_set: 0x0304,
            arguments: [0x1_0000_0002, 0x3_0000_0004],
            ..ExecuteProgram::default()
        };
        let expected = [(0, 1), (1, 1), (2, 0x0304_0102), (10, 2), (11, 1), (12, 4), (13, 3)];
        assert_eq!(execute(execution).encode(), entry(&expected));
        let with_data = execute(ExecuteProgram { ranges: 2, data_bytes: 64, ..execution });
        let expected = [&expected[..], &[(3, 2), (4, 64)]].concat();
        assert_eq!(with_data.encode(), entry(&expected));
    }
}
