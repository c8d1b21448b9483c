//! The remedy of an error: one step, or several alternatives.

use crate::{Command, Setting, Surface};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Alternative steps, best first; at least one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Remedy {
    steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Step {
    /// Change a setting.
    Set {
        /// The setting.
        setting: Setting,
        /// The change.
        #[serde(flatten)]
        change: Change,
        /// The effect of the change, such as `replace it`; `None` if its name is sufficient.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        purpose: Option<Cow<'static, str>>,
    },
    /// Run a command, or call the function that does the same.
    Run(Command),
    /// An instruction for which there is no setting and no command.
    Advice {
        /// The instruction, such as `restore the file from its source`.
        text: Cow<'static, str>,
    },
}

/// How a setting is changed. Values are written as a user types them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", content = "value", rename_all = "snake_case")]
pub enum Change {
    /// To this value.
    To(String),
    /// To this value or a higher one.
    AtLeast(String),
    /// To this value or a lower one.
    AtMost(String),
    /// To a higher value.
    Raise,
    /// To a lower value.
    Lower,
    /// Switch it on; for boolean settings.
    On,
    /// Switch it off; for boolean settings.
    Off,
    /// To a value that the user chooses.
    Other,
}

impl Remedy {
    /// An instruction for which there is no setting and no command.
    pub fn advice(text: impl Into<Cow<'static, str>>) -> Self {
        Self { steps: vec![Step::Advice { text: text.into() }] }
    }

    /// A change of a setting.
    pub fn set(setting: Setting, change: Change) -> Self {
        Self { steps: vec![Step::Set { setting, change, purpose: None }] }
    }

    /// A change of a setting with its purpose: `replace it with --force`.
    pub fn by(purpose: impl Into<Cow<'static, str>>, setting: Setting, change: Change) -> Self {
        Self { steps: vec![Step::Set { setting, change, purpose: Some(purpose.into()) }] }
    }

    /// A command.
    pub fn run(command: Command) -> Self {
        Self { steps: vec![Step::Run(command)] }
    }

    /// Adds an instruction as an alternative.
    #[must_use]
    pub fn or(self, text: impl Into<Cow<'static, str>>) -> Self {
        self.or_step(Step::Advice { text: text.into() })
    }

    /// Adds the change of a setting as an alternative.
    #[must_use]
    pub fn or_set(self, setting: Setting, change: Change) -> Self {
        self.or_step(Step::Set { setting, change, purpose: None })
    }

    /// Adds the change of a setting with its purpose as an alternative.
    #[must_use]
    pub fn or_by(
        self,
        purpose: impl Into<Cow<'static, str>>,
        setting: Setting,
        change: Change,
    ) -> Self {
        self.or_step(Step::Set { setting, change, purpose: Some(purpose.into()) })
    }

    /// Adds a command as an alternative.
    #[must_use]
    pub fn or_run(self, command: Command) -> Self {
        self.or_step(Step::Run(command))
    }

    /// Adds the steps of another remedy as alternatives.
    #[must_use]
    pub fn or_all(mut self, other: Self) -> Self {
        self.steps.extend(other.steps);
        self
    }

    fn or_step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The steps, best first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The instruction in the terms of a surface, without a full stop.
    pub fn spelled(&self, surface: Surface) -> String {
        let spelled: Vec<String> = self.steps.iter().map(|step| step.spelled(surface)).collect();
        match &spelled[..] {
            [] => String::new(),
            [only] => only.clone(),
            [first, last] => format!("{first}, or {last}"),
            [most @ .., last] => format!("{}, or {last}", most.join(", ")),
        }
    }
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        Self::advice(text)
    }
}

impl From<&'static str> for Remedy {
    fn from(text: &'static str) -> Self {
        Self::advice(text)
    }
}

