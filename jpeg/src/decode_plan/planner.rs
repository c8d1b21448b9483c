//! Creates plans, and refuses what the decoder refuses before it reads entropy-coded data.

use super::plan::{DecodePlan, PlanColours, PlanError, PlannedComponent, Unit, UpsamplingKind};
use super::segments::{Boundaries, DataLayout};
use crate::colours::Colours;
use crate::decoder::{check_region, form_picture};
use crate::entry_points::{Entry, EntryPoints};
use crate::form::{self, FormReader, RowScratch};
use crate::form_codec::form_of;
use crate::geometry::Need;
use crate::huffman_spec::HuffmanSpec;
use crate::idct::Dequantiser;
use crate::limits::check_pixels;
use crate::markers::{COMPONENTS_MAX, Coding, Frame, Header, ScanComponent};
use crate::pixels::Conversion;
use crate::sequential::restart_offsets;
use crate::{
    Cpu, DecodeOptions, DecodeScale, Encoded, Error, OnDamage, OutputColour, QuantTable, Region,
};

/// Creates plans one after another, reusing its memory.
#[derive(Debug, Default)]
pub struct Planner {
    header: Header,
    entries: Vec<Entry>,
    restarts: Vec<u32>,
    /// Bytes of the file that is open.
    opened: Option<usize>,
    /// Whether it is a coefficient form.
    is_form: bool,
    /// Memory for readers of forms.
    scratch: RowScratch,
}

impl Planner {
    /// Reads the headers of a file, for [`Planner::plan_opened`]; returns its columns and rows of
    /// pixels.
    pub fn open(
        &mut self,
        encoded: Encoded<'_>,
        on_damage: OnDamage,
    ) -> Result<(u32, u32), PlanError> {
        self.opened = None;
        self.is_form = form_of(encoded.bytes).is_some();
        if self.is_form {
            let size = form::size(encoded.bytes).map_err(Error::from)?;
            check_pixels(size)?;
            self.opened = Some(encoded.bytes.len());
            return Ok(size);
        }
        let header = &mut self.header;
        let parsed = match (encoded.entry_points, on_damage) {
            ([_, ..], OnDamage::Fail) => header.parse_known(encoded.bytes),
            _ => header.parse(encoded.bytes),
        };
        if header.frame.count > 0 {
            check_pixels(header.frame.size())?;
        }
        parsed?;
        self.opened = Some(encoded.bytes.len());
        Ok(header.frame.size())
    }

    /// Creates the plan of a region of a coefficient form.
    fn plan_form(
        &mut self,
        stored: &[u8],
        region: Region,
        options: &DecodeOptions,
        plan: &mut DecodePlan,
    ) -> Result<(), PlanError> {
        let scratch = std::mem::take(&mut self.scratch);
        let reader = FormReader::open_with(stored, Cpu::Portable, scratch).map_err(Error::from)?;
        let Conversion { frame, quant, colours, .. } =
            form_picture(reader.frame(), options.colour)?;
        check_region(&frame, region, options)?;
        let need = Need::of(&frame, region, options, colours)?;
        plan.colours = colours_of(colours, options.colour)?;
        describe(&frame, &quant, region, &need, plan);
        let form = plan.form.get_or_insert_default();
        let (lanes, codes) = reader.lanes_and_codes();
        form.lanes = lanes;
        form.codes.clear();
        form.codes.extend_from_slice(codes);
        form.rows.clear();
        form.rows.extend(need.mcu_rows.clone().filter_map(|row| reader.row_range(row)));
        let ends = (form.rows.first(), form.rows.last());
        plan.data = match ends {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        };
        plan.huffman.clear();
        plan.units.clear();
        plan.segments.clear();
        (plan.is_unsegmented, plan.has_restart_markers) = (false, false);
        self.scratch = reader.into_scratch();
        Ok(())
    }

