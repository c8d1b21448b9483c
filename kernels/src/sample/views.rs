//! Several pictures of one sample, from one decoded picture.
//!
//! The common part is prepared once and shared: the result of the common operations if they resize
//! the picture or need all of it, else the region of the decoded picture that the pictures need
//! together. Each picture then passes through separate stages, and is bit-identical to the result
//! of a recipe with all its operations.

use super::plan::{ProgramEnd, choose, for_each_stage};
use super::{Program, SampleId, SamplePreparer, Source, Streams, Tensor};
use crate::decode::{Encoded, ImageInfo, probe};
use crate::operations::numbers_of;
use crate::picture_program::{NotExported, PictureProgram};
use crate::points::Points;
use crate::stage::{Geometry, Stage};
use crate::tensor::TensorWriter;
use crate::{Cpu, Error, Region};
use meetpoint_format::recipe::{Recipe, TensorSpec};
use meetpoint_jpeg::DecodeScale;

/// The additional state of a preparer for a recipe that creates several pictures of a sample.
#[derive(Debug)]
pub(super) struct Views {
    columns: Vec<Column>,
    /// Indices of the prepared columns, in the order of their results.
    wanted: Vec<usize>,
    /// Number of the first operation that is not shared.
    own: usize,
    /// The encoded current sample.
    info: Option<ImageInfo>,
    /// The common operations of the current sample.
    common: CommonOperations,
    /// The pictures of the current sample.
    pictures: Vec<Picture>,
}

/// The programs of one column.
#[derive(Debug)]
struct Column {
    /// One for each picture that the operations create from one.
    programs: Vec<Program>,
    first_view: u32,
    count: u32,
}

/// The common operations of a sample.
#[derive(Debug, Default)]
struct CommonOperations {
    chosen: Vec<usize>,
    stages: Vec<Stage>,
    /// Whether their result is shared; if not, the decoded picture is.
    is_shared: bool,
    /// The shared picture.
    picture: Option<Geometry>,
    /// Maximum number of bytes of pictures during these operations.
    bytes_max: u64,
}

/// One picture of a sample.
#[derive(Debug)]
struct Picture {
    /// Position of its column among the requested ones.
    out: usize,
    column: usize,
    program: usize,
    streams: Streams,
    chosen: Vec<usize>,
    stages: Vec<Stage>,
    scale: DecodeScale,
    spec: TensorSpec,
}

impl Views {
    pub(super) fn new(recipe: &Recipe, cpu: Cpu) -> Self {
        let columns = recipe.images().iter().map(|images| {
            let program = |picture| Program::new(&images.operations, images.result, picture, cpu);
            let programs = (0..images.result.pictures).map(program).collect();
            Column { programs, first_view: images.first_view, count: images.count }
        });
        let first = &recipe.images()[0];
        Self {
            wanted: (0..recipe.images().len()).collect(),
            columns: columns.collect(),
            own: numbers_of(&first.operations[..first.common]),
            info: None,
            common: CommonOperations::default(),
            pictures: Vec::new(),
        }
    }

    /// Each requested picture: position and index of its column, its program, and its random
    /// numbers.
    fn wanted(&self, id: SampleId) -> Vec<(usize, usize, usize, Streams)> {
        let mut found = Vec::new();
        for (out, &column) in self.wanted.iter().enumerate() {
            let Column { programs, first_view, count } = &self.columns[column];
            for copy in 0..*count {
                let view = u16::try_from(first_view + copy).expect("VIEWS_MAX * VIEW_COUNT_MAX");
                let streams = Streams { id, view, own: self.own };
                found.extend((0..programs.len()).map(|program| (out, column, program, streams)));
            }
        }
        found
    }

    /// The writer of the tensors of each requested column.
    pub(super) fn writers(&self) -> impl Iterator<Item = &TensorWriter> {
        self.wanted.iter().map(|column| &self.columns[*column].programs[0].writer)
    }

