//! A training over many hosts: how many agents it needs, and what limits it.

use crate::{Error, Progress};
use meetpoint_report::grid::{Grid, Style};
use meetpoint_report::units::seconds;
use meetpoint_sim::studies::hosts::{
    ACCELERATORS_LIMIT, BATCHES, HostsRow, LINKS, MACHINE, many_hosts,
};
use serde::Serialize;

pub use meetpoint_sim::studies::hosts::{HOSTS, HOSTS_MAX};

/// A simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Element type of the prepared batches.
    pub elements: &'static str,
    /// Links of hosts and agents.
    pub link_gbit_per_second: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together.
    pub agents: u32,
    /// Samples a second of each host.
    pub samples_per_second: f64,
    /// Share of the time in which accelerators wait.
    pub stalled: f64,
    /// Share of the time in which cores of agents prepare.
    pub agents_busy: f64,
    /// Share of the bandwidth of the hosts' links that is used.
    pub link_busy: f64,
    /// Seconds that the epoch takes longer than at this throughput, because of its start and end.
    pub ends_seconds: f64,
    /// What limits the throughput; `None`: nothing is in use for nine tenths of the time.
    pub limit: Option<&'static str>,
}

/// The fewest simulated agents with which the accelerators hardly wait.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Needed {
    /// Element type of the prepared batches.
    pub elements: &'static str,
    /// Links of hosts and agents.
    pub link_gbit_per_second: u32,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of agents, all together; `None`: no simulated number is enough.
    pub agents: Option<u32>,
    /// The highest throughput of any number, as a share of that of the accelerators.
    pub share_max: f64,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    kind: &'static str,
    rows: Vec<Row>,
    needed: Vec<Needed>,
}

/// Simulates every row for these numbers of hosts, each at most [`HOSTS_MAX`] and given once.
pub fn run(hosts: &[u32], progress: Progress<'_>) -> Result<Document, Error> {
    let is_repeated = |(at, number): &(usize, &u32)| hosts[..*at].contains(number);
    if let Some((_, &hosts)) = hosts.iter().enumerate().find(is_repeated) {
        return Err(Error::HostsTwice { hosts });
    }
    let rows = many_hosts(hosts, |done, total| progress(done as u64, total as u64))?;
    let needed = needed(hosts, &rows);
    let rows = rows.into_iter().map(|row| Row {
        elements: row.elements,
        link_gbit_per_second: row.link_gbit,
        hosts: row.hosts,
        agents: row.agents,
        samples_per_second: row.samples_per_second,
        stalled: row.stalled,
        agents_busy: row.agents_busy,
        link_busy: row.link_busy,
        ends_seconds: row.ends_seconds,
        limit: row.limit.map(|limit| limit.name()),
    });
    Ok(Document { kind: "hosts", rows: rows.collect(), needed })
}

