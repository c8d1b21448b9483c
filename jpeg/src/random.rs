//! Random coefficients, and files that contain them, for tests of readers and writers.

use super::coefficient_reader::{order, zeros};
use super::markers::{Header, code};
use super::skeleton::Skeleton;
use super::{Coefficients, assemble};
use proptest::prelude::*;

/// A frame and its scans.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    width: u16,
    height: u16,
    sampling: Vec<(u8, u8)>,
    script: Script,
    restart_interval: u16,
    /// The distribution of the coefficients.
    seed: u64,
    /// Of 64 coefficients, about how many are not zero.
    density: u64,
}

#[derive(Debug, Clone, Copy)]
enum Script {
    Sequential,
    Separate,
    Progressive,
    /// One bit and one band of one component in each scan.
    Bitwise,
}

/// Any shape that the format allows and that is small enough for tests.
pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let samplings = prop_oneof![
        Just(vec![(1, 1)]),
        Just(vec![(2, 2)]),
        Just(vec![(1, 1); 3]),
        Just(vec![(2, 1), (1, 1), (1, 1)]),
        Just(vec![(2, 2), (1, 1), (1, 1)]),
        Just(vec![(4, 1), (1, 1), (1, 2)]),
        Just(vec![(1, 2), (3, 1), (1, 1)]),
        Just(vec![(2, 2), (1, 1), (1, 1), (2, 2)]),
    ];
    let script = prop_oneof![
        Just(Script::Sequential),
        Just(Script::Separate),
        Just(Script::Progressive),
        Just(Script::Bitwise),
    ];
    (1..70u16, 1..70u16, samplings, script, 0..9u16, any::<u64>(), 0..30u64).prop_map(
        |(width, height, sampling, script, restart_interval, seed, density)| Shape {
            width,
            height,
            sampling,
            script,
            restart_interval,
            seed,
            density,
        },
    )
}

/// A scan: components, band, and bits before and now.
type Scan = (Vec<usize>, [u8; 2], [u8; 2]);

impl Shape {
    fn scans(&self) -> Vec<Scan> {
        let each: Vec<Vec<usize>> = (0..self.sampling.len()).map(|index| vec![index]).collect();
        let all = vec![(0..self.sampling.len()).collect::<Vec<_>>()];
        let scan = |group: &Vec<usize>, band, bits| (group.clone(), band, bits);
        let mut scans = Vec::new();
        let mut add = |groups: &[Vec<usize>], band, bits| {
            scans.extend(groups.iter().map(|group| scan(group, band, bits)));
        };
        match self.script {
            Script::Sequential => add(&all, [0, 63], [0, 0]),
            Script::Separate => add(&each, [0, 63], [0, 0]),
            Script::Progressive => {
                add(&all, [0, 0], [0, 1]);
                add(&each, [1, 5], [0, 2]);
                add(&each, [6, 63], [0, 2]);
                add(&each, [1, 63], [2, 1]);
                add(&all, [0, 0], [1, 0]);
                add(&each, [1, 63], [1, 0]);
            }
            Script::Bitwise => {
                add(&each, [0, 0], [0, 3]);
                add(&each, [1, 1], [0, 0]);
                add(&each, [2, 63], [0, 3]);
                for bit in [3, 2, 1] {
                    add(&each, [2, 63], [bit, bit - 1]);
                    add(&each, [0, 0], [bit, bit - 1]);
                }
            }
        }
        scans
    }

    fn is_progressive(&self) -> bool {
        matches!(self.script, Script::Progressive | Script::Bitwise)
    }

    /// The file without its scans and with empty tables.
    fn outside(&self) -> Vec<u8> {
        let mut bytes = vec![0xff, code::SOI, 0xff, code::DQT, 0, 67, 0];
        bytes.extend([3; 64]);
        let frame = if self.is_progressive() { code::SOF2 } else { code::SOF1 };
        let count = self.sampling.len() as u8;
        bytes.extend([0xff, frame, 0, 8 + 3 * count, 8]);
        bytes.extend(self.height.to_be_bytes());
        bytes.extend(self.width.to_be_bytes());
        bytes.push(count);
        for (id, (h, v)) in (1..).zip(&self.sampling) {
            bytes.extend([id, h << 4 | v, 0]);
        }
        bytes.extend([0xff, code::DRI, 0, 4]);
        bytes.extend(self.restart_interval.to_be_bytes());
        for (components, band, bits) in self.scans() {
            for kind in [0, 0x11] {
                bytes.extend([0xff, code::DHT, 0, 19, kind]);
                bytes.extend([0; 16]);
            }
            let count = components.len() as u8;
            bytes.extend([0xff, code::SOS, 0, 6 + 2 * count, count]);
            bytes.extend(components.iter().flat_map(|index| [*index as u8 + 1, 1]));
            bytes.extend([band[0], band[1], bits[0] << 4 | bits[1]]);
        }
        bytes.extend([0xff, code::EOI]);
        bytes
    }

    /// Coefficients that differ from zero in blocks that the scans hold.
    fn coefficients(&self, header: &Header) -> Coefficients {
        let mut state = self.seed | 1;
        let mut next = |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % bound
        };
        let mut coefficients = zeros(&header.frame);
        for scan in &header.scans {
            let order = order(&header.frame, scan);
            for (x, y) in
                (0..order.mcus_high).flat_map(|y| (0..order.mcus_wide).map(move |x| (x, y)))
            {
                for cell in order.cells() {
                    let block = &mut coefficients.planes[cell.component].blocks[cell.block(x, y)].0;
                    if scan.first == 0 {
                        block[0] = next(2048) as i16 - 1024;
                    }
                    if scan.last > 0 && scan.high == 0 {
                        for _ in 0..next(2 * self.density + 1) {
                            let size = 1 + next(10);
                            let value = next(1 << size) as i16;
                            let place = 1 + next(63) as usize;
                            block[place] = if next(2) == 0 { value } else { -value };
                        }
                    }
                }
            }
        }
        coefficients
    }

    /// A file and the coefficients in it.
    pub(super) fn file(&self) -> (Vec<u8>, Coefficients) {
        let skeleton = Skeleton::plain(self.outside());
        let mut header = Header::default();
        header.parse(&self.outside()).unwrap();
        let coefficients = self.coefficients(&header);
        (assemble(&skeleton, &coefficients).unwrap(), coefficients)
    }
}
