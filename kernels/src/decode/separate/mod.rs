//! Separates pixels of three bytes into three planes.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod portable;

use crate::Cpu;

/// Writes the channels of pixels into planes. Panics if this machine lacks `cpu`, or if the lengths
/// differ.
pub(super) fn separate(cpu: Cpu, pixels: &[[u8; 3]], planes: [&mut [u8]; 3]) {
    assert!(cpu.is_available(), "this machine has no {}", cpu.name());
    let is_long = planes.iter().all(|plane| plane.len() == pixels.len());
    assert!(is_long, "a byte of each plane for each pixel");
    match cpu {
        #[cfg(target_arch = "x86_64")]
        Cpu::Avx2 | Cpu::Avx512 => avx2::separate(pixels, planes),
        _ => portable::separate(pixels, planes),
    }
}

#[cfg(test)]
mod tests {
    use super::{portable, separate};
    use crate::golden;

    #[test]
    fn every_count_of_pixels_is_separated_as_by_the_portable_code() {
        let bytes = golden::picture("noise", 4, 300, 1).pixels;
        for cpu in golden::instruction_sets() {
            for count in (0..100).chain([255, 300]) {
                let pixels = &bytes.as_chunks::<3>().0[..count];
                let [mut expected, mut found] =
                    [[(); 3], [(); 3]].map(|planes| planes.map(|()| vec![0; count]));
                portable::separate(pixels, expected.each_mut().map(|it| &mut it[..]));
                separate(cpu, pixels, found.each_mut().map(|it| &mut it[..]));
                assert_eq!(found, expected, "{} {count}", cpu.name());
            }
        }
    }
}