    /// Plans the stages of the common operations on a picture of this size.
    fn plan_common(&self, picture: Geometry, id: SampleId) -> Result<CommonOperations, Error> {
        let Program { steps, names, .. } = &self.columns[0].programs[0];
        let mut common = CommonOperations::default();
        choose(steps, 0, self.own, id.into(), &mut common.chosen);
        let ending = (&common.chosen[..], ProgramEnd::Picture);
        let points = &mut Points::unknown();
        let mut before = picture.bytes();
        let (stages, bytes_max) = (&mut common.stages, &mut common.bytes_max);
        let found = &mut |stage: Stage| {
            *bytes_max =
                (*bytes_max).max(before + stage.result().bytes()).max(stage.whole_bytes_max);
            before = stage.after.bytes();
            stages.push(stage);
        };
        let after = for_each_stage((steps, names), ending, picture, id.into(), points, found)?;
        common.is_shared = match &common.stages[..] {
            [stage] => stage.is_resized() || !stage.whole.is_empty(),
            _ => true,
        };
        common.picture = Some(if common.is_shared { after } else { picture });
        Ok(common)
    }

    /// Plans the stages of a picture from the shared one.
    fn plan_picture(
        &self,
        common: &CommonOperations,
        (column, program): (usize, usize),
        streams: Streams,
        found: &mut dyn FnMut(Stage),
    ) -> Result<(Vec<usize>, Geometry), Error> {
        let Program { steps, names, .. } = &self.columns[column].programs[program];
        let mut chosen = Vec::with_capacity(steps.len());
        let first = if common.is_shared { self.own } else { 0 };
        choose(steps, first, steps.len(), streams, &mut chosen);
        let picture = common.picture.expect("the common operations were planned");
        let ending = (&chosen[..], ProgramEnd::Tensor);
        let points = &mut Points::unknown();
        let result = for_each_stage((steps, names), ending, picture, streams, points, found)?;
        Ok((chosen, result))
    }

    /// Upper bound of the bytes of whole pictures in memory, from the headers of a file.
    pub(super) fn memory_bytes(
        &self,
        encoded: &[u8],
        is_turned: bool,
        id: SampleId,
    ) -> Result<u64, Error> {
        let info = probe(encoded)?;
        let sides = [(info.width, info.height), (info.height, info.width)];
        // The orientation is unknown here.
        let sides = if is_turned { &sides[..] } else { &sides[..1] };
        let mut most = 0;
        for &(width, height) in sides {
            let common = self.plan_common(Geometry::upright(width, height), id)?;
            let shared = common.picture.map_or(0, Geometry::bytes);
            most = most.max(shared);
            if common.is_shared {
                most = most.max(common.bytes_max);
            }
            for (_, column, program, streams) in self.wanted(id) {
                let mut before = 0;
                let found = &mut |stage: Stage| {
                    let held = if stage.is_last { 0 } else { stage.result().bytes() };
                    most = most.max(shared + before + held).max(shared + stage.whole_bytes_max);
                    before = if stage.is_last { 0 } else { stage.after.bytes() };
                };
                self.plan_picture(&common, (column, program), streams, found)?;
            }
        }
        Ok(most)
    }
}

/// The memory of each picture; those of a column are consecutive in the memory of the column.
fn tensors_in<'a>(pictures: &[Picture], mut columns: Vec<&'a mut [u8]>) -> Vec<&'a mut [u8]> {
    let mut own = |picture: &Picture| {
        let column = std::mem::take(&mut columns[picture.out]);
        let (own, rest) = column.split_at_mut(picture.spec.bytes());
        columns[picture.out] = rest;
        own
    };
    pictures.iter().map(&mut own).collect()
}

impl SamplePreparer {
    /// Restricts preparing to some columns of the recipe, by their indices in [`Recipe::images`],
    /// in this order. A recipe that creates one picture has one column.
    pub fn set_columns(&mut self, wanted: Vec<usize>) {
        if let Some(views) = &mut self.views {
            views.wanted = wanted;
        }
    }