fn needed(hosts_of: &[u32], rows: &[HostsRow]) -> Vec<Needed> {
    let mut found = Vec::new();
    for (elements, _) in BATCHES {
        for link in LINKS {
            for &hosts in hosts_of {
                let of = rows.iter().filter(|row| {
                    row.elements == elements && row.link_gbit == link && row.hosts == hosts
                });
                let enough = of.clone().filter(|row| 1.0 - row.stalled >= ACCELERATORS_LIMIT);
                found.push(Needed {
                    elements,
                    link_gbit_per_second: link,
                    hosts,
                    agents: enough.map(|row| row.agents).min(),
                    share_max: of.map(|row| 1.0 - row.stalled).fold(0.0, f64::max),
                });
            }
        }
    }
    found
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The tables for a terminal.
pub fn text(document: &Document, style: Style) -> String {
    let rate = f64::from(MACHINE.samples) * 1e9 / MACHINE.step_ns as f64;
    let host = f64::from(MACHINE.workers) / (MACHINE.core_ns as f64 / 1e9);
    let mut text = format!(
        "Simulated, nothing measured: hosts whose accelerators take {rate:.0} samples/s and whose \
         {} cores prepare {:.0}; agents with {} cores; σ of core times {}; `auto`.\n",
        MACHINE.workers,
        host * f64::from(MACHINE.samples),
        MACHINE.cores,
        MACHINE.sigma
    );
    for (elements, bytes) in BATCHES {
        for link in LINKS {
            text.push_str(&format!(
                "\n{elements} batches of {:.1} MB, links of {link} Gbit/s\n",
                bytes as f64 / 1e6
            ));
            text.push_str(&table(document, elements, link).text(style));
        }
    }
    text.push_str("\nFewest agents with which accelerators work for 95 % of the time\n");
    text.push_str(&fewest(document).text(style));
    text
}

fn table(document: &Document, elements: &str, link: u32) -> Grid {
    let head = [
        "hosts",
        "agents",
        "samples/s per host",
        "stalled",
        "agents busy",
        "link in use",
        "start and end",
        "limit",
    ];
    let mut grid = Grid::new(&head, 0..7);
    let is_asked = |row: &&Row| row.elements == elements && row.link_gbit_per_second == link;
    for row in document.rows.iter().filter(is_asked) {
        grid.rows.push(vec![
            row.hosts.to_string(),
            row.agents.to_string(),
            format!("{:.0}", row.samples_per_second),
            percent(row.stalled),
            if row.agents > 0 { percent(row.agents_busy) } else { "–".to_owned() },
            percent(row.link_busy),
            seconds(row.ends_seconds),
            row.limit.unwrap_or("–").to_owned(),
        ]);
    }
    grid
}

fn fewest(document: &Document) -> Grid {
    let mut head = vec!["batches".to_owned(), "link".to_owned()];
    let (elements, link) = (BATCHES[0].0, LINKS[0]);
    let is_first = |it: &&Needed| it.elements == elements && it.link_gbit_per_second == link;
    let hosts = document.needed.iter().filter(is_first).map(|it| it.hosts);
    head.extend(hosts.map(|hosts| match hosts {
        1 => "1 host".to_owned(),
        hosts => format!("{hosts} hosts"),
    }));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut grid = Grid::new(&head, 1..head.len());
    for (elements, _) in BATCHES {
        for link in LINKS {
            let is_asked =
                |it: &&Needed| it.elements == elements && it.link_gbit_per_second == link;
            let cells = document.needed.iter().filter(is_asked).map(|it| match it.agents {
                Some(agents) => agents.to_string(),
                None => format!("at most {:.0} %", it.share_max * 100.0),
            });
            let mut row = vec![elements.to_owned(), format!("{link} Gbit/s")];
            row.extend(cells);
            grid.rows.push(row);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::{Document, HOSTS, needed, run, text};
    use crate::Error;
    use meetpoint_report::grid::Style;
    use meetpoint_sim::studies::hosts::HostsRow;

    fn row(agents: u32, stalled: f64) -> HostsRow {
        HostsRow {
            elements: "uint8",
            hosts: 8,
            agents,
            link_gbit: 10,
            samples_per_second: 8_000.0 * (1.0 - stalled),
            stalled,
            agents_busy: 0.5,
            link_busy: 0.5,
            ends_seconds: 1.0,
            limit: None,
        }
    }

    #[test]
    fn the_fewest_agents_that_are_enough_are_named() {
        let rows = [row(0, 0.5), row(4, 0.2), row(6, 0.04), row(8, 0.0)];
        let found = needed(&HOSTS, &rows);
        let of = found.iter().find(|it| it.link_gbit_per_second == 10 && it.hosts == 8);
        assert_eq!(of.unwrap().agents, Some(6));
        let rest = needed(&HOSTS, &rows[..2]);
        let of = rest.iter().find(|it| it.link_gbit_per_second == 10 && it.hosts == 8).unwrap();
        assert_eq!(of.agents, None);
        assert!((of.share_max - 0.8).abs() < 1e-9);
        let document = Document { kind: "hosts", rows: Vec::new(), needed: rest };
        assert!(text(&document, Style::Plain).contains("at most 80 %"));
    }

    #[test]
    fn a_number_of_hosts_that_is_given_twice_is_refused() {
        let refused = run(&[8, 1, 8], &mut |_, _| panic!("nothing is simulated"));
        assert!(matches!(refused, Err(Error::HostsTwice { hosts: 8 })));
    }
}
