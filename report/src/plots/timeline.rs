//! Who prepared and who consumed, over time: one block of three rows per strategy.

use super::{
    Anchor, Batch, Epoch, Picture, Run, Scale, Source, Svg, WIDTH, class_of, longest, shown,
};
use crate::units;

const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 24.0;
const ROW: f64 = 20.0;
const GAP: f64 = 4.0;
const TITLE: f64 = 24.0;
const TOP: f64 = 30.0;
/// Background threads drawn one above the other; more than these share lanes.
const LANES_MAX: usize = 8;
/// Bars narrower than this many pixels on average are drawn as shares of columns.
const THIN: f64 = 1.5;
/// Width of such a column in pixels.
const COLUMN: f64 = 3.0;

/// Devices drawn in rows of their own; more than these share the last.
const DEVICES_MAX: usize = 8;

/// A bar from one time to another.
type Bar = (f64, f64, Source);

/// Draws the shown epoch of every run on one time axis.
pub fn timeline(runs: &[Run]) -> Picture {
    let bottom = TOP + runs.iter().map(block_height).sum::<f64>();
    let mut svg = Svg::new(WIDTH, bottom + 40.0);
    let scale = Scale::new(longest(runs), LEFT, RIGHT);
    let entries = [("host", "prepared by the host"), ("device", "prepared by the device")];
    let entries = entries.map(|(class, name)| (class.to_owned(), name.to_owned()));
    super::legend(&mut svg, &entries, LEFT, 14.0);
    super::time_axis(&mut svg, &scale, TOP, bottom, "seconds since the epoch began");
    let mut top = TOP;
    for run in runs {
        if let Some(epoch) = shown(run) {
            block(&mut svg, run, epoch, &scale, top);
        }
        top += block_height(run);
    }
    svg.finish("Timeline: who prepared and who consumed each batch, per strategy")
}

/// Rows for devices: one where there is none, too, so that strategies compare by eye.
fn device_rows(run: &Run) -> usize {
    run.devices.len().clamp(1, DEVICES_MAX)
}

fn block_height(run: &Run) -> f64 {
    TITLE + (2 + device_rows(run)) as f64 * (ROW + GAP) + 14.0
}

fn block(svg: &mut Svg, run: &Run, epoch: &Epoch, scale: &Scale, top: f64) {
    let counts = |source| epoch.batches.iter().filter(|b| b.source == source).count();
    let title = format!(
        "{}: {} ({} host batches, {} device batches)",
        run.strategy,
        units::seconds(epoch.seconds),
        counts(Source::Host),
        counts(Source::Device)
    );
    svg.text("title", Anchor::Start, LEFT, top + 16.0, &title);
    let prepared = |is_meant: &dyn Fn(&Batch) -> bool| -> Vec<Bar> {
        let meant = epoch.batches.iter().filter(|batch| is_meant(batch));
        meant.map(|batch| (batch.prepare_start, batch.prepare_end, batch.source)).collect()
    };
    let consumed: Vec<Bar> = epoch
        .batches
        .iter()
        .map(|batch: &Batch| (batch.consume, batch.step_end, batch.source))
        .collect();
    let device_rows = device_rows(run);
    let mut rows = vec![("host".to_owned(), prepared(&|batch| batch.source == Source::Host))];
    rows.extend((0..device_rows).map(|row| {
        let name = if device_rows == 1 { "device".to_owned() } else { format!("device {row}") };
        let row_of = |batch: &Batch| usize::from(batch.device.unwrap_or(0)).min(device_rows - 1);
        let is_meant = |batch: &Batch| batch.source == Source::Device && row_of(batch) == row;
        (name, prepared(&is_meant))
    }));
    rows.push(("accelerator".to_owned(), consumed));
    for (row, (name, bars)) in rows.into_iter().enumerate() {
        let y = top + TITLE + row as f64 * (ROW + GAP);
        svg.text("label", Anchor::End, LEFT - 8.0, y + ROW * 0.7, &name);
        svg.rect("lane", LEFT, y, scale.at(epoch.seconds) - LEFT, ROW);
        let lanes = into_lanes(bars);
        let lane_height = ROW / lanes.len().max(1) as f64;
        for (lane, bars) in lanes.into_iter().enumerate() {
            let y = y + lane as f64 * lane_height;
            draw(svg, &bars, scale, y, lane_height);
        }
    }
    let x = scale.at(epoch.seconds);
    svg.line("end", (x, top + TITLE - 3.0), (x, top + block_height(run) - 12.0));
}

