//! Programs as rounds: the n-th step of every picture that has as many is executed in round n.

use super::jobs::{
    Address, AxisJob, Blur, BlurForm, CHANGE_BYTES, COUNTS_BYTES, ERASE_BYTES, EraseJob,
    Neighbours, NoiseForm, NoiseJob, Pass, PixelChange, Planes, Positions, Statistic, SumForm,
    SumJob, WarpJob, erasure_words,
};
use super::memory::{ALIGNMENT, Memory, Picture, Walk, align};
use super::program::{Axis, Change, Program, Region, Stage, TensorLocation, Turn};
use super::round::{LISTS, Round};
use super::upload::{TABLES, UploadOffsets};
use crate::PictureDescriptor;

/// The steps of all pictures of a batch. Its memory is reused.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    rounds: Vec<Round>,
    used: usize,
    pub(super) changes: Vec<PixelChange>,
    /// The uploaded data before all jobs: positions, weights and tables.
    pub(super) data: Vec<u8>,
    /// Tensors of which rectangles are replaced after all rounds.
    pub(super) erased: Vec<EraseJob>,
    memory: Memory,
    pub(super) counts_bytes: usize,
    /// Bytes of the jobs of all rounds.
    jobs_bytes: usize,
    /// The state to which [`Self::undo`] returns.
    mark: Mark,
    /// Lengths of the lists of each round before the picture that was added last.
    before: Vec<[usize; LISTS]>,
    /// Changes of pixels that the next step makes.
    pending: Vec<PixelChange>,
    /// The original and the sum of a weighted sum that has begun.
    summed: Option<(Picture, Picture)>,
}

/// Lengths of lists.
#[derive(Debug, Default)]
struct Mark {
    rounds: Vec<[usize; LISTS]>,
    changes: usize,
    data: usize,
    erased: usize,
    memory_bytes: usize,
    counts_bytes: usize,
    jobs_bytes: usize,
}

impl Rounds {
    /// Forgets all pictures.
    pub(super) fn clear(&mut self) {
        self.rounds.iter_mut().for_each(Round::clear);
        (self.used, self.counts_bytes, self.jobs_bytes) = (0, 0, 0);
        self.changes.clear();
        self.data.clear();
        self.erased.clear();
        self.memory.bytes = 0;
    }

    /// In their order.
    pub(super) fn rounds(&self) -> &[Round] {
        &self.rounds[..self.used]
    }

    /// Bytes for results between two steps.
    pub(super) fn between_bytes(&self) -> usize {
        self.memory.bytes
    }

    /// Adds a picture by the offset of its memory, whose tensor is written to a location.
    pub(super) fn add(
        &mut self,
        source: &PictureDescriptor,
        program: &Program<'_>,
        tensor: TensorLocation,
    ) {
        self.before.clear();
        self.before.extend(self.rounds[..self.used].iter().map(Round::lengths));
        self.memory.free.clear();
        self.pending.clear();
        self.summed = None;
        let uploaded = self.upload(program);
        let PictureDescriptor { address, row_stride, plane_stride, width, height } = *source;
        let planes = Planes {
            address: Address::Source(address),
            row_bytes: row_stride,
            plane_bytes: plane_stride,
        };
        let mut turn = program.turn;
        let size = if turn.is_transposed { (height, width) } else { (width, height) };
        let mut picture = Picture { planes, size, count: 3 };
        let mut round = 0;
        for (index, stage) in program.stages.iter().enumerate() {
            let mut region = stage.region;
            if index == 0 {
                assert_eq!((region.width, region.height), size, "the decoded region");
                (region.x, region.y) = (0, 0);
            }
            let job = StageJob { stage, region, turn, program, uploaded, tensor };
            turn = Turn::default();
            picture = self.add_stage(picture, &job, &mut round);
        }
        if !program.erasures.is_empty() {
            align(&mut self.data);
            let erasures = Address::Uploaded(self.data.len());
            let words = program.erasures.iter().flat_map(erasure_words);
            self.data.extend(words.flat_map(u32::to_le_bytes));
            let (count, size) = (program.erasures.len() as u32, picture.size);
            let tensor = Address::of(tensor);
            self.erased.push(EraseJob { tensor, erasures, count, size });
        }
        self.count_jobs();
    }

