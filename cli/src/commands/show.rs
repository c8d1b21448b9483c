//! `meetpoint show`: one sample as the model will see it, as a picture or an array.

use crate::npy;
use crate::surface::Output;
use crate::surface::fault::Fault;
use anyhow::Context;
use image::DynamicImage;
use meetpoint_datasets::operations::row_values;
use meetpoint_diagnose::Remedy;
use meetpoint_format::dataset::ContentKind;
use meetpoint_format::recipe::{Dtype, Layout, TensorSpec};
use meetpoint_kernels::{Cpu, Picture, SampleId, SamplePreparer, Tensor, decode_into};
use meetpoint_prepare::Dataset;
use std::path::{Path, PathBuf};

/// Write one sample, prepared as for training, as a PNG or a NumPy array.
///
/// With a recipe, the sample is prepared exactly as in a run with this seed and epoch. Without a
/// recipe, the result is the decoded picture, uint8, height x width x channel. Further columns are
/// printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint show photos.set 0 -o first.png
  meetpoint show photos.set cats/12.jpg --recipe train.toml --epoch 3 -o seen.npy")]
pub(crate) struct Arguments {
    /// Folder of the dataset.
    dataset: PathBuf,
    /// Index of the sample, from 0, or its key (for a folder, the relative path of the file).
    #[arg(value_name = "INDEX|KEY")]
    sample: String,
    /// Recipe in TOML to apply.
    #[arg(long, value_name = "FILE")]
    recipe: Option<PathBuf>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Png,
    Npy,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let form = form_of(&arguments.output)?;
    let dataset = Dataset::open(&arguments.dataset)?;
    let sample = find(&dataset, &arguments.sample)?;
    let key = dataset.key(sample)?;
    if dataset.columns().kind != ContentKind::Image {
        let kind = dataset.columns().kind.name();
        let message = format!("the content of {} is {kind}, not images", dataset.path().display());
        return Err(Fault::new("not_images", message, "name a dataset of images").into());
    }
    let encoded = dataset.read_file(sample)?;
    let tensor = match &arguments.recipe {
        Some(path) => {
            let id = SampleId { seed: arguments.seed, epoch: arguments.epoch, sample };
            let mut preparer = SamplePreparer::new(&super::recipe::read(path)?, Cpu::detect());
            preparer.prepare_tensor((&encoded).into(), id)
        }
        None => decoded(&encoded),
    };
    let tensor = tensor.with_context(|| format!("sample {sample} ({key}) cannot be prepared"))?;
    let shape = shape_of(&tensor.spec);
    let file = match form {
        Form::Npy => npy::encode(&shape, tensor.spec.dtype, &tensor.data),
        Form::Png => png(&tensor)?,
    };
    let (folder, name) = folder_and_name(&arguments.output)?;
    meetpoint_report::write::place(folder, name, &file)?;
    let dtype = tensor.spec.dtype.name();
    let columns = columns_of(&dataset, sample)?;
    let document = serde_json::json!({
        "sample": sample, "key": key, "shape": shape, "dtype": dtype, "output": arguments.output,
        "columns": columns,
    });
    output.result(&document, || {
        let shape = shape.map(|axis| axis.to_string()).join(" x ");
        let written = arguments.output.display();
        let mut text = format!("{written}: sample {sample} ({key}), {dtype}, {shape}");
        for (name, value) in &columns {
            text.push_str(&format!("\n  {name}: {value}"));
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
            let message = format!("cannot determine the format of {}", path.display());
            Err(Fault::new("unknown_format", message, "end the name in .png or .npy").into())
        }
    }
}

fn folder_and_name(path: &Path) -> anyhow::Result<(&Path, &str)> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} is not the name of a file", path.display()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Ok((folder, name))
}

