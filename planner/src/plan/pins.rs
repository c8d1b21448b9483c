//! Values of a plan that the user fixed: `workers=2`.

use super::PlanError;
use crate::vocabulary::{Codec, GpuIndex};
use meetpoint_format::units::parse_bytes;
use meetpoint_scheduler::StrategyName;
use std::str::FromStr;

/// The GPU of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuPin {
    /// The CPU alone.
    None,
    /// This GPU, for a share of each batch of the host.
    Gpu(#[serde(serialize_with = "gpu_name")] GpuIndex),
}

fn gpu_name<S: serde::Serializer>(gpu: &GpuIndex, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(gpu)
}

/// The values that can be fixed; `None`: the planner chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pins {
    /// The stored form, by the name of its point.
    pub stored: Option<String>,
    /// Compression of each stored sample.
    pub codec: Option<Codec>,
    /// Bytes of the application cache; 0: none.
    pub cache: Option<u64>,
    /// Background threads.
    pub workers: Option<u32>,
    /// Batches prepared ahead per worker.
    pub prefetch: Option<u32>,
    /// The strategy.
    #[serde(serialize_with = "name")]
    pub strategy: Option<StrategyName>,
    /// The GPU.
    pub gpu: Option<GpuPin>,
}

fn name<S: serde::Serializer>(name: &Option<StrategyName>, to: S) -> Result<S::Ok, S::Error> {
    serde::Serialize::serialize(&name.map(StrategyName::as_str), to)
}

impl Pins {
    /// The keys that can be fixed.
    pub const KEYS: &'static [&'static str] =
        &["stored", "codec", "cache", "workers", "prefetch", "strategy", "gpu"];

    /// Fixes a value: `KEY=VALUE`.
    pub fn set(&mut self, text: &str) -> Result<(), PlanError> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(PlanError::PinSyntax { text: text.to_owned() });
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong = |expected: String| PlanError::PinValue {
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        let number = |range: std::ops::RangeInclusive<u32>| {
            let parsed = value.parse().ok().filter(|number| range.contains(number));
            let (least, most) = (range.start(), range.end());
            parsed.ok_or_else(|| wrong(format!("a whole number from {least} to {most}")))
        };
        if self.is_fixed(key) {
            return Err(PlanError::RepeatedPin { key: key.to_owned() });
        }
        match key {
            "stored" if value.is_empty() => return Err(wrong("the name of a form".to_owned())),
            "stored" => self.stored = Some(value.to_owned()),
            "codec" => {
                let found = Codec::ALL.iter().find(|codec| codec.name() == value);
                let names: Vec<&str> = Codec::ALL.iter().map(|codec| codec.name()).collect();
                let found = found.ok_or_else(|| wrong(format!("one of {}", names.join(", "))))?;
                self.codec = Some(*found);
            }
            "cache" if value == "0" => self.cache = Some(0),
            "cache" => {
                let bytes = parse_bytes(value);
                let expected = || wrong("0, or bytes with a unit, such as 2GiB".to_owned());
                self.cache = Some(bytes.ok_or_else(expected)?);
            }
            "workers" => self.workers = Some(number(0..=1024)?),
            "prefetch" => self.prefetch = Some(number(1..=1024)?),
            "strategy" => {
                let parsed = StrategyName::from_str(value);
                let names = StrategyName::TEXTS.join(", ");
                let parsed = parsed.map_err(|_| wrong(format!("one of {names}")))?;
                self.strategy = Some(parsed);
            }
            "gpu" if value == "none" => self.gpu = Some(GpuPin::None),
            "gpu" => {
                let expected = || wrong(format!("\"none\", {}", GpuIndex::EXPECTED));
                self.gpu = Some(GpuPin::Gpu(value.parse().map_err(|_| expected())?));
            }
            _ => return Err(PlanError::UnknownPin { key: key.to_owned(), known: Self::KEYS }),
        }
        Ok(())
    }

    /// Whether a value has been fixed.
    fn is_fixed(&self, key: &str) -> bool {
        let Self { stored, codec, cache, workers, prefetch, strategy, gpu } = self;
        match key {
            "stored" => stored.is_some(),
            "codec" => codec.is_some(),
            "cache" => cache.is_some(),
            "workers" => workers.is_some(),
            "prefetch" => prefetch.is_some(),
            "strategy" => strategy.is_some(),
            "gpu" => gpu.is_some(),
            _ => false,
        }
    }

    /// Refuses a fixed GPU that is not measured, before anything is. `measured`: the GPU with which
    /// forms are measured, or whose rows of a profile are used.
    ///
    /// # Errors
    ///
    /// [`PlanError::OtherGpuPinned`].
    pub fn check_gpu(&self, measured: Option<GpuIndex>) -> Result<(), PlanError> {
        match self.gpu {
            Some(GpuPin::Gpu(pinned)) if measured != Some(pinned) => {
                Err(PlanError::OtherGpuPinned { pinned, measured })
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_fixed_by_their_keys_and_wrong_ones_are_refused() {
        let mut pins = Pins::default();
        for text in ["workers=2", "codec = lz4", "cache=2GiB", "stored=2-resize", "prefetch=4"] {
            pins.set(text).unwrap();
        }
        pins.set("strategy=wrr").unwrap();
        pins.set("gpu=cuda:1").unwrap();
        let expected = Pins {
            stored: Some("2-resize".to_owned()),
            codec: Some(Codec::Lz4),
            cache: Some(2 << 30),
            workers: Some(2),
            prefetch: Some(4),
            strategy: Some(StrategyName::Wrr),
            gpu: Some(GpuPin::Gpu(GpuIndex(1))),
        };
        assert_eq!(pins, expected);
        for text in ["cache=0", "gpu=none", "workers=2"] {
            let key = text.split_once('=').unwrap().0.to_owned();
            assert_eq!(pins.set(text), Err(PlanError::RepeatedPin { key }));
        }
        assert_eq!(pins, expected);
        let fixed = |text: &str| {
            let mut pins = Pins::default();
            pins.set(text).map(|()| pins)
        };
        assert_eq!(fixed("cache=0").unwrap().cache, Some(0));
        assert_eq!(fixed("gpu=none").unwrap().gpu, Some(GpuPin::None));
        let refused = |text: &str| Pins::default().set(text).unwrap_err();
        assert!(matches!(refused("workers"), PlanError::PinSyntax { .. }));
        assert!(
            matches!(refused("worker=2"), PlanError::UnknownPin { key, .. } if key == "worker")
        );
        for text in [
            "workers=-1",
            "workers=2000",
            "prefetch=0",
            "codec=gzip",
            "cache=2",
            "strategy=x",
            "gpu=1",
        ] {
            assert!(matches!(refused(text), PlanError::PinValue { .. }), "{text}");
        }
    }

    #[test]
    fn a_fixed_gpu_that_is_not_measured_is_refused() {
        let check = |text: &str, measured| {
            let mut pins = Pins::default();
            pins.set(text).unwrap();
            pins.check_gpu(measured)
        };
        let refused = |measured| Err(PlanError::OtherGpuPinned { pinned: GpuIndex(0), measured });
        assert_eq!(check("gpu=cuda:0", None), refused(None));
        assert_eq!(check("gpu=cuda:0", Some(GpuIndex(1))), refused(Some(GpuIndex(1))));
        for (text, measured) in
            [("gpu=cuda:0", Some(GpuIndex(0))), ("gpu=none", None), ("workers=1", None)]
        {
            assert_eq!(check(text, measured), Ok(()), "{text}");
        }
    }
}