    /// Prepares a sample into memory for each column, also for a recipe that creates several
    /// pictures of a sample: those of a column are consecutive. Otherwise like
    /// [`Self::prepare_with`]; only recipes that create one picture have targets.
    ///
    /// # Panics
    ///
    /// If the number of columns differs from that of the recipe, or of [`Self::set_columns`].
    pub fn prepare_columns(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: SampleId,
        outs: &mut [&mut [u8]],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        if self.views.is_none() {
            let [out] = outs else { panic!("the recipe has one column, not {}", outs.len()) };
            return self.prepare_with(encoded, stored, id, out, after_stage);
        }
        self.with_views(|preparer, views| {
            assert_eq!(outs.len(), views.wanted.len(), "memory for each column");
            preparer.plan_views(views, encoded, id)?;
            for (index, out) in outs.iter().enumerate() {
                let of_column = views.pictures.iter().filter(|picture| picture.out == index);
                let (got, expected) = (out.len(), of_column.map(|it| it.spec.bytes()).sum());
                if got != expected {
                    return Err(Error::OutputSize { got, expected });
                }
            }
            let outs = outs.iter_mut().map(|out| &mut **out).collect();
            let mut tensors = tensors_in(&views.pictures, outs);
            preparer.run_views(views, encoded, &mut tensors, after_stage)
        })
    }

