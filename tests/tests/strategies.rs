//! Documents describe the strategies as they are declared.

use crate::layers::root;
use meetpoint_scheduler::{AcceptedValues, Order, StrategyName, Value};

fn read(path: &str) -> String {
    let text = std::fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the first table whose head begins with `head`, behind it; cells without spaces
/// around them.
fn rows(text: &str, head: &str) -> Vec<Vec<String>> {
    let begin = text.find(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let lines = text[begin..].lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split(" |").map(|cell| cell.trim().to_owned());
        cells.collect()
    };
    lines.map(cells).collect()
}

/// Names in backquotes, in the order of the text; only those of strategies.
fn named(text: &str) -> Vec<StrategyName> {
    text.split('`').skip(1).step_by(2).filter_map(|name| name.parse().ok()).collect()
}

/// What docs/jobs.md says of the order of a strategy.
fn order_in_words(name: StrategyName) -> String {
    let strategy = name.with_defaults();
    if strategy.is_selector() {
        return "as configured".to_owned();
    }
    let mut words = match strategy.order() {
        Order::Any => "depends on timing",
        Order::Replayable => "from a record (C3)",
        Order::Baseline => "the host's own (C4)",
    }
    .to_owned();
    for (spec, default) in name.options() {
        for &word in spec.takes.words.iter().filter(|&&word| Value::Word(word) != default) {
            let mut other = strategy;
            other.set(spec.name, Value::Word(word)).unwrap();
            if other.order() == Order::Baseline && strategy.order() != Order::Baseline {
                words.push_str(&format!("; C4 with an {word} {}", spec.name));
            }
        }
    }
    words
}

/// A default as TOML.
fn toml(value: Value) -> String {
    match value {
        Value::Word(word) => format!("`{word:?}`"),
        Value::Whole(number) => number.to_string(),
        Value::Share(_) => panic!("no option has a share as its default"),
    }
}

#[test]
fn the_table_of_strategies_has_each_with_its_summary_and_order() {
    let rows = rows(&read("docs/jobs.md"), "| name | what it does | order |");
    let declared = StrategyName::ALL
        .map(|name| vec![format!("`{name}`"), name.summary().to_owned(), order_in_words(name)]);
    assert_eq!(rows, declared);
}

#[test]
fn the_tables_of_options_have_each_with_its_default_and_words() {
    for (document, head) in [("docs/jobs.md", "### `[NAME]`"), ("docs/simulation.md", "| `[NAME]`")]
    {
        let text = read(document);
        for name in StrategyName::ALL {
            let head = head.replace("NAME", name.as_str());
            let options = name.options();
            if options.is_empty() {
                assert!(!text.contains(&head), "{document}: {name} has no options");
                continue;
            }
            let section = &text[text.find(&head).unwrap_or_else(|| panic!("{document}: {head}"))..];
            let rows = rows(section, &section[section.find('|').unwrap()..][..3]);
            assert_eq!(rows.len(), options.len(), "{document}: {rows:?}");
            for (row, (spec, default)) in rows.iter().zip(options) {
                let [key, said, meaning] = &row[..] else { panic!("{document}: {row:?}") };
                assert_eq!((key, said), (&format!("`{}`", spec.name), &toml(default)));
                let AcceptedValues { words, share, .. } = &spec.takes;
                let said = format!("{said} {meaning}");
                for word in *words {
                    let is_said = said.contains(&format!("{word:?}"));
                    assert!(is_said, "{document}: {name}.{} lacks {word}", spec.name);
                }
                let key = share.as_ref().map_or("", |share| share.key);
                assert!(meaning.contains(key), "{document}: {name}.{} lacks {key}", spec.name);
            }
        }
    }
}

#[test]
fn the_readme_has_every_strategy_that_decides_under_what_its_order_promises() {
    let text = read("README.md");
    let head = text.lines().find(|line| line.starts_with("| level | promise |")).unwrap();
    let columns: Vec<&str> = head.trim_matches('|').split('|').skip(2).collect();
    let orders = [Order::Baseline, Order::Replayable, Order::Any];
    assert_eq!(columns.len(), orders.len());
    for (column, order) in columns.into_iter().zip(orders) {
        let with = |name: &StrategyName| {
            let strategy = name.with_defaults();
            !strategy.is_selector() && strategy.order() == order
        };
        let mut declared: Vec<_> = StrategyName::ALL.into_iter().filter(with).collect();
        let mut said = named(column);
        declared.sort();
        said.sort();
        assert_eq!(said, declared, "{order:?}");
    }
    let selectors = StrategyName::ALL.into_iter().filter(|name| name.with_defaults().is_selector());
    for name in selectors {
        assert!(text.contains(&format!("`{name}`")), "README.md lacks {name}");
    }
}

#[test]
fn lists_of_strategies_are_whole() {
    let rows_of = |document: &str, head: &str, key: &str| {
        let rows = rows(&read(document), head);
        rows.iter().find(|row| row[0] == key).unwrap_or_else(|| panic!("{document}: {key}")).clone()
    };
    let scenario = rows_of("docs/simulation.md", "| key | default | meaning |", "`strategy`");
    assert_eq!(named(&scenario[2]), StrategyName::ALL);
    let schema = read("docs/report-schema.md");
    let runs = &schema[schema.find("\n## runs\n").unwrap()..];
    let strategy = &rows(runs, "| field | type | meaning |")[0];
    assert_eq!(named(&strategy[2]), StrategyName::ALL);
    let resumed = rows(&read("docs/python.md"), "| strategy | after a resume |");
    let mut resumed: Vec<_> = resumed.iter().flat_map(|row| named(&row[0])).collect();
    resumed.sort();
    assert_eq!(resumed, StrategyName::ALL);
}

#[test]
fn the_docstring_of_the_loader_has_every_strategy_and_its_arguments() {
    let text = read("python/python/meetpoint/_loader.py");
    let begin = text.find(":param strategy:").unwrap();
    let end = begin + text[begin..].find(":param order:").unwrap();
    let mut said: Vec<StrategyName> = text[begin..end]
        .split("``\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
        .collect();
    said.sort();
    assert_eq!(said, StrategyName::ALL);
    let order = &text[end..][..text[end..].find(":param window:").unwrap()];
    let options = StrategyName::Auto.options();
    let (spec, default) = options.iter().find(|(spec, _)| spec.name == "order").unwrap();
    for word in spec.takes.words {
        assert!(order.contains(&format!("``\"{word}\"``")), "the docstring lacks {word}");
    }
    let Value::Word(default) = default else { panic!("{default:?}") };
    assert!(text.contains(&format!("order: str = \"{default}\"")), "the default is not {default}");
}
