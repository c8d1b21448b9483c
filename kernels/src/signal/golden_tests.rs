//! Signals against NumPy; `series.py` wrote the files.

use crate::{Cpu, SampleId, SamplePreparer, Tensor};
use meetpoint_format::npy::{self, Element};
use meetpoint_format::recipe::Recipe;

fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/series");
    std::fs::read(format!("{folder}/{name}.npy")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn doubles(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn floats(tensor: &Tensor) -> Vec<f32> {
    tensor.data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn prepare(name: &str, rest: &str) -> Tensor {
    let text = format!("[[operation]]\nname = \"decode_signal\"\nnum_channels = 2\n{rest}");
    let recipe = Recipe::from_toml(&text).unwrap();
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    preparer.prepare_tensor((&file(name)[..]).into(), id).unwrap()
}

#[test]
fn measurements_of_every_type_become_the_nearest_float32() {
    let stored = file("signal_float64");
    let array = npy::read(&stored).unwrap();
    assert_eq!((array.element, &array.shape[..]), (Element::Float64, &[2, 1300][..]));
    let expected: Vec<f32> = doubles(&stored[array.data]).iter().map(|it| *it as f32).collect();
    let tensor = prepare("signal_float64", "");
    assert_eq!(tensor.spec.axes(), [2, 1300]);
    assert_eq!(floats(&tensor), expected);
    let stored = file("signal_int16");
    let array = npy::read(&stored).unwrap();
    let words = stored[array.data].as_chunks::<2>().0.iter();
    let expected: Vec<f32> = words.map(|it| f32::from(i16::from_le_bytes(*it))).collect();
    assert_eq!(floats(&prepare("signal_int16", "")), expected);
}

#[test]
fn features_equal_those_of_numpy() {
    for name in ["signal_float64", "signal_float32", "signal_int16"] {
        let rest = "[[operation]]\nname = \"power_features\"\nperiod = 128\n";
        let tensor = prepare(name, rest);
        assert_eq!(tensor.spec.axes(), [4, 10]);
        let stored = file(&format!("{name}.features"));
        let array = npy::read(&stored).unwrap();
        assert_eq!(array.shape, [4, 10]);
        let expected = doubles(&stored[array.data]);
        let largest = |row: usize| {
            expected[10 * row..][..10].iter().fold(0.0_f64, |most, it| most.max(it.abs()))
        };
        for (at, (got, expected)) in floats(&tensor).iter().zip(&expected).enumerate() {
            // Measurements of float64 are rounded to float32 first.
            let most = 2e-6 * largest(at / 10);
            assert!((f64::from(*got) - expected).abs() <= most, "{name} {at}: {got} {expected}");
        }
    }
}
