//! `meetpoint show`: one sample as the model will see it, as a picture or an array, or a contact
//! sheet of several.

use crate::surface::Output;
use crate::surface::fault::Fault;
use anyhow::Context;
use image::DynamicImage;
use meetpoint_datasets::operations::row_values;
use meetpoint_datasets::{DRAWS_MAX, Preview, PreviewOptions, SAMPLES_MAX, preview};
use meetpoint_diagnose::{Remedy, known, shown};
use meetpoint_format::dataset::ContentKind;
use meetpoint_format::npy;
use meetpoint_format::recipe::{Change, Dtype, Layout, Recipe, TensorSpec};
use meetpoint_kernels::{Cpu, Picture, SampleId, Tensor};
use meetpoint_prepare::{Dataset, DecodeMemory, OnePreparer};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Write one sample, prepared as for training, as a PNG or a NumPy array, or a contact sheet.
///
/// With a recipe, the sample is prepared exactly as in a run with this seed and epoch. Without a
/// recipe, the result is the decoded picture, uint8, height x width x channel. For a prepared
/// dataset, it is the stored tensor. If a recipe gives several pictures of each sample, a PNG shows
/// all of them in a row. Further columns are printed.
///
/// With a recipe and without a sample, the PNG is a contact sheet. Each row shows a stored picture,
/// followed by the results of the recipe in successive epochs: one picture, or all views and crops
/// side by side. Normalisation is undone; boxes, points and masks are drawn.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint show photos.set 0 -o first.png
  meetpoint show photos.set cats/12.jpg --recipe train.toml --epoch 3 -o seen.npy
  meetpoint show photos.set --recipe deit --samples 8 --draws 6 -o sheet.png")]
pub(crate) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Index of the sample, from 0, or its key (for a folder, the relative path of the file).
    /// Without it, a contact sheet is written.
    #[arg(value_name = "INDEX|KEY", required_unless_present = "recipe")]
    sample: Option<String>,
    /// Recipe to apply: a TOML file, or the name of a shipped recipe.
    #[arg(long, value_name = "FILE|NAME")]
    recipe: Option<PathBuf>,
    /// Set a key of the recipe: KEY sets it in every operation that has it, OPERATION.KEY in one
    /// operation, VIEW.OPERATION.KEY in one view; VIEW.count is the number of pictures of a view.
    #[arg(long, value_name = "KEY=VALUE", requires = "recipe")]
    set: Vec<Change>,
    /// Samples of a contact sheet, spread over the dataset.
    #[arg(long, default_value_t = 8, conflicts_with = "sample", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(SAMPLES_MAX)))]
    samples: u32,
    /// Results of each sample of a contact sheet, one for each epoch.
    #[arg(long, default_value_t = 4, conflicts_with = "sample", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(DRAWS_MAX)))]
    draws: u32,
    /// View of the recipe to write, by its column; by default a PNG shows all views.
    #[arg(long, requires = "sample", value_name = "COLUMN")]
    view: Option<String>,
    /// Seed of the job, for random operations.
    #[arg(long, default_value_t = 0, requires = "recipe", value_name = "N")]
    seed: u64,
    /// Epoch, from 0, for random operations.
    #[arg(long, default_value_t = 0, requires = "recipe", value_name = "N")]
    epoch: u32,
    /// File to write: x.png or x.npy.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Copies of a picture while its file is made: as an image, and encoded.