/// Bars that overlap go to lanes of their own, up to [`LANES_MAX`].
fn into_lanes(mut bars: Vec<Bar>) -> Vec<Vec<Bar>> {
    bars.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lanes: Vec<Vec<Bar>> = Vec::new();
    for bar in bars {
        // A hair of tolerance: the end of one and the start of the next are two clock readings.
        let free =
            lanes.iter().position(|lane| lane.last().is_none_or(|last| last.1 <= bar.0 + 1e-6));
        match free {
            Some(lane) => lanes[lane].push(bar),
            None if lanes.len() < LANES_MAX => lanes.push(vec![bar]),
            None => lanes[LANES_MAX - 1].push(bar),
        }
    }
    lanes
}

/// Draws one lane: bars with a seam between them or, where they are too thin for that, columns
/// whose height is the share of the time that the lane was busy.
fn draw(svg: &mut Svg, bars: &[Bar], scale: &Scale, y: f64, height: f64) {
    let busy: f64 = bars.iter().map(|bar| scale.at(bar.1) - scale.at(bar.0)).sum();
    if busy < THIN * bars.len() as f64 {
        return draw_shares(svg, bars, scale, y, height);
    }
    for &(start, end, source) in bars {
        let (from, to) = (scale.at(start), scale.at(end));
        let seam = if to - from > 3.0 { 0.6 } else { 0.0 };
        svg.rect(class_of(source), from, y, to - from - seam, height - 0.5);
    }
}

fn draw_shares(svg: &mut Svg, bars: &[Bar], scale: &Scale, y: f64, height: f64) {
    let columns = ((RIGHT - LEFT) / COLUMN).ceil() as usize;
    let mut pixels = vec![[0.0_f64; 2]; columns];
    for &(start, end, source) in bars {
        let (from, to) = (scale.at(start) - LEFT, scale.at(end) - LEFT);
        let last = ((to / COLUMN) as usize).min(columns - 1);
        let first = ((from / COLUMN).max(0.0) as usize).min(last);
        for (column, sums) in pixels.iter_mut().enumerate().take(last + 1).skip(first) {
            let left = column as f64 * COLUMN;
            let covered = to.min(left + COLUMN) - from.max(left);
            sums[usize::from(source == Source::Device)] += covered.max(0.0);
        }
    }
    // A little wider than a column: antialiased edges would show as seams.
    let wide = COLUMN + 0.25;
    for (column, [host, device]) in pixels.into_iter().enumerate() {
        let x = LEFT + column as f64 * COLUMN;
        let full = (height - 0.5) / COLUMN;
        let (host, device) = (host * full, device * full);
        let base = y + height - 0.5;
        if host > 0.05 {
            svg.rect("host", x, base - host, wide, host);
        }
        if device > 0.05 {
            svg.rect("device", x, base - host - device, wide, device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, into_lanes, timeline};
    use crate::made_up;

    #[test]
    fn bars_that_overlap_get_lanes_of_their_own() {
        let bar = |from: f64, to: f64| (from, to, Source::Host);
        let lanes = into_lanes(vec![bar(0.0, 2.0), bar(1.0, 3.0), bar(2.0, 4.0)]);
        assert_eq!(lanes, [vec![bar(0.0, 2.0), bar(2.0, 4.0)], vec![bar(1.0, 3.0)]]);
        let crowd = (0..40).map(|_| bar(0.0, 1.0)).collect();
        assert_eq!(into_lanes(crowd).len(), super::LANES_MAX);
    }

    #[test]
    fn a_long_epoch_stays_a_small_picture() {
        let report = made_up::report(20_000);
        assert!(timeline(&report.runs).element().len() < 2_000_000);
    }
}