    /// Saves the lengths of all lists, so that the pictures added from now on can be removed again.
    pub(super) fn set_mark(&mut self) {
        let mark = &mut self.mark;
        mark.rounds.clear();
        mark.rounds.extend(self.rounds[..self.used].iter().map(Round::lengths));
        (mark.changes, mark.data) = (self.changes.len(), self.data.len());
        (mark.erased, mark.memory_bytes) = (self.erased.len(), self.memory.bytes);
        (mark.counts_bytes, mark.jobs_bytes) = (self.counts_bytes, self.jobs_bytes);
    }

    /// Removes the pictures added since [`Self::set_mark`].
    pub(super) fn undo(&mut self) {
        let mark = &self.mark;
        for (at, round) in self.rounds[..self.used].iter_mut().enumerate() {
            round.truncate(mark.rounds.get(at).copied().unwrap_or_default());
        }
        self.used = mark.rounds.len();
        self.changes.truncate(mark.changes);
        self.data.truncate(mark.data);
        self.erased.truncate(mark.erased);
        self.memory.bytes = mark.memory_bytes;
        (self.counts_bytes, self.jobs_bytes) = (mark.counts_bytes, mark.jobs_bytes);
        self.pending.clear();
    }

    /// Adds the bytes of the jobs of the picture that was added last to `jobs_bytes`.
    fn count_jobs(&mut self) {
        let jobs = self.rounds[..self.used]
            .iter()
            .enumerate()
            .map(|(at, round)| round.bytes_from(self.before.get(at).copied().unwrap_or_default()));
        self.jobs_bytes += jobs.sum::<usize>();
    }

    /// Maximum bytes of the uploaded data, without elements, for tensors in a number of formats.
    pub(super) fn uploaded_bytes(&self, formats: usize) -> usize {
        let changes = CHANGE_BYTES * self.changes.len() + ALIGNMENT;
        let erased = ERASE_BYTES * self.erased.len() + formats * ALIGNMENT;
        // The last passes are a list for each format.
        let lists = LISTS - 1 + formats;
        let alignment = self.used * lists * 2 * ALIGNMENT;
        self.data.len() + self.jobs_bytes + alignment + changes + erased
    }

    fn upload(&mut self, program: &Program<'_>) -> UploadOffsets {
        align(&mut self.data);
        let words = self.data.len();
        self.data.resize(words + size_of_val(program.words), 0);
        let (out, _) = self.data[words..].as_chunks_mut::<4>();
        out.iter_mut().zip(program.words).for_each(|(out, word)| *out = word.to_le_bytes());
        let tables = self.data.len();
        self.data.extend_from_slice(program.tables.as_flattened());
        UploadOffsets { words, tables }
    }

    fn round(&mut self, round: usize) -> &mut Round {
        self.used = self.used.max(round + 1);
        if self.rounds.len() < self.used {
            self.rounds.resize_with(self.used, Round::default);
        }
        &mut self.rounds[round]
    }

    fn take_picture(&mut self, size: (u32, u32)) -> Picture {
        self.take(size, 1, 3)
    }

    /// Reserves memory for planes of float32.
    fn take_numbers(&mut self, size: (u32, u32), count: u32) -> Picture {
        self.take(size, 4, count)
    }

    fn take(&mut self, size: (u32, u32), pixel_bytes: u32, count: u32) -> Picture {
        let row_bytes = (pixel_bytes * size.0).next_multiple_of(ALIGNMENT as u32);
        let plane_bytes = row_bytes.checked_mul(size.1).expect("a plane has less than 4 GiB");
        let offset = self.memory.take(count as usize * plane_bytes as usize);
        let planes = Planes { address: Address::Between(offset), row_bytes, plane_bytes };
        Picture { planes, size, count }
    }