const COPIES: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Png,
    Npy,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let form = form_of(&arguments.output)?;
    let dataset = Dataset::open(&arguments.dataset)?;
    let Some(wanted) = &arguments.sample else {
        return sheet(arguments, form, dataset, output);
    };
    let sample = find(&dataset, wanted)?;
    let key = dataset.key(sample)?;
    let is_prepared = dataset.manifest().prepared().is_some();
    let has_pictures = dataset.columns().kind == ContentKind::Image || is_prepared;
    if !has_pictures && arguments.recipe.is_none() {
        let kind = dataset.columns().kind.name();
        let message = format!("the content of {} is {kind}, not images", shown(dataset.path()));
        return Err(Fault::new("not_images", message, "add --recipe").into());
    }
    // Its memory, for as long as the picture and the file made of it exist.
    let mut _reserved = None;
    let (views, columns) = match &arguments.recipe {
        Some(path) => {
            let recipe = super::recipe::read(path, &arguments.set)?;
            let id = SampleId { seed: arguments.seed, epoch: arguments.epoch, sample };
            let mut preparer = OnePreparer::new(&dataset, &recipe, Cpu::detect())?;
            let wanted = selected(&recipe, arguments.view.as_deref())?;
            let names: Vec<String> = recipe.views().iter().map(|it| it.column.clone()).collect();
            preparer.set_columns(wanted.clone());
            let columns = preparer.prepare_all(sample, id)?;
            let named = wanted.into_iter().filter_map(|index| names.get(index).cloned());
            (named.collect::<Vec<_>>(), columns)
        }
        None => {
            let tensor = match dataset.prepared_tensor(sample)? {
                Some(prepared) => prepared,
                None => {
                    let memory = DecodeMemory::of_this_process();
                    let (picture, reserved) = dataset.decode_picture(sample, COPIES, &memory)?;
                    _reserved = reserved;
                    tensor_of(picture)
                }
            };
            (vec![], vec![vec![tensor]])
        }
    };
    let shapes = columns.iter().map(|pictures| shape_of(pictures)).collect::<Vec<_>>();
    let pictures: Vec<&Tensor> = columns.iter().flatten().collect();
    let first = pictures.first().context("a recipe makes a picture of a sample")?;
    let file = match form {
        Form::Npy => array(&columns, (&views, &shapes))?,
        Form::Png => png(&pictures)?,
    };
    let (folder, name) = folder_and_name(&arguments.output)?;
    meetpoint_report::write::place(folder, name, &file)?;
    let dtype = first.spec.dtype.name();
    let columns = columns_of(&dataset, sample)?;
    let of_views = views.iter().zip(&shapes);
    let of_views: Vec<_> = of_views
        .map(|(view, shape)| serde_json::json!({ "column": view, "shape": shape }))
        .collect();
    let document = serde_json::json!({
        "sample": sample, "key": key, "shape": shapes[0], "dtype": dtype,
        "output": arguments.output, "columns": columns, "views": of_views,
    });
    output.result(&document, || {
        let in_words = |shape: &Option<Vec<u32>>| match shape {
            Some(shape) => shape.iter().map(u32::to_string).collect::<Vec<_>>().join(" x "),
            None => "of various shapes".to_owned(),
        };
        let written = shown(&arguments.output);
        let of_one = shapes.iter().map(in_words).enumerate().map(|(index, shape)| {
            views.get(index).map(|view| format!("{view} {shape}")).unwrap_or(shape)
        });
        let shapes: Vec<String> = of_one.collect();
        let shapes = shapes.join(", ");
        let mut text = format!("{written}: sample {sample} ({key}), {dtype}, {shapes}");
        for (name, value) in &columns {
            text.push_str(&format!("\n  {name}: {value}"));
        }
        text
    })
}

