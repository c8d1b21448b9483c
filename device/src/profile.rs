//! Declared speeds of real devices, each figure with its source.
//!
//! A profile describes a device that need not exist on this machine. How this machine emulates it
//! is derived from a measurement of its own cores, and is never part of the profile.

use meetpoint_diagnose::{Command, Diagnose, Remedy};
use meetpoint_format::units::{parse_bandwidth, parse_bytes, parse_duration};
use meetpoint_link::{Emulation, LATENCY_NS_MAX, Targets};
use serde::{Deserialize, Serialize};

/// Longest file of a profile in bytes.
pub const PROFILE_BYTES_MAX: u64 = 64 << 10;

/// The built-in profiles: name and text.
pub const PROFILES: [(&str, &str); 3] = [
    ("a53", include_str!("../profiles/a53.toml")),
    ("a78", include_str!("../profiles/a78.toml")),
    ("fpga", include_str!("../profiles/fpga.toml")),
];

/// The basis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// It is in a public source.
    Published,
    /// It was measured with this program on such a device.
    Measured,
    /// It is a plausible value without a source; results with it are about a hypothetical device.
    Assumed,
}

impl Basis {
    /// Its name in a profile.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Measured => "measured",
            Self::Assumed => "assumed",
        }
    }
}

/// A figure and how it is known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure<T> {
    /// The figure.
    pub value: T,
    /// How it is known.
    pub basis: Basis,
    /// A URL with the place in it, the measurement, or the reason for the assumption.
    pub source: String,
}

/// A device, as declared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceProfile {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Pixels that its preparing core decodes from baseline JPEG files per second.
    pub pixels_per_second: Figure<f64>,
    /// Bandwidth of its storage in bytes per second.
    pub read_bytes_per_second: Option<Figure<u64>>,
    /// Bandwidth from the device to the host in bytes per second.
    pub write_bytes_per_second: Option<Figure<u64>>,
    /// Latency of a storage command in nanoseconds.
    pub latency_ns: Option<Figure<u64>>,
    /// Memory of its worker in bytes.
    pub memory_bytes: Option<Figure<u64>>,
}

/// A profile that cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this name.
    #[error("{name:?} is neither a profile nor a file")]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The text is not a profile.
    #[error("{name} is not a profile: {problem}")]
    Syntax {
        /// Name of the profile or its file.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A figure has another form.
    #[error("{name}: {key}.value is {value:?}")]
    Value {
        /// Name of the profile or its file.
        name: String,
        /// The table of the figure.
        key: &'static str,
        /// The given value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// A figure without a source.
    #[error("{name}: {key}.source is empty")]
    NoSource {
        /// Name of the profile or its file.
        name: String,
        /// The table of the figure.
        key: &'static str,
    },
    /// A device that is faster than this machine.
    #[error(
        "{name} decodes {:.1} megapixels per second, and a core of this machine only {:.1}",
        declared / 1e6, own / 1e6
    )]
    TooFast {
        /// Name of the profile.
        name: String,
        /// Pixels per second of the device.
        declared: f64,
        /// Pixels per second of this machine.
        own: f64,
    },
    /// A device that is too slow to be emulated.
    #[error("{name} is {times:.0} times as slow as a core of this machine")]
    TooSlow {
        /// Name of the profile.
        name: String,
        /// How many times as slow.
        times: f64,
    },
}

impl Diagnose for ProfileError {
    fn cause(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_profile",
            Self::Syntax { .. } | Self::Value { .. } | Self::NoSource { .. } => "profile",
            Self::TooFast { .. } => "profile_too_fast",
            Self::TooSlow { .. } => "profile_too_slow",
        }
    }

    fn remedy(&self) -> Option<Remedy> {
        let names: Vec<&str> = PROFILES.iter().map(|(name, _)| *name).collect();
        Some(match self {
            Self::Unknown { .. } => {
                Remedy::from(format!("name one of {}, or a TOML file", names.join(", ")))
            }
            Self::Syntax { .. } => "compare it with device/profiles/a53.toml".into(),
            Self::Value { expected, .. } => format!("write {expected}").into(),
            Self::NoSource { .. } => "say where the figure is from, or why it is assumed".into(),
            Self::TooFast { .. } => Remedy::advice("use a faster machine, and a release build")
                .or_run(Command::Simulate),
            Self::TooSlow { .. } => Remedy::run(Command::Simulate),
        })
    }
}