    /// Like [`Self::prepare_columns`], for shapes of pictures that may depend on the sample:
    /// appends the pictures of each column to its memory, and returns their shapes. After an error
    /// the memory has its original length.
    ///
    /// # Panics
    ///
    /// Like [`Self::prepare_columns`].
    pub fn append_columns(
        &mut self,
        encoded: Encoded<'_>,
        stored: &[&[u8]],
        id: SampleId,
        outs: &mut [Vec<u8>],
        after_stage: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<TensorSpec>>, Error> {
        if self.views.is_none() {
            let [out] = outs else { panic!("the recipe has one column, not {}", outs.len()) };
            return Ok(vec![vec![self.prepare_appended(encoded, stored, id, out, after_stage)?]]);
        }
        self.with_views(|preparer, views| {
            assert_eq!(outs.len(), views.wanted.len(), "memory for each column");
            preparer.plan_views(views, encoded, id)?;
            let starts: Vec<usize> = outs.iter().map(Vec::len).collect();
            for picture in &views.pictures {
                let out = &mut outs[picture.out];
                out.resize(out.len() + picture.spec.bytes(), 0);
            }
            let appended = outs.iter_mut().zip(&starts).map(|(out, start)| &mut out[*start..]);
            let mut tensors = tensors_in(&views.pictures, appended.collect());
            let done = preparer.run_views(views, encoded, &mut tensors, after_stage);
            if done.is_err() {
                outs.iter_mut().zip(&starts).for_each(|(out, start)| out.truncate(*start));
            }
            let mut specs: Vec<Vec<TensorSpec>> = outs.iter().map(|_| Vec::new()).collect();
            views.pictures.iter().for_each(|picture| specs[picture.out].push(picture.spec));
            done.map(|()| specs)
        })
    }

    /// Prepares a sample into new tensors: for each column of the recipe, or of
    /// [`Self::set_columns`], its pictures, whose shapes may vary.
    pub fn prepare_tensors(
        &mut self,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<Vec<Vec<Tensor>>, Error> {
        if self.views.is_none() {
            return Ok(vec![vec![self.prepare_tensor(encoded, id)?]]);
        }
        self.with_views(|preparer, views| {
            preparer.plan_views(views, encoded, id)?;
            let memory = |picture: &Picture| vec![0; picture.spec.bytes()];
            let mut tensors: Vec<Vec<u8>> = views.pictures.iter().map(memory).collect();
            let mut outs: Vec<&mut [u8]> = tensors.iter_mut().map(|it| &mut it[..]).collect();
            preparer.run_views(views, encoded, &mut outs, &mut || ())?;
            let mut columns: Vec<Vec<Tensor>> = views.wanted.iter().map(|_| vec![]).collect();
            for (picture, data) in views.pictures.iter().zip(tensors) {
                columns[picture.out].push(Tensor { spec: picture.spec, data });
            }
            Ok(columns)
        })
    }

    /// Passes the state of views, which must exist, to a function.
    fn with_views<T>(&mut self, run: impl FnOnce(&mut Self, &mut Views) -> T) -> T {
        let mut views = self.views.take().expect("the recipe makes several pictures");
        let result = run(self, &mut views);
        self.views = Some(views);
        result
    }

    /// Plans the stages of all pictures of a sample.
    fn plan_views(
        &mut self,
        views: &mut Views,
        encoded: Encoded<'_>,
        id: SampleId,
    ) -> Result<(), Error> {
        let info = self.open(encoded)?;
        views.common = views.plan_common(self.source, id)?;
        self.plan_pictures(views, info, id)
    }

    /// Plans the stages of all pictures of a sample whose common operations are planned.
    fn plan_pictures(
        &mut self,
        views: &mut Views,
        info: ImageInfo,
        id: SampleId,
    ) -> Result<(), Error> {
        views.info = Some(info);
        views.pictures.clear();
        for (out, column, program, streams) in views.wanted(id) {
            let mut stages = Vec::new();
            let found = &mut |stage| stages.push(stage);
            let planned = views.plan_picture(&views.common, (column, program), streams, found)?;
            let (chosen, Geometry { width, height, .. }) = planned;
            let mut scale = DecodeScale::Eight;
            if !views.common.is_shared {
                scale = self.scale_of(&mut stages, info);
            }
            let spec = views.columns[column].programs[program].result.tensor((height, width));
            views.pictures.push(Picture {
                out,
                column,
                program,
                streams,
                chosen,
                stages,
                scale,
                spec,
            });
        }
        Ok(())
    }

    /// Determines the decode resolution for stages, and adapts them to it.
    fn scale_of(&mut self, stages: &mut Vec<Stage>, info: ImageInfo) -> DecodeScale {
        std::mem::swap(&mut self.stages, stages);
        self.scale_down(info);
        std::mem::swap(&mut self.stages, stages);
        self.options.scale
    }

    /// Prepares the planned pictures, each into its memory.
    fn run_views(
        &mut self,
        views: &mut Views,
        encoded: Encoded<'_>,
        outs: &mut [&mut [u8]],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        let scales: Vec<DecodeScale> = views.pictures.iter().map(|it| it.scale).collect();
        for (first, &scale) in scales.iter().enumerate() {
            if scales[..first].contains(&scale) {
                continue;
            }
            self.share(views, encoded, scale, after_stage)?;
            for (index, out) in outs.iter_mut().enumerate().filter(|(at, _)| scales[*at] == scale) {
                self.run_picture(views, index, out, after_stage)?;
            }
        }
        Ok(())
    }

    /// The part of the decoded picture that the pictures of a resolution need together.
    fn shared_region(&mut self, views: &Views, scale: DecodeScale) -> Region {
        let of_scale = views.pictures.iter().filter(|picture| picture.scale == scale);
        let regions = of_scale.map(|picture| self.needed_region(&picture.stages[0]));
        regions.reduce(around).expect("a resolution is that of a picture")
    }

    fn needed_region(&mut self, stage: &Stage) -> Region {
        stage.region(self.resizer.begin(&stage.work()))
    }

    /// Prepares the shared picture for a resolution.
    fn share(
        &mut self,
        views: &mut Views,
        encoded: Encoded<'_>,
        scale: DecodeScale,
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        self.shared_at = (0, 0);
        if views.common.is_shared {
            let CommonOperations { chosen, stages, .. } = &mut views.common;
            std::mem::swap(&mut self.stages, stages);
            std::mem::swap(&mut self.chosen, chosen);
            self.scale_down(views.info.expect("a picture was opened"));
            // The decoded region and the common operations are the same for all views.
            let id = views.pictures[0].streams;
            self.run(Source::Encoded(encoded), id, &mut [], after_stage)?;
            std::mem::swap(&mut self.picture, &mut self.shared);
            return Ok(());
        }
        self.options.scale = scale;
        let region = self.shared_region(views, scale);
        self.shared_at = (region.x, region.y);
        if self.orientation.is_some() {
            self.decode_oriented(encoded, region, after_stage)?;
            std::mem::swap(&mut self.picture, &mut self.shared);
            return Ok(());
        }
        let (shared, mut y) = (&mut self.shared, 0);
        shared.set_size(region.width as usize, region.height as usize);
        self.decoder.decode_opened(encoded, region, &self.options, &mut |stripe| {
            for row in 0..stripe.rows {
                for plane in 0..3 {
                    let from = &stripe.row(plane, row)[..stripe.width];
                    shared.row_mut(plane, y + row).copy_from_slice(from);
                }
            }
            y += stripe.rows;
            after_stage();
        })
    }

    /// Prepares one picture from the shared one.
    fn run_picture(
        &mut self,
        views: &mut Views,
        index: usize,
        out: &mut [u8],
        after_stage: &mut dyn FnMut(),
    ) -> Result<(), Error> {
        self.with_picture(views, index, |preparer, spec, streams| {
            preparer.run(Source::Shared, streams, out, after_stage)?;
            preparer.finish(spec, streams, out, after_stage)
        })
    }

    /// Calls a function while the operations and stages of the preparer are those of one planned
    /// picture.
    fn with_picture<T>(
        &mut self,
        views: &mut Views,
        index: usize,
        run: impl FnOnce(&mut Self, TensorSpec, Streams) -> T,
    ) -> T {
        let picture = &mut views.pictures[index];
        let program = &mut views.columns[picture.column].programs[picture.program];
        let mut swap = |preparer: &mut Self| {
            std::mem::swap(&mut preparer.program, program);
            std::mem::swap(&mut preparer.stages, &mut picture.stages);
            std::mem::swap(&mut preparer.chosen, &mut picture.chosen);
        };
        swap(self);
        let result = run(self, picture.spec, picture.streams);
        swap(self);
        result
    }

    /// Exports the programs of all pictures of a sample whose orientation is known. Each includes
    /// the common operations.
    pub(super) fn export_views(
        &mut self,
        info: ImageInfo,
        id: SampleId,
        programs: &mut Vec<PictureProgram>,
    ) -> Result<Result<Region, NotExported>, Error> {
        self.with_views(|preparer, views| {
            // What the common operations refuse, the programs refuse as well.
            let common = views.plan_common(preparer.source, id)?;
            // As much is decoded as for the shared picture, even if the programs need less of it.
            let shared = common.is_shared.then(|| preparer.needed_region(&common.stages[0]));
            let picture = Some(preparer.source);
            views.common = CommonOperations { is_shared: false, picture, ..common };
            preparer.plan_pictures(views, info, id)?;
            programs.resize_with(views.pictures.len(), PictureProgram::default);
            let mut next = vec![0; views.wanted.len()];
            for (index, program) in programs.iter_mut().enumerate() {
                let Picture { out, scale, .. } = views.pictures[index];
                (program.column, program.index) = (out, next[out]);
                next[out] += 1;
                preparer.options.scale = scale;
                let exported = preparer.with_picture(views, index, |preparer, spec, streams| {
                    preparer.export_picture(spec, streams, program)
                });
                if let Err(reason) = exported? {
                    return Ok(Err(reason));
                }
            }
            let full = DecodeScale::Eight;
            let region = shared.unwrap_or_else(|| preparer.shared_region(views, full));
            Ok(Ok(preparer.in_file(region)))
        })
    }
}

/// The smallest region that contains two regions.
fn around(one: Region, other: Region) -> Region {
    let (x, y) = (one.x.min(other.x), one.y.min(other.y));
    let right = (one.x + one.width).max(other.x + other.width);
    let bottom = (one.y + one.height).max(other.y + other.height);
    Region { x, y, width: right - x, height: bottom - y }
}