/// Writes a contact sheet.
fn sheet(
    arguments: &Arguments,
    form: Form,
    dataset: Dataset,
    output: Output,
) -> anyhow::Result<()> {
    let Some(recipe) = &arguments.recipe else {
        let message = "a contact sheet needs a recipe";
        return Err(Fault::usage(message, "name a sample, or give --recipe").into());
    };
    if form != Form::Png {
        let message = format!("{} cannot hold a contact sheet", shown(&arguments.output));
        return Err(Fault::usage(message, "write x.png, or name a sample").into());
    }
    let recipe = Arc::new(super::recipe::read(recipe, &arguments.set)?);
    let Arguments { samples, draws, seed, epoch, .. } = *arguments;
    let options = PreviewOptions { samples, draws, seed, epoch };
    let Preview { png, size, rows, epochs } = preview(&Arc::new(dataset), &recipe, &options)?;
    let (folder, name) = folder_and_name(&arguments.output)?;
    meetpoint_report::write::place(folder, name, &png)?;
    let listed: Vec<serde_json::Value> = rows
        .iter()
        .map(|(sample, key)| serde_json::json!({ "sample": sample, "key": key }))
        .collect();
    let document = serde_json::json!({
        "output": arguments.output, "width": size.0, "height": size.1, "rows": listed,
        "epochs": epochs.clone().collect::<Vec<_>>(),
    });
    output.result(&document, || {
        let written = shown(&arguments.output);
        let (first, last) = (epochs.start, epochs.end - 1);
        let mut text =
            format!("{written}: the stored pictures, then epochs {first} to {last}; rows:");
        for (sample, key) in &rows {
            text.push_str(&format!("\n  sample {sample} ({key})"));
        }
        text
    })
}

/// The further columns of a sample.
fn columns_of(
    dataset: &Dataset,
    sample: u64,
) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    if !dataset.columns().has_extra() {
        return Ok(serde_json::Map::new());
    }
    let (record_batch, row) = dataset.batch_of(sample)?;
    Ok(row_values(&dataset.extra(record_batch, None)?, row, usize::MAX))
}

fn form_of(path: &Path) -> anyhow::Result<Form> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("png") => Ok(Form::Png),
        Some("npy") => Ok(Form::Npy),
        _ => {
            let message = format!("cannot determine the format of {}", shown(path));
            Err(Fault::new("unknown_format", message, "end the name in .png or .npy").into())
        }
    }
}

fn folder_and_name(path: &Path) -> anyhow::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not the name of a file", shown(path)))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok((folder, name))
}

/// Finds a sample: a whole number is an index, any other text a key.
fn find(dataset: &Dataset, wanted: &str) -> anyhow::Result<u64> {
    let samples = dataset.len();
    if let Ok(index) = wanted.parse::<u64>() {
        if index >= samples {
            let message = format!(
                "{} has {samples} samples; there is no sample {index}",
                shown(dataset.path())
            );
            let remedy = format!("give an index from 0 to {}", samples.saturating_sub(1));
            return Err(Fault::new("no_such_sample", message, remedy).into());
        }
        return Ok(index);
    }
    dataset.find(wanted)?.with_context(|| {
        let message = format!("{} has no sample with key {wanted}", shown(dataset.path()));
        let remedy = "give a key as it was packed: a path relative to the source";
        Fault::new("no_such_sample", message, remedy)
    })
}

fn tensor_of(picture: Picture) -> Tensor {
    let spec = TensorSpec {
        height: picture.height,
        width: picture.width,
        channels: 3,
        dtype: Dtype::Uint8,
        layout: Layout::Nhwc,
    };
    Tensor { spec, data: picture.pixels }
}

/// The columns of a recipe that are shown: the view with this name, or all.
fn selected(recipe: &Recipe, view: Option<&str>) -> anyhow::Result<Vec<usize>> {
    let Some(name) = view else { return Ok((0..recipe.images().len()).collect()) };
    let views: Vec<&str> = recipe.views().iter().map(|it| it.column.as_str()).collect();
    match views.iter().position(|view| *view == name) {
        Some(index) => Ok(vec![index]),
        None if views.is_empty() => {
            let message = format!("the recipe has no views, and --view names {name:?}");
            Err(Fault::new("no_such_view", message, "leave --view out").into())
        }
        None => {
            let message = format!("the recipe has no view {name:?}");
            Err(Fault::new("no_such_view", message, known(name, &views)).into())
        }
    }
}

