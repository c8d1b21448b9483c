//! Receivers of the symbols of a scan: counters for building a table, a tape in memory until the
//! table exists, or a writer of bytes.

use super::bits::BitWriter;
use super::optimal::{Frequencies, optimal_table};
use super::plan::RewriteFailure;
use crate::Interrupt;
use crate::coefficient_reader::restart_marker;
use crate::markers::HuffmanSpec;

/// Tables of a scan: four for DC, then four for AC.
pub(crate) const TABLES: usize = 8;

/// Receives the symbols of a scan in order.
pub(crate) trait Sink {
    /// A symbol of a table and the low `count` bits of `bits` after it, at most 15; those above
    /// are zero.
    fn symbol(&mut self, table: usize, symbol: u8, bits: u32, count: u32);

    /// One bit.
    fn bit(&mut self, bit: bool);

    /// The end of an interval, counted from 0; a restart marker follows unless it is the last.
    fn end_interval(&mut self, interval: usize, last: bool);
}

/// Counts symbols.
#[derive(Debug)]
pub(crate) struct Counter([Frequencies; TABLES]);

impl Counter {
    pub(crate) fn new() -> Self {
        Self([[0; 256]; TABLES])
    }

    /// The optimal table for the counted symbols, if any.
    pub(crate) fn table(&self, index: usize) -> Option<HuffmanSpec> {
        let used = self.0[index].iter().any(|frequency| *frequency > 0);
        used.then(|| optimal_table(&self.0[index]))
    }
}

impl Sink for Counter {
    #[inline(always)]
    fn symbol(&mut self, table: usize, symbol: u8, _bits: u32, _count: u32) {
        self.0[table % TABLES][usize::from(symbol)] += 1;
    }

    fn bit(&mut self, _bit: bool) {}

    fn end_interval(&mut self, _interval: usize, _last: bool) {}
}

/// Two sinks that both receive everything.
#[derive(Debug)]
pub(crate) struct Both<'a, A, B>(pub(crate) &'a mut A, pub(crate) &'a mut B);

impl<A: Sink, B: Sink> Sink for Both<'_, A, B> {
    #[inline(always)]
    fn symbol(&mut self, table: usize, symbol: u8, bits: u32, count: u32) {
        self.0.symbol(table, symbol, bits, count);
        self.1.symbol(table, symbol, bits, count);
    }

    #[inline(always)]
    fn bit(&mut self, bit: bool) {
        self.0.bit(bit);
        self.1.bit(bit);
    }

    fn end_interval(&mut self, interval: usize, last: bool) {
        self.0.end_interval(interval, last);
        self.1.end_interval(interval, last);
    }
}

/// Records everything for another sink, which may depend on the counts. It takes four bytes per
/// symbol: at most about twice the size of the coefficients.
#[derive(Debug, Default)]
pub(crate) struct Tape {
    /// In the two lowest bits one of the kinds below.
    steps: Vec<u32>,
}

impl Tape {
    /// Above it: table in 3 bits, symbol in 8, number of bits in 4, the bits.
    const SYMBOL: u32 = 0;
    /// Above it: the bit.
    const BIT: u32 = 1;
    const INTERVAL: u32 = 2;
    const LAST_INTERVAL: u32 = 3;

    /// Steps between two polls of the interrupt.
    const STEPS_PER_CHECK: usize = 1 << 18;

    /// Replays everything into another sink.
    pub(crate) fn play(
        &self,
        sink: &mut impl Sink,
        interrupt: &Interrupt,
    ) -> Result<(), RewriteFailure> {
        let mut interval = 0;
        for steps in self.steps.chunks(Self::STEPS_PER_CHECK) {
            if interrupt.is_raised() {
                return Err(RewriteFailure::Interrupted);
            }
            Self::play_some(steps, &mut interval, sink);
        }
        Ok(())
    }

    fn play_some(steps: &[u32], interval: &mut usize, sink: &mut impl Sink) {
        for step in steps {
            match step & 3 {
                Self::SYMBOL => sink.symbol(
                    (step >> 2 & 7) as usize,
                    (step >> 5) as u8,
                    step >> 17,
                    step >> 13 & 15,
                ),
                Self::BIT => sink.bit(step >> 2 == 1),
                kind => {
                    sink.end_interval(*interval, kind == Self::LAST_INTERVAL);
                    *interval += 1;
                }
            }
        }
    }
}

impl Sink for Tape {
    #[inline(always)]
    fn symbol(&mut self, table: usize, symbol: u8, bits: u32, count: u32) {
        debug_assert!(table < TABLES && count < 16);
        let symbol = u32::from(symbol);
        self.steps.push(bits << 17 | count << 13 | symbol << 5 | (table as u32) << 2);
    }

    #[inline(always)]
    fn bit(&mut self, bit: bool) {
        self.steps.push(u32::from(bit) << 2 | Self::BIT);
    }

    fn end_interval(&mut self, _interval: usize, last: bool) {
        self.steps.push(if last { Self::LAST_INTERVAL } else { Self::INTERVAL });
    }
}

/// By symbol: its code, and below it its length in [`LENGTH_BITS`] bits; 0 for none.
#[derive(Debug, Clone, Copy)]
struct Codes([u32; 256]);

const LENGTH_BITS: u32 = 5;

impl Codes {
    const NONE: Self = Self([0; 256]);

    fn new(spec: &HuffmanSpec) -> Self {
        let mut codes = Self::NONE;
        let (mut code, mut symbols) = (0_u32, spec.symbols.iter());
        for (length, count) in (1..).zip(spec.counts) {
            for symbol in symbols.by_ref().take(usize::from(count)) {
                codes.0[usize::from(*symbol)] = code << LENGTH_BITS | length;
                code += 1;
            }
            code <<= 1;
        }
        codes
    }
}

/// The bits that fill up the last byte of each interval.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Padding<'a> {
    /// The same everywhere: 0xff for ones, 0 for zeros.
    Same(u8),
    /// By interval.
    Each(&'a [u8]),
}

/// Writes the bytes of a scan.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    bits: BitWriter<'a>,
    tables: Box<[Codes; TABLES]>,
    padding: Padding<'a>,
    /// Whether a symbol had no code; the output is then invalid.
    pub(crate) lacks_code: bool,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        tables: &[Option<HuffmanSpec>; TABLES],
        padding: Padding<'a>,
    ) -> Self {
        let codes = tables.map(|spec| spec.as_ref().map_or(Codes::NONE, Codes::new));
        let tables = Box::new(codes);
        Self { bits: BitWriter::new(out), tables, padding, lacks_code: false }
    }
}

impl Sink for Writer<'_> {
    #[inline(always)]
    fn symbol(&mut self, table: usize, symbol: u8, bits: u32, count: u32) {
        let entry = self.tables[table % TABLES].0[usize::from(symbol)];
        self.lacks_code |= entry == 0;
        let (code, length) = (entry >> LENGTH_BITS, entry & ((1 << LENGTH_BITS) - 1));
        self.bits.put(code << count | bits, length + count);
    }

    #[inline(always)]
    fn bit(&mut self, bit: bool) {
        self.bits.put(u32::from(bit), 1);
    }

    fn end_interval(&mut self, interval: usize, last: bool) {
        let padding = match self.padding {
            Padding::Same(bits) => bits,
            Padding::Each(list) => list.get(interval).copied().unwrap_or(0xff),
        };
        self.bits.finish_byte(padding);
        if !last {
            self.bits.marker(restart_marker(interval));
        }
    }
}