/// A profile as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    about: String,
    jpeg: WrittenFigure,
    read_bandwidth: Option<WrittenFigure>,
    write_bandwidth: Option<WrittenFigure>,
    latency: Option<WrittenFigure>,
    memory: Option<WrittenFigure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFigure {
    value: String,
    basis: Basis,
    source: String,
}

impl DeviceProfile {
    /// A built-in profile.
    pub fn shipped(name: &str) -> Option<Result<Self, ProfileError>> {
        let (name, text) = PROFILES.iter().find(|(known, _)| *known == name)?;
        Some(Self::read(name, text))
    }

    /// Reads a profile; `name` is used in messages.
    pub fn read(name: &str, text: &str) -> Result<Self, ProfileError> {
        let written: Written = toml::from_str(text).map_err(|error| ProfileError::Syntax {
            name: name.to_owned(),
            problem: error.message().to_owned(),
        })?;
        let figure = Reader { name };
        let bandwidth = |text: &str| parse_bandwidth(text).filter(|&rate| rate > 0);
        let rate = "a rate with its unit, such as 2GB/s";
        Ok(Self {
            name: name.to_owned(),
            about: written.about,
            pixels_per_second: figure.read(
                "jpeg",
                written.jpeg,
                "megapixels per second, such as 25MP/s",
                pixels,
            )?,
            read_bytes_per_second: figure.optional(
                "read_bandwidth",
                written.read_bandwidth,
                rate,
                bandwidth,
            )?,
            write_bytes_per_second: figure.optional(
                "write_bandwidth",
                written.write_bandwidth,
                rate,
                bandwidth,
            )?,
            latency_ns: figure.optional(
                "latency",
                written.latency,
                "a time of at most a second, such as 100us",
                |text| {
                    let time = u64::try_from(parse_duration(text)?.as_nanos()).ok()?;
                    (time <= LATENCY_NS_MAX).then_some(time)
                },
            )?,
            memory_bytes: figure.optional(
                "memory",
                written.memory,
                "a size with its unit, such as 512MiB",
                |text| parse_bytes(text).filter(|&bytes| bytes > 0),
            )?,
        })
    }

    /// The share of a core of this machine that decodes as fast, if such a core decodes
    /// `own_pixels_per_second`.
    pub fn cpu_ratio(&self, own_pixels_per_second: f64) -> Result<f64, ProfileError> {
        let declared = self.pixels_per_second.value;
        let ratio = declared / own_pixels_per_second;
        let name = self.name.clone();
        // Without a measurement, it is not a number.
        if ratio.is_nan() || ratio > 1.0 {
            return Err(ProfileError::TooFast { name, declared, own: own_pixels_per_second });
        }
        if ratio < meetpoint_link::CPU_RATIO_MIN {
            return Err(ProfileError::TooSlow { name, times: 1.0 / ratio });
        }
        Ok(ratio)
    }

    /// The settings of a device that emulates it on this machine.
    pub fn emulation(&self, own_pixels_per_second: f64) -> Result<Emulation, ProfileError> {
        let value = |figure: &Option<Figure<u64>>| figure.as_ref().map(|figure| figure.value);
        Ok(Emulation {
            targets: Targets {
                cpu_ratio: Some(self.cpu_ratio(own_pixels_per_second)?),
                read_bytes_per_second: value(&self.read_bytes_per_second),
                write_bytes_per_second: value(&self.write_bytes_per_second),
                latency_ns: value(&self.latency_ns),
                core: None,
            },
            allow_shared: false,
            memory_bytes_max: value(&self.memory_bytes),
        })
    }

    /// Every figure: its key, its value in words, its basis and its source.
    pub fn figures(&self) -> Vec<(&'static str, String, Basis, &str)> {
        use meetpoint_format::units::show_bytes;
        let jpeg = &self.pixels_per_second;
        let mut all = vec![(
            "jpeg",
            format!("{:.1} MP/s", jpeg.value / 1e6),
            jpeg.basis,
            jpeg.source.as_str(),
        )];
        let mut add = |key, figure: &'_ Option<Figure<u64>>, words: fn(u64) -> String| {
            if let Some(figure) = figure {
                all.push((key, words(figure.value), figure.basis, ""));
            }
        };
        let rate = |value| format!("{}/s", show_bytes(value));
        add("read_bandwidth", &self.read_bytes_per_second, rate);
        add("write_bandwidth", &self.write_bytes_per_second, rate);
        add("latency", &self.latency_ns, |ns| format!("{} us", ns / 1000));
        add("memory", &self.memory_bytes, show_bytes);
        let sources = [
            &self.read_bytes_per_second,
            &self.write_bytes_per_second,
            &self.latency_ns,
            &self.memory_bytes,
        ];
        let sources = sources.into_iter().flatten().map(|figure| figure.source.as_str());
        for (figure, source) in all.iter_mut().skip(1).zip(sources) {
            figure.3 = source;
        }
        all
    }
}

