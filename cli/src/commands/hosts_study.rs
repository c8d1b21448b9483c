//! Options of `simulate --study hosts`, which are refused with any other study.

use crate::surface::fault::Fault;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use meetpoint_lab::simulate::hosts::{
    AGENTS_EACH_MAX, AgentsPerHost, BATCHES_MIN, Elements, HOSTS_MAX, Selection,
};

/// Largest denominator of a number of agents for each host.
const AGENTS_PER_MAX: u32 = 64;

/// Fastest link, in Mbit/s.
const LINK_MBIT_MAX: f64 = 1e6;

/// Arguments that exclude these options. `requires` is not enough, because clap does not require an
/// argument that conflicts with a given one, so the options would be ignored silently.
const OTHERS: [&str; 4] = ["scenario", "t_c", "table", "trace"];

/// Options of the study of many hosts.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of the study `hosts`")]
pub(super) struct HostsArguments {
    /// Numbers of hosts, separated by commas, instead of 1, 8, 64, 250 and 1,000.
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "study",
          conflicts_with_all = OTHERS,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTS_MAX)))]
    hosts: Vec<u32>,
    /// Numbers of agents for each host, separated by commas, instead of 0, 1/4, 1/2, 3/4, 1, 5/4
    /// and 3/2. With 3/2, two hosts have three agents, and each host uses three.
    #[arg(long, value_name = "N[/M]", value_delimiter = ',', requires = "study",
          conflicts_with_all = OTHERS,
          value_parser = parse_agents)]
    agents: Vec<AgentsPerHost>,
    /// Links of hosts and agents in Gbit/s, separated by commas, instead of 10, 25 and 100.
    #[arg(long, value_name = "GBIT", value_delimiter = ',', requires = "study",
          conflicts_with_all = OTHERS,
          value_parser = parse_link_mbit)]
    links: Vec<u32>,
    /// Element types of prepared batches, separated by commas, instead of both.
    #[arg(long, value_name = "TYPE", value_delimiter = ',', requires = "study",
          conflicts_with_all = OTHERS,
          value_parser = elements_parser())]
    elements: Vec<Elements>,
    /// Simulate each row with this number of seeds, and print the median and the largest ratio to
    /// the time of the host alone. Default: 1.
    #[arg(long, value_name = "N", requires = "study",
          conflicts_with_all = OTHERS,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    seeds: Option<u32>,
}

fn elements_parser() -> impl TypedValueParser<Value = Elements> {
    let values = Elements::ALL.map(|elements| PossibleValue::new(elements.name()));
    PossibleValuesParser::new(values).map(|name| {
        let named = Elements::ALL.into_iter().find(|elements| elements.name() == name);
        named.expect("only names of element types are taken")
    })
}

/// Parses `3/2` or `1`.
fn parse_agents(text: &str) -> Result<AgentsPerHost, String> {
    let (of, per) = text.split_once('/').unwrap_or((text, "1"));
    match (of.trim().parse(), per.trim().parse()) {
        (Ok(of @ 0..=AGENTS_EACH_MAX), Ok(per @ 1..=AGENTS_PER_MAX)) => {
            Ok(AgentsPerHost { of, per })
        }
        _ => Err(format!(
            "\"{text}\" is not a number of agents for each host; write for example 1 or 3/2, at \
             most {AGENTS_EACH_MAX} above and {AGENTS_PER_MAX} below the line"
        )),
    }
}

/// Parses Gbit/s to Mbit/s.
fn parse_link_mbit(text: &str) -> Result<u32, String> {
    let mbit = text.trim().parse::<f64>().map_or(f64::NAN, |gbit| (gbit * 1e6).round() / 1e3);
    if (1.0..=LINK_MBIT_MAX).contains(&mbit) && mbit.fract() == 0.0 {
        return Ok(mbit as u32);
    }
    Err(format!(
        "\"{text}\" is not a link in Gbit/s; write for example 10 or 0.1, from 0.001 to 1000 in \
         steps of 0.001"
    ))
}

impl HostsArguments {
    /// The first option that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--hosts", !self.hosts.is_empty()),
            ("--agents", !self.agents.is_empty()),
            ("--links", !self.links.is_empty()),
            ("--elements", !self.elements.is_empty()),
            ("--seeds", self.seeds.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// The configuration of the study, with this number of batches for each host.
    pub(super) fn selection(&self, batches: Option<u32>) -> Result<Selection, Fault> {
        let all = Selection::default();
        if let Some(batches) = batches
            && batches < BATCHES_MIN
        {
            let message = format!("--batches {batches}: the middle half is too short to measure");
            return Err(Fault::usage(message, format!("give at least {BATCHES_MIN}")));
        }
        Ok(Selection {
            elements: given_or(&self.elements, all.elements),
            links_mbit: given_or(&self.links, all.links_mbit),
            hosts: given_or(&self.hosts, all.hosts),
            agents: given_or(&self.agents, all.agents),
            batches: batches.unwrap_or(all.batches),
            seeds: self.seeds.unwrap_or(all.seeds),
        })
    }
}

fn given_or<T: Clone>(given: &[T], all: Vec<T>) -> Vec<T> {
    if given.is_empty() { all } else { given.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::{AgentsPerHost, parse_agents, parse_link_mbit};

    #[test]
    fn agents_are_a_whole_number_or_a_fraction() {
        assert_eq!(parse_agents("3/2"), Ok(AgentsPerHost { of: 3, per: 2 }));
        assert_eq!(parse_agents("0"), Ok(AgentsPerHost { of: 0, per: 1 }));
        for wrong in ["", "/", "1.5", "1/0", "-1", "13", "1/65", "3/2/1"] {
            assert!(parse_agents(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn links_are_whole_megabits() {
        assert_eq!(parse_link_mbit("0.1"), Ok(100));
        assert_eq!(parse_link_mbit("25"), Ok(25_000));
        for wrong in ["", "0", "-1", "0.0001", "2.0005", "1001", "inf", "nan", "10G"] {
            assert!(parse_link_mbit(wrong).is_err(), "{wrong}");
        }
    }
}