    fn give_back(&mut self, picture: Picture) {
        self.memory.free.extend(picture.memory());
    }

    fn add_stage(&mut self, from: Picture, job: &StageJob<'_>, round: &mut usize) -> Picture {
        let StageJob { stage, region, turn, program, uploaded, tensor } = *job;
        let moves_only = (stage.across, stage.down) == (Axis::Shift, Axis::Shift);
        if !(moves_only && stage.window == stage.canvas) {
            // Pending changes apply to neither the sums of a filter nor the fill.
            self.change_in_place(from, round);
        }
        let column = region.x + if stage.region_mirrored { region.width - 1 } else { 0 };
        let walk = Walk::of(from, turn);
        let mut pass = Pass {
            source: from.planes,
            first: walk.offset(column, region.y),
            column_step: if stage.region_mirrored { -walk.column_step } else { walk.column_step },
            row_step: walk.row_step,
            target: from.planes,
            across: uploaded.axis(stage.across),
            down: uploaded.axis(stage.down),
            size: stage.window,
            canvas: stage.canvas,
            at: stage.at,
            fill: stage.fill,
            outside: stage.outside,
            mirrored: stage.mirrored,
            flipped: stage.flipped,
            is_tensor: stage.is_last,
            changes: (0, 0),
        };
        let mut between = None;
        if let (AxisJob::Weigh(_), AxisJob::Weigh(_)) = (pass.across, pass.down) {
            let (size, first) = match stage.down_first {
                true => ((region.width, stage.window.1), (AxisJob::Shift, pass.down)),
                false => ((stage.window.0, region.height), (pass.across, AxisJob::Shift)),
            };
            let target = self.take_picture(size);
            let (across, down) = first;
            let first = Pass { target: target.planes, across, down, size, at: (0, 0), ..pass };
            self.round(*round).first_passes.push(first);
            let (across, down) = match stage.down_first {
                true => (pass.across, AxisJob::Shift),
                false => (AxisJob::Shift, pass.down),
            };
            let Walk { first, column_step, row_step } = Walk::of(target, Turn::default());
            let source = target.planes;
            pass = Pass { source, first, column_step, row_step, across, down, ..pass };
            between = Some(target);
        }
        let result = match stage.is_last {
            true => {
                let planes = Planes { address: Address::of(tensor), row_bytes: 0, plane_bytes: 0 };
                Picture { planes, size: stage.canvas, count: 3 }
            }
            false => self.take_picture(stage.canvas),
        };
        pass.target = result.planes;
        let first_change = self.changes.len();
        self.changes.append(&mut self.pending);
        let row_changes = program.changes[stage.row_changes.clone()].iter();
        let row_changes = row_changes.map(|it| uploaded.change(*it).expect("it changes rows"));
        self.changes.extend(row_changes);
        let mut whole = program.changes[stage.whole.clone()].iter().copied().peekable();
        while let Some(change) = whole.peek().and_then(|change| uploaded.change(*change)) {
            self.changes.push(change);
            whole.next();
        }
        pass.changes = (first_change, self.changes.len() - first_change);
        self.round(*round).last_passes.push(pass);
        *round += 1;
        self.give_back(from);
        if let Some(between) = between {
            self.give_back(between);
        }
        let mut picture = result;
        for change in whole {
            picture = self.add_change(picture, change, uploaded, round);
        }
        picture
    }