/// The axes of a column for one sample: those of its picture, preceded by the number of pictures if
/// there are several; `None` if their shapes differ.
fn shape_of(pictures: &[Tensor]) -> Option<Vec<u32>> {
    let axes = pictures.first()?.spec.axes();
    let are_equal = pictures.iter().all(|picture| picture.spec == pictures[0].spec);
    let count = u32::try_from(pictures.len()).ok().filter(|count| *count > 1);
    are_equal.then(|| count.into_iter().chain(axes).collect())
}

/// A NumPy array of the pictures of one column.
fn array(
    columns: &[Vec<Tensor>],
    (views, shapes): (&[String], &[Option<Vec<u32>>]),
) -> anyhow::Result<Vec<u8>> {
    let ([pictures], [shape]) = (columns, shapes) else {
        let message =
            format!("a NumPy file holds one array, and the views are {}", views.join(", "));
        return Err(Fault::new("several_views", message, format!("add --view {}", views[0])).into());
    };
    let Some(shape) = shape else {
        let message = "the pictures of this sample have different shapes, which no array holds";
        let remedy = "write x.png, or end the recipe with a crop or an exact resize";
        return Err(Fault::new("several_shapes", message, remedy).into());
    };
    let data: Vec<u8> = pictures.iter().flat_map(|picture| &picture.data).copied().collect();
    Ok(npy::encode(shape, pictures[0].spec.dtype, &data))
}

/// A PNG of tensors of integers in either layout; several are placed side by side, in eight bits.
fn png(tensors: &[&Tensor]) -> anyhow::Result<Vec<u8>> {
    let pictures = tensors.iter().map(|tensor| picture(tensor)).collect::<Result<Vec<_>, _>>()?;
    let picture = match &pictures[..] {
        [picture] => picture.clone(),
        pictures => {
            let width = pictures.iter().map(DynamicImage::width).sum();
            let height = pictures.iter().map(DynamicImage::height).max().unwrap_or(0);
            let mut row = image::RgbImage::new(width, height);
            let mut x = 0;
            for picture in pictures {
                image::imageops::replace(&mut row, &picture.to_rgb8(), x, 0);
                x += i64::from(picture.width());
            }
            row.into()
        }
    };
    let mut file = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut file, image::ImageFormat::Png).context("failed to encode the PNG")?;
    Ok(file.into_inner())
}

/// The picture of a tensor of integers in either layout.
fn picture(tensor: &Tensor) -> anyhow::Result<DynamicImage> {
    let spec = &tensor.spec;
    let (width, height) = (spec.width, spec.height);
    let bytes = match spec.layout {
        Layout::Nhwc | Layout::Nt | Layout::Ntc => tensor.data.clone(),
        Layout::Nchw | Layout::Nct => interleave(&tensor.data, spec),
    };
    let words = || -> Vec<u16> {
        bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect()
    };
    let picture = match (spec.dtype, spec.channels) {
        (Dtype::Uint8, 1) => {
            image::GrayImage::from_raw(width, height, bytes).map(DynamicImage::from)
        }
        (Dtype::Uint8, 4) => {
            image::RgbaImage::from_raw(width, height, bytes).map(DynamicImage::from)
        }
        (Dtype::Uint8, _) => {
            image::RgbImage::from_raw(width, height, bytes).map(DynamicImage::from)
        }
        (Dtype::Uint16, 1) => {
            image::ImageBuffer::from_raw(width, height, words()).map(DynamicImage::ImageLuma16)
        }
        (Dtype::Uint16, _) => {
            image::ImageBuffer::from_raw(width, height, words()).map(DynamicImage::ImageRgb16)
        }
        (Dtype::Int32 | Dtype::Float16 | Dtype::Float32, _) => {
            let message =
                format!("the recipe gives {}, which a PNG cannot hold", spec.dtype.name());
            let remedy =
                Remedy::advice("write x.npy").or("leave to_dtype and normalize out of the recipe");
            return Err(Fault::new("not_a_picture", message, remedy).into());
        }
    };
    picture.context("the tensor has another size than its shape")
}