/// Reads the figures of one profile.
struct Reader<'n> {
    name: &'n str,
}

impl Reader<'_> {
    fn read<T>(
        &self,
        key: &'static str,
        written: WrittenFigure,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Figure<T>, ProfileError> {
        let WrittenFigure { value: text, basis, source } = written;
        let name = || self.name.to_owned();
        if source.trim().is_empty() {
            return Err(ProfileError::NoSource { name: name(), key });
        }
        match parse(&text) {
            Some(value) => Ok(Figure { value, basis, source }),
            None => Err(ProfileError::Value { name: name(), key, value: text, expected }),
        }
    }

    fn optional<T>(
        &self,
        key: &'static str,
        written: Option<WrittenFigure>,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<Figure<T>>, ProfileError> {
        written.map(|written| self.read(key, written, expected, parse)).transpose()
    }
}

/// `25MP/s`: pixels per second.
fn pixels(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix("MP/s")?.trim().parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number * 1e6)
}

#[cfg(test)]
mod tests {
    use super::{DeviceProfile, PROFILES, ProfileError};
    use meetpoint_diagnose::Diagnose;

    const JPEG: &str = "about = \"x\"\n[jpeg]\nvalue = \"25MP/s\"\nbasis = \"assumed\"\n";

    #[test]
    fn every_shipped_profile_reads_and_every_figure_has_a_source() {
        for (name, _) in PROFILES {
            let profile = DeviceProfile::shipped(name).unwrap().unwrap();
            assert!(profile.about.ends_with('.'), "{}", profile.about);
            for (key, _, _, source) in profile.figures() {
                assert!(source.len() > 20, "{name}.{key}: {source:?}");
            }
        }
        assert!(DeviceProfile::shipped("z80").is_none());
    }

    #[test]
    fn the_share_of_a_core_follows_from_both_rates() {
        let text = format!(
            "{JPEG}source = \"y\"\n[latency]\nvalue = \"90us\"\nbasis = \"published\"\n\
             source = \"z\"\n[memory]\nvalue = \"1GiB\"\nbasis = \"published\"\nsource = \"w\"\n"
        );
        let profile = DeviceProfile::read("x", &text).unwrap();
        let emulation = profile.emulation(100e6).unwrap();
        assert_eq!(emulation.targets.cpu_ratio, Some(0.25));
        assert_eq!(emulation.targets.latency_ns, Some(90_000));
        assert_eq!(emulation.memory_bytes_max, Some(1 << 30));
        let sources: Vec<&str> = profile.figures().iter().map(|figure| figure.3).collect();
        assert_eq!(sources, ["y", "z", "w"]);
        for (own, cause) in [
            (24e6, "profile_too_fast"),
            (f64::NAN, "profile_too_fast"),
            (25_001e6, "profile_too_slow"),
        ] {
            assert_eq!(profile.cpu_ratio(own).unwrap_err().cause(), cause, "{own}");
        }
        assert_eq!(profile.cpu_ratio(25e6), Ok(1.0));
    }

    #[test]
    fn figures_without_a_source_or_a_unit_are_refused() {
        let read = |rest: &str| DeviceProfile::read("x", &format!("{JPEG}{rest}")).unwrap_err();
        assert!(matches!(read("source = \" \""), ProfileError::NoSource { key: "jpeg", .. }));
        assert!(matches!(read(""), ProfileError::Syntax { .. }));
        let table = "source = \"y\"\n[latency]\nbasis = \"assumed\"\nsource = \"z\"\n";
        for value in ["90", "2s", "-1us"] {
            let error = read(&format!("{table}value = \"{value}\""));
            assert!(matches!(error, ProfileError::Value { key: "latency", .. }), "{error}");
        }
        let unknown = read("source = \"y\"\n[colour]\nvalue = \"red\"");
        assert!(matches!(unknown, ProfileError::Syntax { .. }), "{unknown}");
        for rate in ["25", "MP/s", "0MP/s", "infMP/s", "-3MP/s"] {
            assert_eq!(super::pixels(rate), None, "{rate}");
        }
    }
}
