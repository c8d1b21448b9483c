//! How packing rewrites a JPEG, in terms of the dataset format and of the kernels.

use crate::choice::Choice;
use meetpoint_diagnose::{Setting, Surface};
use meetpoint_format::dataset::schema::{ENTRY_POINTS_BYTES_MAX, IMAGE_BYTES_MAX};
use meetpoint_format::dataset::{EntryPointSpacing, Form, NotConverted, RestartMarkersStored};
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::jpeg::{self, HuffmanTables, Process, Restarts, Rewrite, Spacing};
use meetpoint_kernels::{Cpu, Error, ImageFormat, Interrupt, Picture};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to do with progressive JPEGs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progressive {
    /// Re-write them as baseline: different bytes, the same coefficients and pixels.
    #[default]
    Transcode,
    /// Do not change them.
    Keep,
}

/// What to do with restart markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartMarkers {
    /// Do not change them.
    #[default]
    Keep,
    /// Remove them.
    Remove,
    /// One after each row of MCUs.
    EveryMcuRow,
    /// One after this number of MCUs, at least 1.
    EveryMcus(u16),
}

/// The form in which JPEGs are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JpegOptions {
    /// As files or in a coefficient form.
    pub form: Form,
    /// The spacing of entry points; `None` for no entry points.
    pub entry_points: Option<EntryPointSpacing>,
    /// What to do with progressive ones.
    pub progressive: Progressive,
    /// What to do with restart markers.
    pub restarts: RestartMarkers,
    /// Whether to give each file optimal Huffman tables.
    pub optimise_huffman: bool,
}

impl Default for JpegOptions {
    fn default() -> Self {
        Self {
            form: Form::default(),
            entry_points: Some(EntryPointSpacing::default()),
            progressive: Progressive::default(),
            restarts: RestartMarkers::default(),
            optimise_huffman: false,
        }
    }
}

impl JpegOptions {
    /// The options by name, for a dataset's provenance.
    pub(crate) fn by_name(&self) -> BTreeMap<String, String> {
        let name = |setting: Setting| setting.name(Surface::CommandLine).trim_start_matches('-');
        let values = self.values().into_iter();
        values.map(|(setting, value)| (name(setting).to_owned(), value)).collect()
    }

    /// The value of each option.
    pub(crate) fn values(&self) -> [(Setting, String); 5] {
        let entry_points = match self.entry_points {
            None => "none".to_owned(),
            Some(EntryPointSpacing::McuRow) => "row".to_owned(),
            Some(EntryPointSpacing::Mcus(count)) => count.to_string(),
        };
        let restarts = match self.restarts {
            RestartMarkers::Keep => "keep".to_owned(),
            RestartMarkers::Remove => "none".to_owned(),
            RestartMarkers::EveryMcuRow => "row".to_owned(),
            RestartMarkers::EveryMcus(count) => count.to_string(),
        };
        [
            (Setting::Form, self.form.name().to_owned()),
            (Setting::EntryPoints, entry_points),
            (Setting::Progressive, self.progressive.name().to_owned()),
            (Setting::RestartInterval, restarts),
            (Setting::OptimizeHuffman, self.optimise_huffman.to_string()),
        ]
    }

    /// The first option that differs from its default.
    pub(crate) fn first_set(&self) -> Option<Setting> {
        let default = Self::default();
        let set = [
            (Setting::Form, self.form != default.form),
            (Setting::EntryPoints, self.entry_points != default.entry_points),
            (Setting::Progressive, self.progressive != default.progressive),
            (Setting::RestartInterval, self.restarts != default.restarts),
            (Setting::OptimizeHuffman, self.optimise_huffman != default.optimise_huffman),
        ];
        set.into_iter().find(|(_, is_set)| *is_set).map(|(option, _)| option)
    }

    /// Whether the options require re-writing every file.
    fn rewrites_all(&self) -> bool {
        self.restarts != RestartMarkers::Keep || self.optimise_huffman
    }
}

/// How a file was treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ConversionOutcome {
    /// It was converted to the coefficient form.
    pub(crate) is_converted: bool,
    /// Re-writing changed its bytes.
    pub(crate) is_rewritten: bool,
    /// It was re-written from progressive to baseline.
    pub(crate) is_transcoded: bool,
    /// What was done with restart markers; `None` if they were not to be changed.
    pub(crate) restarts: Option<RestartMarkersStored>,
    /// Why a requested conversion was not done.
    pub(crate) kept: Option<NotConverted>,
}

/// A re-written file.
struct Rewritten {
    file: Vec<u8>,
    /// Its length without restart markers; `None` if none were inserted.
    bytes_without_restarts: Option<u64>,
}

