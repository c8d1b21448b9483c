//! Replaces bytes by those of a table of 256.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

use super::tables::Table;
use crate::Cpu;

/// Replaces every value by its entry in a table. Panics if this machine lacks `cpu`.
pub(super) fn look_up(cpu: Cpu, table: &Table, values: &mut [u8]) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 => avx2::look_up(table, values),
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx512 => avx512::look_up(table, values),
        _ => portable::look_up(table, values),
    }
}

#[cfg(test)]
mod tests {
    use super::{look_up, portable};
    use crate::golden;

    #[test]
    fn every_value_of_every_length_is_replaced_as_by_the_portable_code() {
        for cpu in golden::instruction_sets() {
            for (seed, length) in (0..300).chain([1000, 4099]).enumerate() {
                let table = golden::picture("noise", seed as u32, 256, 1).pixels;
                let table = table[..256].try_into().expect("256 values");
                let mut values = golden::picture("noise", 9, 1400, 1).pixels;
                values.truncate(length);
                let mut expected = values.clone();
                portable::look_up(&table, &mut expected);
                look_up(cpu, &table, &mut values);
                assert_eq!(values, expected, "{} {length}", cpu.name());
            }
        }
    }
}
