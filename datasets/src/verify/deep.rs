//! Checks whether every sample can be decoded and restored from its form, and whether its entry
//! points match its file.

use super::{DamageLocation, DeepReport, Problem, VerifyProgress, VerifyReport};
use crate::Error;
use crate::jpeg::{Converter, entry_points_until, form_of};
use crate::threads::threads;
use crate::walk::{Sample, VisitedSample, each_sample};
use meetpoint_diagnose::Surface;
use meetpoint_format::dataset::{ContentKind, Form, MANIFEST_NAME, NotConverted};
use meetpoint_kernels::{ImageFormat, Interrupt, Picture, probe};
use meetpoint_prepare::{
    Dataset, DecodeMemory, NoMemory, Reserved, abandoning, original_until, picture_bytes,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The properties of a checked sample.
struct SampleFacts {
    /// Stored bytes of the sample.
    bytes: u64,
    form: Form,
    is_jpeg: bool,
    has_entry_points: bool,
}

/// State that a thread reuses from sample to sample.
struct Scratch {
    interrupt: Interrupt,
    converter: Converter,
    of_file: Picture,
    of_form: Picture,
    /// Memory for large pictures, shared by all threads.
    memory: Arc<DecodeMemory>,
}

impl Scratch {
    fn new(interrupt: Interrupt) -> Self {
        let converter = Converter::new(interrupt.clone());
        let (of_file, of_form) = Default::default();
        let memory = DecodeMemory::of_this_process();
        Self { interrupt, converter, of_file, of_form, memory }
    }

    /// Waits for the memory that checking a stored image takes, where that is much; the error is
    /// the problem of the sample.
    fn reserve(&self, stored: &[u8], form: Form) -> Result<Option<Reserved>, String> {
        // What cannot be estimated from its header is refused by the decoder.
        let (Ok(info), Ok(decoding)) = (probe(stored), picture_bytes(stored)) else {
            return Ok(None);
        };
        let pixels = u64::from(info.width) * u64::from(info.height);
        let restoring = match form {
            Form::Jpeg => 0,
            // Coefficients of the form and of the file, and the picture of the form.
            Form::Compact | Form::Fast => 15 * pixels,
        };
        let needed = decoding.saturating_add(restoring).saturating_add(stored.len() as u64);
        let reserved = self.memory.reserve(needed, &mut || !self.interrupt.is_raised());
        reserved.map_err(|why| match why {
            NoMemory::GivenUp => "interrupted".to_owned(),
            NoMemory::Never { .. } => {
                let refusal = self.memory.refusal(needed);
                let remedy = refusal.remedy().spelled(Surface::CommandLine);
                format!("{refusal}; {remedy}")
            }
        })
    }

    fn free(&mut self) {
        (self.of_file, self.of_form) = Default::default();
        self.converter.free_pictures();
    }
}

/// Decodes every sample of a dataset that passed [`verify`](super::verify), and compares forms and
/// entry points with recomputed ones; adds differences to `report`.
pub fn verify_deep(
    path: &Path,
    asked_threads: usize,
    stop: &Arc<AtomicBool>,
    report: &mut VerifyReport,
    progress: &mut dyn FnMut(VerifyProgress),
) -> Result<(), Error> {
    let dataset = Dataset::open(path)?;
    let mut deep = DeepReport::default();
    let mut problems = Vec::new();
    let (bytes, samples) = (dataset.manifest().image_bytes, dataset.len());
    let mut done = VerifyProgress { bytes_done: 0, bytes, samples };
    progress(done);
    let start = || Scratch::new(abandoning(Interrupt::from(Arc::clone(stop))));
    let visit = |scratch: &mut Scratch, sample: &Sample| look(&dataset, sample, scratch);
    each_sample(&dataset, threads(asked_threads)?, &start, &visit, &mut |visited| {
        // Checked first, since an interrupted sample is not damaged.
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let VisitedSample { sample, result } = visited.map_err(|unread| unread.error)?;
        match result {
            Ok(found) => {
                deep.decoded += 1;
                deep.converted += u64::from(found.form != Form::Jpeg);
                deep.not_jpeg += u64::from(!found.is_jpeg);
                deep.entry_points += u64::from(found.has_entry_points);
                done.bytes_done += found.bytes;
                progress(done);
            }
            Err(problem) => problems.push((sample.index, sample.key, problem)),
        }
        Ok(())
    })?;
    problems.sort();
    for (sample, key, problem) in problems {
        let location = dataset.locate(sample)?;
        report.problems.push(Problem {
            file: dataset.manifest().parts[location.part].file.clone(),
            place: DamageLocation::Row { row: location.row, key },
            problem,
        });
    }
    if report.is_sound() {
        report.problems.extend(differences(&dataset, &deep));
    }
    report.deep = Some(deep);
    Ok(())
}

/// Checks one sample; the error is its problem.
fn look(dataset: &Dataset, sample: &Sample, scratch: &mut Scratch) -> Result<SampleFacts, String> {
    let stored = dataset.read_sample(sample.index).map_err(|error| error.to_string())?;
    let manifest = dataset.manifest();
    if manifest.prepared().is_some() {
        return look_at_prepared(dataset, &stored, sample);
    }
    if manifest.kind() != ContentKind::Image {
        return look_at_other(manifest.kind(), &stored, sample);
    }
    let form = form_of(&stored);
    if form != Form::Jpeg && form != manifest.form() {
        let (found, said) = (form.name(), manifest.form().name());
        return Err(format!("it is in the form {found}, dataset.json says {said}; pack again"));
    }
    let reserved = scratch.reserve(&stored, form)?;
    let found = look_at_image(dataset, (&stored, form), sample, scratch);
    if reserved.is_some() {
        scratch.free();
    }
    found
}

/// Checks one sample that is an image.
fn look_at_image(
    dataset: &Dataset,
    (stored, form): (&[u8], Form),
    sample: &Sample,
    scratch: &mut Scratch,
) -> Result<SampleFacts, String> {
    let Scratch { interrupt, converter, of_file, of_form, .. } = scratch;
    let manifest = dataset.manifest();
    let file = original_until(stored, interrupt)
        .map_err(|error| format!("it cannot be restored from its form: {error}; pack again"))?;
    converter
        .decode(&file, of_file)
        .map_err(|error| format!("{error}; repair the source and pack again"))?;
    if form != Form::Jpeg {
        converter.decode(stored, of_form).map_err(|error| format!("{error}; pack again"))?;
        if of_form != of_file {
            return Err("its form decodes to other pixels than its file; pack again".to_owned());
        }
    }
    let is_jpeg = ImageFormat::of(&file) == Some(ImageFormat::Jpeg);
    let spacing = manifest.stored.as_ref().and_then(|stored| stored.entry_points.spacing);
    let expected = spacing
        .filter(|_| form == Form::Jpeg && is_jpeg)
        .map(|spacing| entry_points_until(&file, spacing, interrupt))
        .transpose()
        .map_err(|_| "interrupted".to_owned())?
        .flatten();
    let packed = sample.entry_points.as_ref().map(AsRef::as_ref);
    let problem = match (packed, expected.as_deref()) {
        (packed, expected) if packed == expected => None,
        (None, _) => Some("it has no entry points, though decoding can start in its middle"),
        (Some(_), None) => Some("it has entry points, though none belong to it"),
        (Some(_), Some(_)) => Some("its entry points are not those of its file"),
    };
    match problem {
        Some(problem) => Err(format!("{problem}; pack again")),
        None => {
            let (bytes, has_entry_points) = (stored.len() as u64, packed.is_some());
            Ok(SampleFacts { bytes, form, is_jpeg, has_entry_points })
        }
    }
}

/// Checks one sample that was prepared offline: it must have the resulting type of the operations.
fn look_at_prepared(
    dataset: &Dataset,
    stored: &[u8],
    sample: &Sample,
) -> Result<SampleFacts, String> {
    if sample.entry_points.is_some() {
        return Err("it has entry points, though it is prepared; prepare it again".to_owned());
    }
    dataset
        .prepared_tensor(sample.index)
        .map_err(|error| format!("{}; prepare it again", error.what()))?;
    let (form, is_jpeg, has_entry_points) = (Form::Jpeg, true, false);
    Ok(SampleFacts { bytes: stored.len() as u64, form, is_jpeg, has_entry_points })
}

/// Checks one sample that is not an image: text must be UTF-8, and other content is not checked.
fn look_at_other(kind: ContentKind, stored: &[u8], sample: &Sample) -> Result<SampleFacts, String> {
    if sample.entry_points.is_some() {
        return Err(format!("it has entry points, though it is {}; pack again", kind.name()));
    }
    if let (ContentKind::Text, Err(error)) = (kind, std::str::from_utf8(stored)) {
        let byte = error.valid_up_to();
        return Err(format!("the text is not UTF-8 from byte {byte}; pack again"));
    }
    // Not an image, so it is counted as neither converted nor kept.
    let (form, is_jpeg, has_entry_points) = (Form::Jpeg, true, false);
    Ok(SampleFacts { bytes: stored.len() as u64, form, is_jpeg, has_entry_points })
}

/// Counts of the manifest that are wrong.
fn differences(dataset: &Dataset, deep: &DeepReport) -> Vec<Problem> {
    let Some(stored) = dataset.manifest().stored.as_ref() else { return Vec::new() };
    let not_jpeg = stored.kept.get(&NotConverted::NotJpeg).copied().unwrap_or(0);
    [
        ("stored.converted", stored.converted, deep.converted),
        ("stored.kept.not_jpeg", not_jpeg, deep.not_jpeg),
    ]
    .into_iter()
    .filter(|(_, said, found)| said != found)
    .map(|(name, said, found)| Problem {
        file: MANIFEST_NAME.to_owned(),
        place: DamageLocation::File,
        problem: format!("{name} is {said}, the samples say {found}; pack again"),
    })
    .collect()
}