/// A whole number is an index, everything else a key.
fn find(dataset: &Dataset, wanted: &str) -> anyhow::Result<u64> {
    let samples = dataset.len();
    if let Ok(index) = wanted.parse::<u64>() {
        if index >= samples {
            let message = format!(
                "{} has {samples} samples; there is no sample {index}",
                dataset.path().display()
            );
            let remedy = format!("give an index from 0 to {}", samples.saturating_sub(1));
            return Err(Fault::new("no_such_sample", message, remedy).into());
        }
        return Ok(index);
    }
    dataset.find(wanted)?.with_context(|| {
        let message = format!("{} has no sample with key {wanted}", dataset.path().display());
        let remedy = "give a key as it was packed: a path relative to the source";
        Fault::new("no_such_sample", message, remedy)
    })
}

fn decoded(encoded: &[u8]) -> Result<Tensor, meetpoint_kernels::Error> {
    let mut picture = Picture::default();
    decode_into(encoded, None, &mut picture)?;
    let spec = TensorSpec {
        height: picture.height,
        width: picture.width,
        channels: 3,
        dtype: Dtype::Uint8,
        layout: Layout::Nhwc,
    };
    Ok(Tensor { spec, data: picture.pixels })
}

/// The axes of one sample: a batch's without the first.
fn shape_of(spec: &TensorSpec) -> [u32; 3] {
    let [_, a, b, c] = spec.batch_shape(1);
    [a, b, c]
}

/// A PNG of a uint8 tensor in either layout.
fn png(tensor: &Tensor) -> anyhow::Result<Vec<u8>> {
    let spec = &tensor.spec;
    if spec.dtype != Dtype::Uint8 {
        let message = format!("the recipe gives {}, which a PNG cannot hold", spec.dtype.name());
        let remedy =
            Remedy::advice("write x.npy").or("leave to_dtype and normalize out of the recipe");
        return Err(Fault::new("not_a_picture", message, remedy).into());
    }
    let (width, height) = (spec.width, spec.height);
    let picture = match (spec.channels, spec.layout) {
        (1, Layout::Nhwc | Layout::Nchw) => {
            image::GrayImage::from_raw(width, height, tensor.data.clone()).map(DynamicImage::from)
        }
        (_, Layout::Nhwc) => {
            image::RgbImage::from_raw(width, height, tensor.data.clone()).map(DynamicImage::from)
        }
        (_, Layout::Nchw) => image::RgbImage::from_raw(width, height, interleave(&tensor.data))
            .map(DynamicImage::from),
    };
    let mut file = std::io::Cursor::new(Vec::new());
    picture
        .context("the tensor has another size than its shape")?
        .write_to(&mut file, image::ImageFormat::Png)
        .context("failed to encode the PNG")?;
    Ok(file.into_inner())
}

/// Three planes to pixels.
fn interleave(planes: &[u8]) -> Vec<u8> {
    let plane = planes.len() / 3;
    (0..plane).flat_map(|i| [planes[i], planes[plane + i], planes[2 * plane + i]]).collect()
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
        assert_eq!(interleave(&planes.data), pixels.data);
        let file = png(&pixels).unwrap();
        assert_eq!(file, png(&planes).unwrap());
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
        let file = png(&Tensor { spec, data: vec![7, 200] }).unwrap();
        let read = image::load_from_memory(&file).unwrap();
        assert_eq!(read.color(), image::ColorType::L8);
        assert_eq!(read.into_luma8().into_raw(), [7, 200]);
    }

    #[test]
    fn floats_do_not_become_a_png_and_the_error_says_what_to_do() {
        let error = png(&tensor(Dtype::Float32, Layout::Nhwc, vec![0; 24])).unwrap_err();
        assert!(error.to_string().contains("a PNG cannot hold"), "{error}");
    }

    #[test]
    fn the_name_decides_what_is_written() {
        assert_eq!(form_of(Path::new("a/x.npy")).unwrap(), Form::Npy);
        assert_eq!(form_of(Path::new("x.png")).unwrap(), Form::Png);
        assert!(form_of(Path::new("x.jpg")).is_err());
        assert_eq!(folder_and_name(Path::new("x.png")).unwrap(), (Path::new("."), "x.png"));
    }
}
