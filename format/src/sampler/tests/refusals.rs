//! Invalid options, and options that do not match the dataset.

use super::super::{
    ClassBalanced, DECLARATIONS, Expression, Filter, Indices, LengthLimit, Repeated, Sampler,
    SamplerError, Sampling, Value, Weighted, Weights,
};
use super::columns::Made;
use meetpoint_diagnose::Surface;

/// The remedy on the command line.
fn remedy(error: &SamplerError) -> String {
    error.instruction().spelled(Surface::CommandLine)
}

fn read(name: &str, options: &[(&str, Value)]) -> Result<Sampler, SamplerError> {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Sampler::read(name, options.collect())
}

fn refusal(sampler: impl Into<Sampler>, made: &Made) -> SamplerError {
    Sampling::of(&sampler.into(), made).unwrap_err()
}

fn weighted(weights: &[f64], replacement: bool, length: Option<u64>) -> Weighted {
    Weighted { weights: Weights::Numbers(weights.into()), replacement, length }
}

#[test]
fn samplers_are_read_by_name_and_options_and_written_so() {
    let options = [("indices", Value::Wholes([3, 1].into())), ("shuffle", Value::Flag(true))];
    let sampler = read("indices", &options).unwrap();
    assert_eq!(sampler, Indices { indices: [3, 1].into(), shuffle: true }.into());
    assert_eq!(sampler.to_string(), "indices(indices=[2 sample numbers], shuffle=true)");
    assert_eq!(read("repeated", &[]).unwrap().to_string(), "repeated(repeats=3)");
    assert_eq!(read("shuffled", &[]).unwrap().to_string(), "shuffled");
    for declaration in DECLARATIONS {
        assert!(!declaration.summary.is_empty());
        let mut names: Vec<&str> = declaration.options.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), declaration.options.len(), "{}", declaration.name);
    }
}

#[test]
fn names_and_values_that_are_wrong_are_refused() {
    let error = read("wieghted", &[]).unwrap_err();
    assert_eq!(error, SamplerError::UnknownName { name: "wieghted".to_owned() });
    assert!(remedy(&error).starts_with("did you mean \"weighted\"?"), "{error}");
    let error = read("weighted", &[("weight", Value::Text("w".to_owned()))]).unwrap_err();
    assert!(matches!(error, SamplerError::UnknownOption { .. }));
    assert!(remedy(&error).contains("\"weights\""), "{error}");
    let missing = SamplerError::Missing { sampler: "filter", option: "where" };
    assert_eq!(read("filter", &[]), Err(missing));
    let repeats = read("repeated", &[("repeats", Value::Whole(0))]).unwrap_err();
    assert!(matches!(repeats, SamplerError::Value { option: "repeats", .. }), "{repeats}");
    assert!(remedy(&repeats).contains("from 1 to 65536"), "{repeats}");
    let empty = read("indices", &[("indices", Value::Wholes([].into()))]);
    assert_eq!(empty, Err(SamplerError::NoIndices));
}

#[test]
fn invalid_weights_are_refused() {
    let made = Made::of(3);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let error = refusal(weighted(&[0.0, wrong, 1.0], true, None), &made);
        assert!(matches!(error, SamplerError::Weight { sample: 1, .. }), "{error}");
    }
    assert_eq!(refusal(weighted(&[0.0; 3], true, None), &made), SamplerError::NoWeight);
    let error = refusal(weighted(&[1.0; 4], true, None), &made);
    assert_eq!(error, SamplerError::WeightsLength { weights: 4, samples: 3 });
    let error = refusal(weighted(&[1.0, 0.0, 2.0], false, Some(3)), &made);
    let limit = LengthLimit::PositiveWeights;
    assert_eq!(error, SamplerError::Length { length: 3, most: 2, limit });
    let column = |column: &str| Weighted {
        weights: Weights::Column(column.to_owned()),
        replacement: true,
        length: None,
    };
    let error = refusal(column("wieght"), &made);
    assert!(matches!(error, SamplerError::UnknownColumn { option: "weights", .. }));
    assert!(remedy(&error).starts_with("did you mean \"weight\"?"), "{error}");
    let error = refusal(column("name"), &made);
    assert!(matches!(error, SamplerError::ColumnType { option: "weights", .. }), "{error}");
}

#[test]
fn what_does_not_fit_the_dataset_is_refused() {
    let made = Made::of(5);
    let indices = Indices { indices: [0, 4, 5].into(), shuffle: false };
    assert_eq!(refusal(indices, &made), SamplerError::Index { position: 2, index: 5, samples: 5 });
    let error = refusal(Repeated { repeats: 2, length: Some(11) }, &made);
    let limit = LengthLimit::Repeats;
    assert_eq!(error, SamplerError::Length { length: 11, most: 10, limit });
    let balanced = |column: &str| ClassBalanced { column: column.to_owned(), length: None };
    let error = refusal(balanced("name"), &made);
    assert!(matches!(error, SamplerError::ColumnType { option: "column", .. }), "{error}");
    let (labels, selected, datasets) = (vec![Some(1), None], Vec::new(), vec![2]);
    let unlabelled = Made { labels, selected, datasets };
    let error = refusal(balanced("label"), &unlabelled);
    assert!(matches!(error, SamplerError::NoValue { sample: 1, .. }), "{error}");
    let expression = Expression::parse("label == 1").unwrap();
    let filter = Filter { expression, shuffle: true };
    assert!(matches!(
        refusal(filter, &unlabelled),
        SamplerError::NothingSelected { samples: 2, .. }
    ));
}
