//! From coefficients to the pixels of a region, a row of MCUs at a time.

use super::QuantTable;
use super::colours::Colours;
use super::geometry::{ComponentNeed, Need};
use super::idct::Dequantiser;
use super::markers::{COMPONENTS_MAX, Frame};
use super::merged::{self, Chroma};
use super::options::OutputColour;
use super::rows::BlockRows;
use super::source::Source;
use super::upsample::{self, SampleSpan, Side, Upsampling};
use super::window::Window;
use crate::stripe::{ROW_SLACK, Stripe};
use crate::{Cpu, Error, Interrupt, Region};
use std::ops::Range;

/// Bytes before the first pending row, one of which may be written.
const PLANE_MARGIN: usize = 32;

/// The parts of a file that define how coefficients become pixels.
pub(super) struct Conversion {
    pub(super) frame: Frame,
    pub(super) quant: [Option<QuantTable>; COMPONENTS_MAX],
    pub(super) colours: Colours,
    pub(super) output: OutputColour,
}

/// From coefficients to pixels.
#[derive(Debug, Default)]
pub(super) struct Pixels {
    rows: BlockRows,
    windows: [Window; COMPONENTS_MAX],
    /// A row of each component at full resolution.
    full: [Vec<u8>; COMPONENTS_MAX],
    /// Rows not yet passed to the caller: red, green and blue.
    planes: [Vec<u8>; 3],
    stride: usize,
}

impl Pixels {
    /// Decodes a region and passes it to the caller from top to bottom. Polls the interrupt before
    /// each row of MCUs.
    pub(super) fn run(
        &mut self,
        (cpu, interrupt): (Cpu, &Interrupt),
        picture: &Conversion,
        region: Region,
        need: &Need,
        mut source: Source<'_, '_>,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) -> Result<(), Error> {
        let mcus = need.mcu_columns.end - need.mcu_columns.start;
        self.rows.set_size(&picture.frame, mcus);
        for (window, component) in self.windows.iter_mut().zip(need.components()) {
            window.start(component, &need.mcu_columns, need.mcu_rows.start);
        }
        let dequantisers = [0, 1, 2, 3].map(|index| {
            let table = picture.quant[index].unwrap_or(QuantTable([1; 64]));
            Dequantiser::new(&table)
        });
        self.start_planes(region.width as usize, picture.frame.v_max as usize * 8 + 1);
        let mut y = region.y as usize;
        let end = (region.y + region.height) as usize;
        for mcu_row in need.mcu_rows.clone() {
            interrupt.check()?;
            source.row(mcu_row, need.mcu_columns.clone(), &mut self.rows)?;
            for (index, need) in need.components().enumerate() {
                let above = usize::from(need.upsampling.needs_context_rows());
                let keep = (y / need.upsampling.factors().1 as usize).saturating_sub(above);
                let blocks = self.rows.component(index);
                self.windows[index].add(cpu, &dequantisers[index], blocks, need, keep);
            }
            let is_last = mcu_row + 1 == need.mcu_rows.end;
            let ready = if is_last { end } else { self.ready(need).min(end) };
            if ready > y {
                self.hand_over(cpu, picture, need, &region, y..ready, sink);
                y = ready;
            }
        }
        Ok(())
    }

    /// The first row of pixels that needs rows of samples that are not decoded yet.
    fn ready(&self, need: &Need) -> usize {
        let ready = |(window, need): (&Window, &ComponentNeed)| {
            let below = usize::from(need.upsampling.needs_context_rows());
            window.end() * need.upsampling.factors().1 as usize - below
        };
        self.windows.iter().zip(need.components()).map(ready).min().unwrap_or(0)
    }

    fn start_planes(&mut self, width: usize, rows: usize) {
        self.stride = (width + ROW_SLACK).next_multiple_of(ROW_SLACK);
        for plane in &mut self.planes {
            let bytes = PLANE_MARGIN + rows * self.stride;
            if plane.len() < bytes {
                plane.resize(bytes, 0);
            }
        }
        for row in &mut self.full {
            if row.len() < self.stride {
                row.resize(self.stride, 0);
            }
        }
    }