    /// Adds a change of a whole picture. Changes of pixels become pending until the next step.
    fn add_change(
        &mut self,
        picture: Picture,
        change: Change,
        uploaded: UploadOffsets,
        round: &mut usize,
    ) -> Picture {
        if let Some(change) = uploaded.change(change) {
            self.pending.push(change);
            return picture;
        }
        self.change_in_place(picture, round);
        match change {
            Change::Contrast(factor) => self.add_statistic(picture, (0, factor.to_bits()), round),
            Change::Autocontrast => self.add_statistic(picture, (1, 0), round),
            Change::Equalize => self.add_statistic(picture, (2, 0), round),
            Change::Sharpness(factor) => {
                let result = self.take_picture(picture.size);
                let (source, target, size) = (picture.planes, result.planes, picture.size);
                let job = Neighbours { source, target, size, number: factor.to_bits() };
                self.round(*round).sharpened.push(job);
                return self.replaced(picture, result, round);
            }
            Change::Frame { size, columns, rows, fill } => {
                let result = self.take_picture(size);
                let pass = Pass {
                    target: result.planes,
                    across: AxisJob::Pick(uploaded.words(columns)),
                    down: AxisJob::Pick(uploaded.words(rows)),
                    outside: fill,
                    ..unchanged(picture, size)
                };
                self.round(*round).last_passes.push(pass);
                return self.replaced(picture, result, round);
            }
            Change::Warp { size, form, samples, fill } => {
                let result = self.take_picture(size);
                let (source, target, source_size) = (picture.planes, result.planes, picture.size);
                let positions = Positions::Map(form);
                let job = WarpJob { source, source_size, target, size, positions, samples, fill };
                self.round(*round).warps.push(job);
                return self.replaced(picture, result, round);
            }
            Change::SumBegin { weight } => {
                let (sum, copy) =
                    (self.take_numbers(picture.size, 3), self.take_picture(picture.size));
                self.summed = Some((picture, sum));
                self.add_sum(copy, (picture, sum), (weight, SumForm::Begin), round);
                return copy;
            }
            Change::SumAdd { weight, is_last } => {
                let (original, sum) = self.summed.expect("a sum begins before");
                let form = if is_last { SumForm::End } else { SumForm::Add };
                self.add_sum(picture, (original, sum), (weight, form), round);
                if is_last {
                    self.give_back(original);
                    self.give_back(sum);
                }
            }
            Change::Noise { key, mean, sigma, is_clipped, is_grey } => {
                let form = NoiseForm::Gaussian { mean, sigma, is_clipped };
                self.add_noise(picture, key, form, is_grey, round);
            }
            Change::SensorNoise { key, coarse, fine, is_grey } => {
                self.add_noise(picture, key, NoiseForm::Sensor { coarse, fine }, is_grey, round);
            }
            Change::Elastic { key, weights, alpha, is_nearest, fill } => {
                let size = picture.size;
                let mut field = self.take_numbers(size, 2);
                self.add_noise(field, key, NoiseForm::Field, false, round);
                for is_down in [false, true] {
                    let smoothed = self.take_numbers(size, 2);
                    for (plane, weights) in (0..).zip(weights) {
                        let (words, count) = weights[usize::from(is_down)];
                        let form = BlurForm::Field(uploaded.words(words), count);
                        let (source, target) = (field.planes.at(plane), smoothed.planes.at(plane));
                        let job = Blur { source, target, size, form, is_down };
                        self.round(*round).blurs.push(job);
                    }
                    field = self.replaced(field, smoothed, round);
                }
                let result = self.take_picture(size);
                let (source, target, source_size) = (picture.planes, result.planes, size);
                let positions = Positions::Moved { by: field.planes, alpha, is_nearest };
                let samples = 1;
                let job = WarpJob { source, source_size, target, size, positions, samples, fill };
                self.round(*round).warps.push(job);
                self.give_back(field);
                return self.replaced(picture, result, round);
            }
            Change::BoxBlur { radius, weights } => {
                let mut picture = picture;
                for is_down in [false, false, false, true, true, true] {
                    let result = self.take_picture(picture.size);
                    let form = BlurForm::Box(radius, weights);
                    picture = self.add_blur(picture, result, form, is_down, round);
                }
                return picture;
            }
            Change::KernelBlur { across, down } => {
                let between = self.take_numbers(picture.size, 3);
                let kernel =
                    |(words, count): (usize, u32)| BlurForm::Kernel(uploaded.words(words), count);
                let between = self.add_blur(picture, between, kernel(across), false, round);
                let result = self.take_picture(picture.size);
                return self.add_blur(between, result, kernel(down), true, round);
            }
            Change::Table { .. }
            | Change::Tables { .. }
            | Change::Saturation(_)
            | Change::Hue(_)
            | Change::Grey
            | Change::Channels(_)
            | Change::Space(_) => unreachable!("these are changes of pixels"),
        }
        picture
    }

