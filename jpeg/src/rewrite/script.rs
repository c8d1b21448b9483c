//! Which scans a rewritten file has.

use super::plan::{Part, ScanPlan};
use crate::markers::Header;

/// Maximum number of blocks in an MCU of several components (T.81, B.2.3).
const MCU_BLOCKS_MAX: u32 = 10;

/// Sequential: one scan of all components, or one each if the MCU would be too large.
pub(super) fn sequential(header: &Header) -> Vec<ScanPlan> {
    let plan = |parts| ScanPlan {
        parts,
        progressive: false,
        first: 0,
        last: 63,
        high: 0,
        low: 0,
        restart_interval: 0,
    };
    groups(header).into_iter().map(plan).collect()
}

/// Progressive: the scans of libjpeg's `jpeg_simple_progression`.
pub(super) fn progressive(header: &Header) -> Vec<ScanPlan> {
    let parts = parts(header);
    let mut plans = Vec::new();
    let scan = |parts: &[Part], band: [u8; 2], bits: [u8; 2]| ScanPlan {
        parts: parts.to_vec(),
        progressive: true,
        first: band[0],
        last: band[1],
        high: bits[0],
        low: bits[1],
        restart_interval: 0,
    };
    let ac = |plans: &mut Vec<ScanPlan>, components: &[usize], band, bits| {
        for component in components {
            plans.push(scan(&parts[*component..=*component], band, bits));
        }
    };
    let dc = |plans: &mut Vec<ScanPlan>, bits| {
        plans.extend(groups(header).iter().map(|group| scan(group, [0, 0], bits)));
    };
    let all: Vec<usize> = (0..parts.len()).collect();
    dc(&mut plans, [0, 1]);
    if parts.len() == 3 && has_chroma(header) {
        ac(&mut plans, &[0], [1, 5], [0, 2]);
        ac(&mut plans, &[2, 1], [1, 63], [0, 1]);
        ac(&mut plans, &[0], [6, 63], [0, 2]);
        ac(&mut plans, &[0], [1, 63], [2, 1]);
        dc(&mut plans, [1, 0]);
        ac(&mut plans, &[2, 1, 0], [1, 63], [1, 0]);
    } else {
        ac(&mut plans, &all, [1, 5], [0, 2]);
        ac(&mut plans, &all, [6, 63], [0, 2]);
        ac(&mut plans, &all, [1, 63], [2, 1]);
        dc(&mut plans, [1, 0]);
        ac(&mut plans, &all, [1, 63], [1, 0]);
    }
    plans
}

/// The components with the tables that libjpeg assigns to them.
fn parts(header: &Header) -> Vec<Part> {
    let chroma = has_chroma(header);
    let table = |component| usize::from(chroma && matches!(component, 1 | 2));
    (0..header.frame.count)
        .map(|component| Part { component, dc: table(component), ac: table(component) })
        .collect()
}

/// All components together, or each alone.
fn groups(header: &Header) -> Vec<Vec<Part>> {
    let blocks: u32 = header.frame.components().iter().map(|c| c.h * c.v).sum();
    let parts = parts(header);
    if parts.len() == 1 || blocks <= MCU_BLOCKS_MAX {
        vec![parts]
    } else {
        parts.into_iter().map(|part| vec![part]).collect()
    }
}

/// Whether the second and third component are colour differences, by libjpeg's rules.
fn has_chroma(header: &Header) -> bool {
    let components = header.frame.components();
    match (components, header.adobe) {
        ([_, _, _], _) if header.jfif => true,
        ([_, _, _], Some(transform)) => transform != 0,
        ([red, green, blue], None) => [red.id, green.id, blue.id] != *b"RGB",
        ([_, _, _, _], Some(transform)) => transform == 2,
        _ => false,
    }
}