/// A file in its stored form.
#[derive(Debug)]
pub(crate) struct Converted {
    /// The stored bytes.
    pub(crate) stored: Vec<u8>,
    /// Positions inside the file at which decoding can start.
    pub(crate) entry_points: Option<Vec<u8>>,
    /// How the file was treated.
    pub(crate) outcome: ConversionOutcome,
}

/// The caller requested a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted;

/// The result of a kernel, or `None` if it failed; an interruption is an error.
fn possible<T, E: Into<Error>>(made: Result<T, E>) -> Result<Option<T>, Interrupted> {
    match made.map_err(Into::into) {
        Ok(made) => Ok(Some(made)),
        Err(Error::Interrupted) => Err(Interrupted),
        Err(_) => Ok(None),
    }
}

/// Converts JPEGs, until interrupted.
#[derive(Debug)]
pub(crate) struct Converter {
    interrupt: Interrupt,
    decoder: Decoder,
    rewritten: Picture,
}

impl Converter {
    pub(crate) fn new(interrupt: Interrupt) -> Self {
        let mut decoder = Decoder::new(Cpu::detect());
        decoder.set_interrupt(interrupt.clone());
        Self { interrupt, decoder, rewritten: Picture::default() }
    }

    /// Decodes the whole file.
    pub(crate) fn decode(&mut self, file: &[u8], into: &mut Picture) -> Result<(), Error> {
        self.decoder.decode_into(file.into(), None, into)
    }

    /// Upper bound of the memory in bytes for converting a file with these options, besides the
    /// file and `decoded`; 0 if it is not a JPEG or needs little.
    pub(crate) fn conversion_bytes(
        file: &[u8],
        options: &JpegOptions,
        decoded: Option<u64>,
    ) -> u64 {
        if ImageFormat::of(file) != Some(ImageFormat::Jpeg) {
            return 0;
        }
        let transcodes =
            options.progressive == Progressive::Transcode && jpeg::is_progressive(file);
        let rewrites = options.rewrites_all() || transcodes;
        if !rewrites && options.form == Form::Jpeg {
            return 0;
        }
        // A file with unreadable headers is not converted.
        let conversion = jpeg::conversion_bytes(file).unwrap_or(0);
        let picture = if rewrites { decoded.unwrap_or(0) } else { 0 };
        conversion.saturating_add(picture)
    }

    /// Frees the memory for whole pictures, which is otherwise reused.
    pub(crate) fn free_pictures(&mut self) {
        self.decoder.free_pictures();
        self.rewritten = Picture::default();
    }

    /// Converts a file that decodes, or returns it unchanged with the reason.
    ///
    /// If `decoded`, its picture, is given, each step is checked: a re-written file must decode to
    /// the same pixels, and a converted one must be restored byte for byte.
    pub(crate) fn convert(
        &mut self,
        file: Vec<u8>,
        options: &JpegOptions,
        decoded: Option<&Picture>,
    ) -> Result<Converted, Interrupted> {
        let mut outcome = ConversionOutcome::default();
        if ImageFormat::of(&file) != Some(ImageFormat::Jpeg) {
            outcome.kept = Some(NotConverted::NotJpeg);
            return Ok(Converted { stored: file, entry_points: None, outcome });
        }
        // If the coefficient form restores the file exactly, it need not be re-written.
        if !options.rewrites_all()
            && let Some(stored) = self.to_form(&file, options.form, decoded.is_some())?
        {
            outcome.is_converted = true;
            return Ok(Converted { stored, entry_points: None, outcome });
        }
        let mut stored = file;
        let transcodes =
            options.progressive == Progressive::Transcode && jpeg::is_progressive(&stored);
        if options.rewrites_all() || transcodes {
            match self.rewrite(&stored, options, transcodes, decoded)? {
                Some(Rewritten { file, bytes_without_restarts }) => {
                    if options.restarts != RestartMarkers::Keep {
                        let bytes = |bytes: u64| bytes_without_restarts.map_or(0, |_| bytes);
                        outcome.restarts = Some(RestartMarkersStored {
                            inserted: bytes(1),
                            had_before: u64::from(jpeg::has_restart_markers(&stored)),
                            bytes: bytes(file.len() as u64),
                            bytes_without: bytes_without_restarts.unwrap_or(0),
                        });
                    }
                    outcome.is_rewritten = file != stored;
                    outcome.is_transcoded = transcodes;
                    stored = file;
                }
                None => outcome.kept = Some(NotConverted::NotRewritable),
            }
            if let Some(form) = self.to_form(&stored, options.form, decoded.is_some())? {
                outcome.is_converted = true;
                return Ok(Converted { stored: form, entry_points: None, outcome });
            }
        }
        if options.form != Form::Jpeg {
            outcome.kept = Some(NotConverted::NotReproducible);
        }
        let entry_points = match options.entry_points {
            Some(spacing) => entry_points_until(&stored, spacing, &self.interrupt)?,
            None => None,
        };
        Ok(Converted { stored, entry_points, outcome })
    }