/// Converts planes to interleaved pixels.
fn interleave(planes: &[u8], spec: &TensorSpec) -> Vec<u8> {
    let (element, channels) = (spec.dtype.bytes(), spec.channels as usize);
    let plane = planes.len() / channels;
    let pixel = |at: usize| {
        (0..channels).flat_map(move |channel| &planes[channel * plane + at..][..element])
    };
    (0..plane).step_by(element).flat_map(pixel).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{Form, folder_and_name, form_of, interleave, png};
    use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};
    use meetpoint_kernels::Tensor;
    use std::path::Path;

    fn tensor(dtype: Dtype, layout: Layout, data: Vec<u8>) -> Tensor {
        Tensor { spec: TensorSpec { height: 1, width: 2, channels: 3, dtype, layout }, data }
    }

    #[test]
    fn both_layouts_give_the_same_png() {
        let pixels = tensor(Dtype::Uint8, Layout::Nhwc, vec![1, 2, 3, 4, 5, 6]);
        let planes = tensor(Dtype::Uint8, Layout::Nchw, vec![1, 4, 2, 5, 3, 6]);
        assert_eq!(interleave(&planes.data, &planes.spec), pixels.data);
        let file = png(&[&pixels]).unwrap();
        assert_eq!(file, png(&[&planes]).unwrap());
        let read = image::load_from_memory(&file).unwrap().into_rgb8();
        assert_eq!(read.into_raw(), pixels.data);
    }

    #[test]
    fn one_channel_gives_a_grey_png() {
        let spec = TensorSpec {
            height: 1,
            width: 2,
            channels: 1,
            dtype: Dtype::Uint8,
            layout: Layout::Nchw,
        };
        let file = png(&[&Tensor { spec, data: vec![7, 200] }]).unwrap();
        let read = image::load_from_memory(&file).unwrap();
        assert_eq!(read.color(), image::ColorType::L8);
        assert_eq!(read.into_luma8().into_raw(), [7, 200]);
    }

    #[test]
    fn alpha_and_16_bits_are_in_the_png() {
        let spec = |channels, dtype| TensorSpec {
            height: 1,
            width: 2,
            channels,
            dtype,
            layout: Layout::Nchw,
        };
        let data = vec![1, 5, 2, 6, 3, 7, 4, 8];
        let file = png(&[&Tensor { spec: spec(4, Dtype::Uint8), data }]).unwrap();
        let read = image::load_from_memory(&file).unwrap();
        assert_eq!(read.color(), image::ColorType::Rgba8);
        assert_eq!(read.into_rgba8().into_raw(), [1, 2, 3, 4, 5, 6, 7, 8]);
        let data: Vec<u8> =
            [1000u16, 4, 2, 5, 3, 65000].iter().flat_map(|it| it.to_le_bytes()).collect();
        let file = png(&[&Tensor { spec: spec(3, Dtype::Uint16), data }]).unwrap();
        let read = image::load_from_memory(&file).unwrap();
        assert_eq!(read.color(), image::ColorType::Rgb16);
        assert_eq!(read.into_rgb16().into_raw(), [1000, 2, 3, 4, 5, 65000]);
    }

    #[test]
    fn floats_do_not_become_a_png_and_the_error_says_what_to_do() {
        let error = png(&[&tensor(Dtype::Float32, Layout::Nhwc, vec![0; 24])]).unwrap_err();
        assert!(error.to_string().contains("a PNG cannot hold"), "{error}");
    }

    #[test]
    fn the_file_name_selects_the_format() {
        assert_eq!(form_of(Path::new("a/x.npy")).unwrap(), Form::Npy);
        assert_eq!(form_of(Path::new("x.png")).unwrap(), Form::Png);
        assert!(form_of(Path::new("x.jpg")).is_err());
        assert_eq!(folder_and_name(Path::new("x.png")).unwrap(), (Path::new("."), "x.png"));
    }
}
