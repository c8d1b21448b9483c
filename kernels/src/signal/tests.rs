//! Files that are not signals.

use crate::{Cpu, Error, SampleId, SamplePreparer, Tensor};
use meetpoint_format::npy;
use meetpoint_format::recipe::{Dtype, Recipe};

const ID: SampleId = SampleId { seed: 7, epoch: 3, sample: 41 };

fn prepare(file: &[u8], rest: &str) -> Result<Tensor, Error> {
    let text = format!("[[operation]]\nname = \"decode_signal\"\nnum_channels = 2\n{rest}");
    let recipe = Recipe::from_toml(&text).unwrap();
    SamplePreparer::new(&recipe, Cpu::detect()).prepare_tensor(file.into(), ID)
}

fn reason(file: &[u8]) -> String {
    match prepare(file, "") {
        Err(Error::DecodeSeries { format: "NumPy file", reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_of_another_shape_or_type_are_refused_by_what_they_hold() {
    let array = |shape: &[u32], dtype: Dtype| {
        let elements: u32 = shape.iter().product();
        npy::encode(shape, dtype, &vec![0; elements as usize * dtype.bytes()])
    };
    assert!(reason(b"not a NumPy file").contains(".npy"));
    let file = array(&[3, 5], Dtype::Float32);
    assert!(reason(&file).contains("[3, 5]"));
    assert!(reason(&array(&[10], Dtype::Float32)).contains("[10]"));
    assert!(reason(&array(&[1, 2, 5], Dtype::Float32)).contains("[1, 2, 5]"));
    assert!(reason(&array(&[2, 5], Dtype::Float16)).contains("<f2"));
    assert_eq!(prepare(&array(&[2, 0], Dtype::Float32), ""), Err(Error::EmptySeries));
    let file = array(&[2, 5], Dtype::Float32);
    for end in 0..file.len() {
        reason(&file[..end]);
    }
}

#[test]
fn a_signal_shorter_than_a_period_is_refused_and_a_rest_is_left_out() {
    let features = "[[operation]]\nname = \"power_features\"\nperiod = 4\n";
    let file = |length: u32| {
        let values: Vec<u8> = (0..2 * length).flat_map(|at| (at as f32).to_le_bytes()).collect();
        npy::encode(&[2, length], Dtype::Float32, &values)
    };
    let short = Error::ShortSeries { operation: "power_features", length: 3, needed: 4 };
    assert_eq!(prepare(&file(3), features), Err(short));
    let tensor = prepare(&file(7), features).unwrap();
    assert_eq!(tensor.spec.axes(), [4, 1]);
    let selected = "[[operation]]\nname = \"select_channels\"\nchannels = [2, 0]\n";
    let selected = prepare(&file(7), &format!("{features}{selected}")).unwrap();
    assert_eq!(selected.spec.axes(), [2, 1]);
    assert_eq!(selected.data, [&tensor.data[8..12], &tensor.data[..4]].concat());
}