    fn add_noise(
        &mut self,
        to: Picture,
        key: [u32; 2],
        form: NoiseForm,
        is_grey: bool,
        round: &mut usize,
    ) {
        let job = NoiseJob { picture: to.planes, size: to.size, key, form, is_grey };
        self.round(*round).noises.push(job);
        *round += 1;
    }

    fn add_sum(
        &mut self,
        picture: Picture,
        (original, sum): (Picture, Picture),
        (weight, form): (f32, SumForm),
        round: &mut usize,
    ) {
        let (size, picture) = (picture.size, picture.planes);
        let (original, sum) = (original.planes, sum.planes);
        let job = SumJob { picture, original, sum, size, weight, form };
        self.round(*round).sums.push(job);
        *round += 1;
    }

    fn add_blur(
        &mut self,
        from: Picture,
        to: Picture,
        form: BlurForm,
        is_down: bool,
        round: &mut usize,
    ) -> Picture {
        let (source, target, size) = (from.planes, to.planes, from.size);
        self.round(*round).blurs.push(Blur { source, target, size, form, is_down });
        self.replaced(from, to, round)
    }

    fn replaced(&mut self, old: Picture, new: Picture, round: &mut usize) -> Picture {
        self.give_back(old);
        *round += 1;
        new
    }

    /// Adds a change by tables computed from the values of the picture.
    fn add_statistic(&mut self, picture: Picture, (change, number): (u32, u32), round: &mut usize) {
        let counts = Address::Counts(self.counts_bytes);
        self.counts_bytes += COUNTS_BYTES;
        let tables = Address::Between(self.memory.take(3 * 256));
        let (size, picture) = (picture.size, picture.planes);
        let job = Statistic { picture, size, counts, tables, change, number };
        self.round(*round).statistics.push(job);
        self.pending.push(PixelChange { change: TABLES, number: 0, table: tables });
        *round += 1;
    }

    /// Applies the pending changes of pixels.
    fn change_in_place(&mut self, picture: Picture, round: &mut usize) {
        if self.pending.is_empty() {
            return;
        }
        let changes = (self.changes.len(), self.pending.len());
        self.changes.append(&mut self.pending);
        let pass = Pass { changes, ..unchanged(picture, picture.size) };
        self.round(*round).last_passes.push(pass);
        *round += 1;
    }
}

/// A stage, with the data of its program.
#[derive(Debug, Clone, Copy)]
struct StageJob<'a> {
    stage: &'a Stage,
    region: Region,
    turn: Turn,
    program: &'a Program<'a>,
    uploaded: UploadOffsets,
    tensor: TensorLocation,
}

/// A pass from a picture to itself.
fn unchanged(picture: Picture, size: (u32, u32)) -> Pass {
    let Walk { first, column_step, row_step } = Walk::of(picture, Turn::default());
    Pass {
        source: picture.planes,
        first,
        column_step,
        row_step,
        target: picture.planes,
        across: AxisJob::Shift,
        down: AxisJob::Shift,
        size,
        canvas: size,
        at: (0, 0),
        fill: [0; 3],
        outside: [0; 3],
        mirrored: false,
        flipped: false,
        is_tensor: false,
        changes: (0, 0),
    }
}
