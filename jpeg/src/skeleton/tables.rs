//! Leaves out Huffman tables that are optimal for their scan, and rebuilds them.
//!
//! A table that is left out is represented by one without codes, which retains position and
//! destination. A real table without codes is not confused with it, as no scan can use one.

use super::{Skeleton, damaged, plan};
use crate::Coefficients;
use crate::markers::{Header, HuffmanSpec, Segment, code};
use crate::rewrite::{Both, Counter, Tape, write_scan};
use crate::{Error, Interrupt};

/// Bytes of a table without codes: class and destination, and 16 counts.
const EMPTY: usize = 17;

/// A table and the first scan that uses it.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// Offset of the segment.
    segment: usize,
    /// Offset of the table's first byte.
    at: usize,
    /// Bytes of the table.
    length: usize,
    /// Index of the scan.
    scan: usize,
    /// Index of the table in the scan: class and destination.
    table: usize,
}

/// Leaves out the tables that can be rebuilt from the counts of symbols by scan.
pub(super) fn empty(skeleton: Skeleton, counters: &[Counter]) -> Result<Skeleton, Error> {
    let mut header = Header::default();
    header.parse(&skeleton.outside)?;
    let mut edits = Vec::new();
    for table_use in uses(&skeleton.outside, &header) {
        let bytes = &skeleton.outside[table_use.at..table_use.at + table_use.length];
        if super::dictionary::holds_table(&bytes[1..]) {
            continue;
        }
        let best = counters[table_use.scan].table(table_use.table);
        if best.is_some_and(|table| is_table(&bytes[1..], &table)) {
            edits.push((table_use, [&bytes[..1], &[0; EMPTY - 1]].concat()));
        }
    }
    edit(skeleton, edits)
}

/// The symbols of scans, if they are recorded.
type Tapes = Vec<Option<Tape>>;

/// Rebuilds the tables that were left out; `None` if there is none. Also returns the symbols of
/// sequential scans that were computed for it; those of progressive ones could be many times the
/// coefficients.
pub(super) fn fill(
    skeleton: &Skeleton,
    coefficients: &Coefficients,
    interrupt: &Interrupt,
) -> Result<Option<(Skeleton, Tapes)>, Error> {
    let header = skeleton.header(coefficients)?;
    let mut counters: Vec<Option<Counter>> = header.scans.iter().map(|_| None).collect();
    let mut tapes: Tapes = header.scans.iter().map(|_| None).collect();
    let mut edits = Vec::new();
    for table_use in uses(&skeleton.outside, &header) {
        if table_use.length > EMPTY {
            continue;
        }
        if counters[table_use.scan].is_none() {
            let plan = plan(&skeleton.outside, &header, table_use.scan);
            let mut counter = Counter::new();
            let frame = &header.frame;
            let written = if plan.progressive {
                write_scan(&plan, frame, coefficients, &mut counter, interrupt)
            } else {
                let tape = tapes[table_use.scan].insert(Tape::default());
                let mut sink = Both(&mut counter, tape);
                write_scan(&plan, frame, coefficients, &mut sink, interrupt)
            };
            written.map_err(|why| why.or(damaged("a coefficient is out of range")))?;
            counters[table_use.scan] = Some(counter);
        }
        let counter = counters[table_use.scan].as_ref();
        if let Some(table) = counter.and_then(|counter| counter.table(table_use.table)) {
            let mut bytes = vec![skeleton.outside[table_use.at]];
            bytes.extend_from_slice(&table.counts);
            bytes.extend_from_slice(&table.symbols[..table.len()]);
            edits.push((table_use, bytes));
        }
    }
    if edits.is_empty() {
        return Ok(None);
    }
    Ok(Some((edit(skeleton.clone(), edits)?, tapes)))
}

/// Whether bytes are the counts and symbols of a table.
fn is_table(bytes: &[u8], table: &HuffmanSpec) -> bool {
    bytes[..16] == table.counts && bytes[16..] == table.symbols[..table.len()]
}

/// Each table's first use, in the order of the tables.
fn uses(outside: &[u8], header: &Header) -> Vec<Use> {
    let mut pending = [None; 8];
    let mut found = Vec::new();
    let mut scan = 0;
    for segment in &header.segments {
        match segment.marker {
            code::DHT => note_tables(outside, segment, &mut pending),
            code::SOS => {
                for table in plan(outside, header, scan).tables() {
                    let table_use = pending[table].take();
                    found.extend(table_use.map(|table_use| Use { scan, table, ..table_use }));
                }
                scan += 1;
            }
            _ => (),
        }
    }
    found.sort_by_key(|table_use| table_use.at);
    found
}

/// Records the positions of the tables of a segment.
fn note_tables(outside: &[u8], segment: &Segment, pending: &mut [Option<Use>; 8]) {
    let mut at = segment.content.start;
    while at + EMPTY <= segment.content.end {
        let kind = usize::from(outside[at]);
        let table = (kind >> 4 & 1) * 4 + (kind & 3);
        let symbols: usize = outside[at + 1..at + EMPTY].iter().map(|n| usize::from(*n)).sum();
        let length = EMPTY + symbols;
        pending[table] = Some(Use { segment: segment.bytes.start, at, length, scan: 0, table });
        at += length;
    }
}

/// Replaces tables by other bytes and updates the lengths of their segments.
fn edit(skeleton: Skeleton, edits: Vec<(Use, Vec<u8>)>) -> Result<Skeleton, Error> {
    let old = &skeleton.outside;
    let mut outside = Vec::with_capacity(old.len() + 64);
    let mut at = 0;
    // Where the segment of the table before starts, in the old bytes and the new ones.
    let mut segment = (usize::MAX, 0);
    for (table_use, bytes) in edits {
        outside.extend_from_slice(&old[at..table_use.at]);
        at = table_use.at + table_use.length;
        if segment.0 != table_use.segment {
            segment = (table_use.segment, outside.len() - (table_use.at - table_use.segment));
        }
        let field = segment.1 + 2..segment.1 + 4;
        let length =
            usize::from(u16::from_be_bytes([outside[field.start], outside[field.start + 1]]));
        let length = u16::try_from(length + bytes.len() - table_use.length)
            .map_err(|_| damaged("a segment is too long"))?;
        outside[field].copy_from_slice(&length.to_be_bytes());
        outside.extend_from_slice(&bytes);
    }
    outside.extend_from_slice(&old[at..]);
    Ok(Skeleton { outside, endings: skeleton.endings })
}