    /// Computes rows of pixels and passes them on.
    fn hand_over(
        &mut self,
        cpu: Cpu,
        picture: &Conversion,
        need: &Need,
        region: &Region,
        rows: Range<usize>,
        sink: &mut dyn FnMut(Stripe<'_>),
    ) {
        let width = region.width as usize;
        let count = rows.len();
        for (index, y) in rows.enumerate() {
            let at = PLANE_MARGIN + index * self.stride;
            if merged::is_for(cpu)
                && let Some(chroma) = halved_chroma(&self.windows, picture, need, y)
            {
                // At both ends, the whole sample is computed, including a column outside the
                // region.
                let start = region.x as usize / 2 * 2;
                let end = (region.x as usize + width).next_multiple_of(2);
                let luma = start - self.windows[0].first_column();
                let luma = &self.windows[0].row(y)[luma..][..end - start];
                let from = at - (region.x as usize - start);
                let planes = self.planes.each_mut().map(|row| &mut row[from..][..end - start]);
                merged::to_rgb(cpu, luma, &chroma, start / 2..end / 2, planes);
                continue;
            }
            let planes = self.planes.each_mut().map(|plane| &mut plane[at..at + width]);
            let mut full = self.full.each_mut().map(Vec::as_mut_slice).into_iter();
            let samples: [&[u8]; COMPONENTS_MAX] = std::array::from_fn(|component| {
                let into = full.next().expect("there is a row for each component");
                match need.component(component) {
                    Some(need) => full_row(cpu, &self.windows[component], need, region, y, into),
                    None => &[],
                }
            });
            match picture.output {
                OutputColour::Rgb => picture.colours.convert(cpu, samples, planes),
                OutputColour::Grey => picture.colours.convert_to_grey(cpu, samples, planes),
            }
        }
        let planes = match picture.output {
            OutputColour::Rgb => self.planes.each_ref(),
            OutputColour::Grey => [&self.planes[0]; 3],
        };
        sink(Stripe {
            planes: planes.map(|plane| &plane[PLANE_MARGIN..][..count * self.stride]),
            stride: self.stride,
            width,
            rows: count,
        });
    }
}

/// The chroma of a row of pixels where luma has its resolution and chroma half as many columns,
/// with the triangle filter between them.
fn halved_chroma<'a>(
    windows: &'a [Window; COMPONENTS_MAX],
    picture: &Conversion,
    need: &Need,
    y: usize,
) -> Option<Chroma<'a>> {
    let (luma, cb, cr) = (need.component(0)?, need.component(1)?, need.component(2)?);
    if picture.colours != Colours::YCbCr
        || luma.upsampling != Upsampling::None
        || cr.upsampling != cb.upsampling
    {
        return None;
    }
    let [near, far] = nearest_rows(cb, y);
    let rows = |row| [windows[1].row_with_ends(row), windows[2].row_with_ends(row)];
    let far = match cb.upsampling {
        Upsampling::FancyH2V1 => None,
        Upsampling::FancyH2V2 => Some(rows(far)),
        _ => return None,
    };
    Some(Chroma { near: rows(near), far, first: windows[1].first_column() })
}

/// The row of a component that contains a row of pixels, and the next nearest one.
fn nearest_rows(need: &ComponentNeed, y: usize) -> [usize; 2] {
    let near = y / need.upsampling.factors().1 as usize;
    [near, if y.is_multiple_of(2) { near.saturating_sub(1) } else { near + 1 }]
}

/// A component's samples of a row of pixels, at full resolution.
fn full_row<'a>(
    cpu: Cpu,
    window: &'a Window,
    need: &ComponentNeed,
    region: &Region,
    y: usize,
    into: &'a mut [u8],
) -> &'a [u8] {
    let columns = region.x as usize..(region.x + region.width) as usize;
    let first = window.first_column();
    let into = &mut into[..columns.len()];
    let span = SampleSpan { first, width: need.width as usize };
    let is_upper = y.is_multiple_of(2);
    let [near, far] = nearest_rows(need, y);
    match need.upsampling {
        Upsampling::None => return &window.row(y)[columns.start - first..columns.end - first],
        Upsampling::FancyH2V1 => upsample::h2v1(cpu, window.row(near), span, columns, into),
        Upsampling::FancyH2V2 => {
            upsample::h2v2(cpu, window.row(near), window.row(far), span, columns, into);
        }
        Upsampling::FancyH1V2 => {
            let side = if is_upper { Side::Upper } else { Side::Lower };
            let part = columns.start - first..columns.end - first;
            let (near, far) = (&window.row(near)[part.clone()], &window.row(far)[part]);
            upsample::h1v2(cpu, near, far, side, into);
        }
        Upsampling::Replicate { columns: factor, .. } => {
            upsample::replicate(cpu, window.row(near), first, factor as usize, columns, into);
        }
    }
    into
}