    /// Creates the plan of a region of the file that was opened last. After an error the content of
    /// `plan` is unspecified.
    pub fn plan_opened(
        &mut self,
        encoded: Encoded<'_>,
        region: Region,
        options: &DecodeOptions,
        plan: &mut DecodePlan,
    ) -> Result<(), PlanError> {
        if options.scale != DecodeScale::Eight {
            return Err(PlanError::Scaled);
        }
        if self.opened != Some(encoded.bytes.len()) {
            return Err(PlanError::NotOpen);
        }
        if self.is_form {
            return self.plan_form(encoded.bytes, region, options, plan);
        }
        let header = &self.header;
        header.check_data()?;
        header.check_progress()?;
        check_region(&header.frame, region, options)?;
        let colours = Colours::of(header);
        let need = Need::of(&header.frame, region, options, colours)?;
        if header.frame.coding == Coding::Progressive {
            return Err(PlanError::Progressive);
        }
        if !header.has_one_sequential_scan() {
            return Err(PlanError::SeveralScans);
        }
        let colours = colours_of(colours, options.colour)?;
        let entry_points = match encoded.entry_points {
            [] => None,
            bytes => Some(EntryPoints::open(
                bytes,
                &mut self.entries,
                encoded.bytes,
                encoded.crc32c,
                header,
            )?),
        };
        restart_offsets(encoded.bytes, header, &mut self.restarts)?;
        plan.form = None;
        plan.colours = colours;
        describe(&header.frame, &header.quant, region, &need, plan);
        units(header, plan);
        let scan = &header.scans[0];
        let layout = DataLayout {
            file: encoded.bytes,
            data: scan.data.clone(),
            mcus_wide: header.frame.mcus_wide,
            columns: need.mcu_columns,
            rows: need.mcu_rows,
        };
        let restarts = (scan.restart_interval, &self.restarts[..]);
        let boundaries = Boundaries { layout: &layout, restarts, entry_points };
        plan.has_restart_markers = !self.restarts.is_empty();
        plan.is_unsegmented = entry_points.is_none() && self.restarts.is_empty();
        plan.data = boundaries.segments(&mut plan.segments)?;
        Ok(())
    }
}

/// Which components the planes of pixels come from.
fn colours_of(colours: Colours, output: OutputColour) -> Result<PlanColours, PlanError> {
    Ok(match (colours, output) {
        (Colours::Grey, _) | (Colours::YCbCr, OutputColour::Grey) => PlanColours::Grey,
        (Colours::YCbCr, OutputColour::Rgb) => PlanColours::YCbCrToRgb,
        (Colours::Rgb, OutputColour::Rgb) => PlanColours::Rgb,
        (Colours::Rgb, OutputColour::Grey) => PlanColours::RgbToGrey,
        (Colours::Inks(_), _) => return Err(PlanError::FourComponents),
    })
}

/// Sizes, region and components.
fn describe(
    frame: &Frame,
    quant: &[Option<QuantTable>; COMPONENTS_MAX],
    region: Region,
    need: &Need,
    plan: &mut DecodePlan,
) {
    plan.size = frame.size();
    plan.origin = (region.x, region.y);
    plan.region = (region.width, region.height);
    plan.mcus = (frame.mcus_wide, frame.mcus_high);
    plan.mcu_columns = need.mcu_columns.clone();
    plan.mcu_rows = need.mcu_rows.clone();
    let planned = &mut plan.components;
    planned.clear();
    for (index, component) in frame.components().iter().enumerate() {
        let table = quant[index].unwrap_or(QuantTable([1; 64]));
        let need = need.component(index);
        planned.push(PlannedComponent {
            h: component.h,
            v: component.v,
            width: component.width,
            height: component.height,
            blocks_wide: component.blocks_wide,
            blocks_high: component.blocks_high,
            steps: *Dequantiser::new(&table).steps(),
            upsampling: need.map_or(UpsamplingKind::None, |need| need.upsampling.into()),
            columns: need.map_or(0..0, |need| need.columns.clone()),
            rows: need.map_or(0..0, |need| need.rows.clone()),
        });
    }
}

/// The blocks of an MCU, and the tables that they use, each once.
fn units(header: &Header, plan: &mut DecodePlan) {
    plan.units.clear();
    plan.huffman.clear();
    let mut table = |index: Option<usize>| {
        let spec = &header.huffman[index.expect("a sequential scan has both tables")];
        let known = plan.huffman.iter().position(|known: &HuffmanSpec| known == spec);
        known.unwrap_or_else(|| {
            plan.huffman.push(*spec);
            plan.huffman.len() - 1
        }) as u8
    };
    for &ScanComponent { component, dc, ac } in header.scans[0].components() {
        let (dc, ac) = (table(dc), table(ac));
        let frame = &header.frame.components()[component];
        for row in 0..frame.v as u8 {
            for column in 0..frame.h as u8 {
                plan.units.push(Unit { component: component as u8, column, row, dc, ac });
            }
        }
    }
}
