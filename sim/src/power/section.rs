//! One section of a power file: numbers, their source, and optionally a bundled part that supplies
//! the rest (`like`).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::PowerError;

/// The schema of a section.
#[derive(Debug)]
pub(super) struct SectionKind {
    /// Its name in the file.
    pub section: &'static str,
    /// Keys of numbers, all of which are required.
    pub keys: &'static [&'static str],
    /// Keys of divisors, which must be above zero.
    pub positive: &'static [&'static str],
    /// Whether it has a currency for its prices.
    pub has_currency: bool,
}

/// A section as deserialized.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub(super) struct SectionInput {
    like: Option<String>,
    source: Option<String>,
    currency: Option<String>,
    #[serde(default)]
    unverified: Vec<String>,
    #[serde(default)]
    example: Vec<String>,
    #[serde(flatten)]
    values: BTreeMap<String, toml::Value>,
}

/// A section with every number resolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    values: BTreeMap<&'static str, f64>,
    pub source: String,
    pub currency: Option<String>,
    pub unverified: Vec<String>,
    pub example: Vec<String>,
}

/// Parts of one kind by name.
pub(super) type Parts = BTreeMap<String, SectionInput>;

impl SectionKind {
    /// Fills in missing values from the bundled part, and checks every value.
    pub(super) fn resolve(
        &self,
        written: &SectionInput,
        parts: Option<&Parts>,
        origin: &str,
    ) -> Result<Resolved, PowerError> {
        let own = self.check(written, origin)?;
        let Some(name) = &written.like else { return self.complete(own, written, origin) };
        let part = parts.and_then(|parts| parts.get(name)).ok_or_else(|| {
            let known = parts.map_or_else(Vec::new, |parts| parts.keys().cloned().collect());
            PowerError::NoSuchPart {
                origin: origin.to_owned(),
                section: self.section,
                name: name.clone(),
                known: known.join(", "),
            }
        })?;
        self.overlay(own, written, part, origin)
    }

    /// The numbers of a section, each checked by itself.
    fn check(
        &self,
        written: &SectionInput,
        origin: &str,
    ) -> Result<BTreeMap<&'static str, f64>, PowerError> {
        let mut values = BTreeMap::new();
        for (name, value) in &written.values {
            let Some(&key) = self.keys.iter().find(|key| *key == name) else {
                return Err(self.unknown_key(name, origin));
            };
            let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
            let (least, must_be) = if self.positive.contains(&key) {
                (f64::MIN_POSITIVE, "a number above 0")
            } else {
                (0.0, "a number, 0 or more")
            };
            let number = number.filter(|number| number.is_finite() && *number >= least);
            let number = number.ok_or_else(|| PowerError::Value {
                origin: origin.to_owned(),
                key: format!("{}.{key}", self.section),
                value: value.to_string(),
                must_be,
            })?;
            values.insert(key, number);
        }
        if written.currency.is_some() && !self.has_currency {
            return Err(self.unknown_key("currency", origin));
        }
        self.check_names(&written.unverified, "unverified", origin)?;
        self.check_names(&written.example, "example", origin)?;
        Ok(values)
    }

    fn unknown_key(&self, name: &str, origin: &str) -> PowerError {
        let currency = self.has_currency.then_some("currency");
        let general = ["source", "like", "unverified", "example"];
        let known: Vec<&str> = self.keys.iter().copied().chain(currency).chain(general).collect();
        PowerError::UnknownKey {
            origin: origin.to_owned(),
            key: format!("{}.{name}", self.section),
            known: known.join(", "),
        }
    }

    fn check_names(
        &self,
        names: &[String],
        list: &'static str,
        origin: &str,
    ) -> Result<(), PowerError> {
        match names.iter().find(|name| !self.keys.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(PowerError::UnknownName {
                origin: origin.to_owned(),
                section: self.section,
                list,
                name: name.clone(),
            }),
        }
    }

    /// Resolves a section without a bundled part, which must be complete.
    fn complete(
        &self,
        values: BTreeMap<&'static str, f64>,
        written: &SectionInput,
        origin: &str,
    ) -> Result<Resolved, PowerError> {
        let source = written.source.as_deref().unwrap_or_default().trim();
        if source.is_empty() {
            return Err(PowerError::NoSource { origin: origin.to_owned(), section: self.section });
        }
        let resolved = Resolved {
            values,
            source: source.to_owned(),
            currency: written.currency.clone(),
            unverified: written.unverified.clone(),
            example: written.example.clone(),
        };
        self.is_complete(resolved, origin)
    }

    /// Adds the part's numbers, which the section's own override.
    fn overlay(
        &self,
        own: BTreeMap<&'static str, f64>,
        written: &SectionInput,
        part: &SectionInput,
        origin: &str,
    ) -> Result<Resolved, PowerError> {
        let mut values = self.check(part, "bundled with the program")?;
        let below = part.source.as_deref().unwrap_or_default();
        // The number of modules is not a measurement, so it needs no source.
        let measured = own.keys().any(|key| *key != "modules");
        let source = match written.source.as_deref().map(str::trim) {
            None | Some("") if measured => {
                let section = self.section;
                return Err(PowerError::NoSource { origin: origin.to_owned(), section });
            }
            None | Some("") => below.to_owned(),
            Some(source) => format!("{source}; the rest: {below}"),
        };
        let merged = |below: &[String], above: &[String]| {
            let kept = below.iter().filter(|name| !own.contains_key(name.as_str()));
            kept.chain(above).cloned().collect()
        };
        let unverified = merged(&part.unverified, &written.unverified);
        let example = merged(&part.example, &written.example);
        values.extend(own);
        let currency = written.currency.clone().or_else(|| part.currency.clone());
        let resolved = Resolved { values, source, currency, unverified, example };
        self.is_complete(resolved, origin)
    }

    fn is_complete(&self, resolved: Resolved, origin: &str) -> Result<Resolved, PowerError> {
        let missing = |key: &str| PowerError::Missing {
            origin: origin.to_owned(),
            key: format!("{}.{key}", self.section),
        };
        if let Some(key) = self.keys.iter().find(|key| !resolved.values.contains_key(**key)) {
            return Err(missing(key));
        }
        if self.has_currency && resolved.currency.is_none() {
            return Err(missing("currency"));
        }
        if let (Some(idle), Some(active)) =
            (resolved.values.get("idle_w"), resolved.values.get("active_w"))
            && active < idle
        {
            let section = self.section;
            return Err(PowerError::ActiveBelowIdle { origin: origin.to_owned(), section });
        }
        Ok(resolved)
    }
}

impl Resolved {
    /// The number of a key, which the kind of this section has.
    pub(super) fn value(&self, key: &'static str) -> f64 {
        *self.values.get(key).expect("a resolved section has every key of its kind")
    }

    /// Every number with its key, in alphabetical order.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.values.iter().map(|(key, value)| (*key, *value))
    }
}
