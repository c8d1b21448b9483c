//! `aspect_ratio`: batches of pictures with similar aspect ratios.

use super::Data;
use super::buckets::Buckets;
use super::column_type::ColumnType;
use super::columns::{SampleColumns, column_type};
use super::declaration::{Declaration, OptionSpec, OptionType, Value};
use super::error::SamplerError;
use super::rule::Rule;
use super::values::Values;

/// Largest factor: 33 edges.
const FACTOR_MAX: u64 = 16;

/// torchvision's default of `--aspect-ratio-group-factor`.
const FACTOR: u64 = 3;

/// Every sample once, in batches of pictures with similar aspect ratios: like torchvision's
/// `GroupedBatchSampler` with `create_aspect_ratio_groups`, but with random access and without
/// repeated or missing samples.
///
/// The edges of the buckets are 2^(i / factor) for i from -factor to factor; for a factor of 0, 1.
/// The bucket of a picture is the number of edges that are at most its height / width, in float64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AspectRatio {
    /// Number of edges between the aspect ratios 1 and 2, without the edge at 1.
    pub factor: u64,
    /// Columns with widths and heights. `None`: those in the files of the pictures.
    pub columns: Option<(String, String)>,
    /// Whether each epoch has a different order; otherwise buckets come in the order of their
    /// aspect ratios.
    pub shuffle: bool,
}

impl AspectRatio {
    /// The edges of the buckets, ascending.
    pub fn edges(factor: u64) -> Vec<f64> {
        if factor == 0 {
            return vec![1.0];
        }
        let edge = |step: u64| libm::exp2((step as f64 - factor as f64) / factor as f64);
        (0..=2 * factor).map(edge).collect()
    }

    /// The bucket of a picture of this height and width.
    pub fn bucket(edges: &[f64], (height, width): (u32, u32)) -> usize {
        let ratio = f64::from(height) / f64::from(width);
        edges.partition_point(|edge| *edge <= ratio)
    }

    /// Height and width of each sample.
    fn sizes<C: SampleColumns>(&self, columns: &C) -> Result<Vec<(u32, u32)>, C::Error> {
        let Some((width, height)) = &self.columns else {
            // Damaged pictures count as square; how they are handled is decided when they are
            // prepared.
            return Ok(columns
                .picture_sizes()?
                .into_iter()
                .map(|it| it.unwrap_or((1, 1)))
                .collect());
        };
        let widths = sides(columns, "width", width)?;
        let heights = sides(columns, "height", height)?;
        Ok(heights.into_iter().zip(widths).collect())
    }
}

/// The values of a column of sides.
fn sides<C: SampleColumns>(
    columns: &C,
    option: &'static str,
    column: &str,
) -> Result<Vec<u32>, C::Error> {
    let wanted = "whole numbers from 1";
    match column_type(columns, option, column)? {
        ColumnType::Whole => {}
        found @ (ColumnType::Number
        | ColumnType::Text
        | ColumnType::Flag
        | ColumnType::Other(_)) => {
            let (column, found) = (column.to_owned(), found.words().to_owned());
            return Err(SamplerError::ColumnType { option, column, found, wanted }.into());
        }
    }
    let side = |(sample, value): (u64, Option<i64>)| {
        let column = || column.to_owned();
        let value =
            value.ok_or_else(|| SamplerError::NoValue { option, column: column(), sample })?;
        let side = u32::try_from(value).ok().filter(|side| *side > 0);
        side.ok_or_else(|| SamplerError::Side { option, column: column(), sample, value })
    };
    let values = (0..).zip(columns.whole_numbers(column)?).map(side);
    Ok(values.collect::<Result<_, SamplerError>>()?)
}

impl Data for AspectRatio {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "aspect_ratio",
        summary: "every sample once, in batches of pictures with similar aspect ratios",
        options: &[
            OptionSpec {
                name: "factor",
                takes: OptionType::Whole { least: 0, most: FACTOR_MAX },
                default: Some("3"),
                summary: "number of bucket edges between the aspect ratios 1 and 2",
            },
            OptionSpec {
                name: "width",
                takes: OptionType::Column,
                default: Some("from the files"),
                summary: "column with the widths of the pictures",
            },
            OptionSpec {
                name: "height",
                takes: OptionType::Column,
                default: Some("from the files"),
                summary: "column with the heights of the pictures",
            },
            OptionSpec {
                name: "shuffle",
                takes: OptionType::Flag,
                default: Some("true"),
                summary: "whether each epoch has a different order",
            },
        ],
    };

    fn read(values: &Values) -> Result<Self, SamplerError> {
        let sampler = Self::DECLARATION.name;
        let columns = match (values.text("width"), values.text("height")) {
            (Some(width), Some(height)) => Some((width, height)),
            (None, None) => None,
            (Some(_), None) => return Err(SamplerError::Missing { sampler, option: "height" }),
            (None, Some(_)) => return Err(SamplerError::Missing { sampler, option: "width" }),
        };
        let factor = values.whole("factor").unwrap_or(FACTOR);
        Ok(Self { factor, columns, shuffle: values.flag("shuffle").unwrap_or(true) })
    }

    fn options(&self) -> Vec<(&'static str, Value)> {
        let mut options = vec![("factor", Value::Whole(self.factor))];
        if let Some((width, height)) = &self.columns {
            options.push(("width", Value::Text(width.clone())));
            options.push(("height", Value::Text(height.clone())));
        }
        options.push(("shuffle", Value::Flag(self.shuffle)));
        options
    }

    fn is_same_in_every_epoch(&self) -> bool {
        !self.shuffle
    }

    fn rule<C: SampleColumns>(&self, columns: &C) -> Result<Rule, C::Error> {
        let edges = Self::edges(self.factor);
        let sizes = self.sizes(columns)?;
        let mut buckets = vec![Vec::new(); edges.len() + 1];
        for (sample, size) in (0..).zip(sizes) {
            buckets[Self::bucket(&edges, size)].push(sample);
        }
        Ok(Rule::Bucketed { buckets: Buckets::new(&buckets), shuffle: self.shuffle })
    }

    fn memory_bytes(&self, samples: u64) -> u64 {
        // Column values, or sizes from files; both sides; buckets while they grow, as a list, and
        // as the devices' shares.
        samples.saturating_mul(16 + 8 + 16 + 8 + 8)
    }
}