    /// The coefficient form of a file; `None` if none is requested or the form could not restore
    /// the file.
    fn to_form(
        &self,
        file: &[u8],
        form: Form,
        is_checked: bool,
    ) -> Result<Option<Vec<u8>>, Interrupted> {
        let Some(form) = kernel_form(form) else { return Ok(None) };
        let Some(stored) = possible(jpeg::to_form_until(file, form, &self.interrupt))? else {
            return Ok(None);
        };
        if stored.len() as u64 > IMAGE_BYTES_MAX {
            return Ok(None);
        }
        if is_checked {
            let back = possible(jpeg::from_form_until(&stored, &self.interrupt))?;
            return Ok((back.as_deref() == Some(file)).then_some(stored));
        }
        Ok(Some(stored))
    }

    /// The same picture re-written as a different file; `None` if that is impossible.
    fn rewrite(
        &mut self,
        file: &[u8],
        options: &JpegOptions,
        transcodes: bool,
        decoded: Option<&Picture>,
    ) -> Result<Option<Rewritten>, Interrupted> {
        let restarts = match options.restarts {
            RestartMarkers::Keep => Restarts::Keep,
            RestartMarkers::Remove => Restarts::Remove,
            RestartMarkers::EveryMcuRow => Restarts::EveryMcuRows(1),
            RestartMarkers::EveryMcus(count) => Restarts::EveryMcus(count),
        };
        let process = if transcodes { Process::Baseline } else { Process::Keep };
        let with = |restarts, tables| {
            let how = Rewrite { restarts, tables, process };
            possible(jpeg::rewrite_until(file, &how, &self.interrupt))
        };
        // The tables of progressive scans do not fit a baseline scan, and other restart markers may
        // need codes that the file's tables lack.
        let own = match transcodes || options.optimise_huffman {
            true => None,
            false => with(restarts, HuffmanTables::Keep)?,
        };
        let (rewritten, tables) = match own {
            Some(own) => (Some(own), HuffmanTables::Keep),
            None => (with(restarts, HuffmanTables::Optimise)?, HuffmanTables::Optimise),
        };
        let Some(rewritten) = rewritten else { return Ok(None) };
        if rewritten.len() as u64 > IMAGE_BYTES_MAX {
            return Ok(None);
        }
        let inserts = !matches!(restarts, Restarts::Keep | Restarts::Remove)
            && jpeg::has_restart_markers(&rewritten);
        let bytes_without_restarts = match inserts {
            true => with(Restarts::Remove, tables)?.map(|without| without.len() as u64),
            false => None,
        };
        let rewritten = Rewritten { file: rewritten, bytes_without_restarts };
        if let Some(picture) = decoded {
            let into = &mut self.rewritten;
            let file = (&rewritten.file).into();
            let shown = possible(self.decoder.decode_into(file, None, into))?;
            return Ok((shown.is_some() && into == picture).then_some(rewritten));
        }
        Ok(Some(rewritten))
    }
}

/// The entry points of a JPEG; `None` if decoding cannot start inside it, or if they would exceed
/// the maximum length in a row.
pub(crate) fn entry_points(file: &[u8], spacing: EntryPointSpacing) -> Option<Vec<u8>> {
    entry_points_until(file, spacing, &Interrupt::default()).unwrap_or(None)
}

/// Like [`entry_points`], until interrupted.
pub(crate) fn entry_points_until(
    file: &[u8],
    spacing: EntryPointSpacing,
    interrupt: &Interrupt,
) -> Result<Option<Vec<u8>>, Interrupted> {
    let spacing = match spacing {
        EntryPointSpacing::McuRow => Spacing::McuRow,
        EntryPointSpacing::Mcus(count) => Spacing::Mcus(count),
    };
    let found = possible(jpeg::entry_points_until(file, spacing, interrupt))?.flatten();
    let fits = |found: &Vec<u8>| (1..=ENTRY_POINTS_BYTES_MAX).contains(&(found.len() as u64));
    Ok(found.filter(fits))
}

/// The form as the kernels name it; `None` for files.
fn kernel_form(form: Form) -> Option<jpeg::Form> {
    match form {
        Form::Jpeg => None,
        Form::Compact => Some(jpeg::Form::Compact),
        Form::Fast => Some(jpeg::Form::Fast),
    }
}

/// The form of stored bytes.
pub(crate) fn form_of(stored: &[u8]) -> Form {
    match jpeg::form_of(stored) {
        None => Form::Jpeg,
        Some(jpeg::Form::Compact) => Form::Compact,
        Some(jpeg::Form::Fast) => Form::Fast,
    }
}