impl Step {
    fn spelled(&self, surface: Surface) -> String {
        match self {
            Self::Advice { text } => text.clone().into_owned(),
            Self::Run(command) => command.spelled(surface),
            Self::Set { setting, change: Change::Off, purpose: Some(purpose) } => {
                match setting.switched_off(surface) {
                    Some(off) => format!("{purpose} with {off}"),
                    None => format!("{purpose} without {}", setting.spelled(surface)),
                }
            }
            Self::Set { setting, change, purpose: Some(purpose) } => {
                let change = match change {
                    Change::To(value) => setting.set_to(value, surface),
                    Change::On | Change::Other => setting.spelled(surface),
                    Change::AtLeast(_)
                    | Change::AtMost(_)
                    | Change::Raise
                    | Change::Lower
                    | Change::Off => setting.name(surface).to_owned(),
                };
                format!("{purpose} with {change}")
            }
            Self::Set { setting, change, purpose: None } => {
                let name = setting.name(surface);
                let is_option = setting.is_option(surface);
                let word = |on| match (surface, on) {
                    (Surface::CommandLine, true) => " = true",
                    (Surface::CommandLine, false) => " = false",
                    (Surface::Python, true) => "=True",
                    (Surface::Python, false) => "=False",
                };
                match change {
                    Change::To(value) if is_option => format!("give {name} {value}"),
                    Change::To(value) => format!("set {name} to {value}"),
                    Change::AtLeast(value) => format!("set {name} to {value} or more"),
                    Change::AtMost(value) => format!("set {name} to {value} or less"),
                    Change::Raise => format!("raise {name}"),
                    Change::Lower => format!("lower {name}"),
                    Change::On if is_option => format!("give {name}"),
                    Change::Off if is_option || !setting.is_flag() => format!("leave {name} out"),
                    Change::Other => format!("change {name}"),
                    Change::On => format!("set {name}{}", word(true)),
                    Change::Off => format!("set {name}{}", word(false)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(remedy: &Remedy) -> [String; 2] {
        [Surface::CommandLine, Surface::Python].map(|surface| remedy.spelled(surface))
    }

    #[test]
    fn a_setting_is_an_option_a_key_or_an_argument() {
        let shared = Remedy::set(Setting::AllowShared, Change::On);
        assert_eq!(both(&shared), ["give --allow-shared", "set allow_shared=True"]);
        let quota = Remedy::set(Setting::SpoolQuota, Change::AtLeast("1 GiB".into()));
        let [key, argument] = both(&quota);
        assert_eq!(key, "set spool.quota to 1 GiB or more");
        assert_eq!(argument, "set spool_quota to 1 GiB or more");
    }

    #[test]
    fn a_command_is_a_function_in_python_where_there_is_one() {
        let [shell, python] = both(&Remedy::run(Command::Verify));
        assert_eq!(shell, "find the damage with `meetpoint verify`");
        assert_eq!(python, "find the damage with `meetpoint.verify()`");
        let probe = Command::ProbeDevice { socket: "/run/d.sock".into() };
        let [_, python] = both(&Remedy::run(probe));
        assert!(python.ends_with("`python -m meetpoint device probe --socket /run/d.sock`"));
    }

    #[test]
    fn a_purpose_is_followed_by_the_setting_that_serves_it() {
        let with = |setting, change| both(&Remedy::by("choose one", setting, change));
        let force = with(Setting::Force, Change::On);
        assert_eq!(force, ["choose one with --force", "choose one with force=True"]);
        let kind = with(Setting::From, Change::Other);
        assert_eq!(kind, ["choose one with --from", "choose one with from_="]);
        let anew = with(Setting::Resume, Change::Off);
        assert_eq!(anew, ["choose one without --resume", "choose one without resume=True"]);
        let gpu = with(Setting::GpuDecode, Change::Off);
        assert_eq!(gpu, ["choose one with --no-gpu-decode", "choose one with gpu_decode=False"]);
        let skip = with(Setting::OnError, Change::To("skip".into()));
        assert_eq!(skip, ["choose one with --on-error skip", "choose one with on_error=\"skip\""]);
    }

    #[test]
    fn alternatives_are_joined_in_order() {
        let remedy = Remedy::advice("wait").or("retry").or_set(Setting::RunAhead, Change::Off);
        assert_eq!(both(&remedy)[0], "wait, retry, or set run_ahead = false");
        assert_eq!(remedy.steps().len(), 3);
    }

    #[test]
    fn a_remedy_survives_json() {
        let remedy = Remedy::set(Setting::MaxErrors, Change::To("7".into()))
            .or_set(Setting::BatchSize, Change::Lower)
            .or_run(Command::ServeDevice { socket: None })
            .or("restore the file")
            .or_by("replace it", Setting::Force, Change::On);
        let json = serde_json::to_value(&remedy).unwrap();
        assert_eq!(json[0]["action"], "set");
        assert_eq!(json[0]["setting"], "max_errors");
        assert_eq!([&json[0]["change"], &json[0]["value"]], ["to", "7"]);
        assert_eq!(json[2]["command"], "serve_device");
        assert_eq!([&json[4]["setting"], &json[4]["purpose"]], ["force", "replace it"]);
        assert_eq!(serde_json::from_value::<Remedy>(json).unwrap(), remedy);
    }
}
