//! The meaning of expressions, and the positions of errors in invalid ones.

use super::super::{
    Arithmetic, ColumnType, Comparison, Expression, SampleColumns, SamplerError, Term,
};
use super::columns::Made;

/// An expression as its tree, in prefix form.
fn tree(text: &str) -> String {
    fn show(term: &Term) -> String {
        let two = |sign: &str, left: &Term, right: &Term| {
            format!("({sign} {} {})", show(left), show(right))
        };
        match term {
            Term::Column(name) => name.clone(),
            Term::Whole(number) => number.to_string(),
            Term::Number(number) => format!("{number:?}"),
            Term::Text(text) => format!("{text:?}"),
            Term::Flag(flag) => flag.to_string(),
            Term::Not(inside) => format!("(not {})", show(&inside.term)),
            Term::Negate(inside) => format!("(- {})", show(&inside.term)),
            Term::And(left, right) => two("and", &left.term, &right.term),
            Term::Or(left, right) => two("or", &left.term, &right.term),
            Term::IsNull(inside) => format!("(null {})", show(&inside.term)),
            Term::In(left, values) => {
                let values: Vec<String> = values.iter().map(|it| show(&it.term)).collect();
                format!("(in {} {})", show(&left.term), values.join(" "))
            }
            Term::Compare(how, left, right) => {
                let sign = match how {
                    Comparison::Equal => "==",
                    Comparison::NotEqual => "!=",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                };
                two(sign, &left.term, &right.term)
            }
            Term::Arithmetic(how, left, right) => {
                let sign = match how {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::Remainder => "%",
                };
                two(sign, &left.term, &right.term)
            }
        }
    }
    show(&Expression::parse(text).unwrap().root().term)
}

#[test]
fn operators_bind_as_in_sql() {
    assert_eq!(
        tree("a == 1 or b < 2 and not c >= 3"),
        "(or (== a 1) (and (< b 2) (not (>= c 3))))"
    );
    assert_eq!(tree("a + b * -2 - 1 != 7 % c"), "(!= (- (+ a (* b -2)) 1) (% 7 c))");
    assert_eq!(tree("(a = 1 OR b = 2) AND c"), "(and (or (== a 1) (== b 2)) c)");
    assert_eq!(tree("a not in (1, 2.5, -3)"), "(not (in a 1 2.5 -3))");
    assert_eq!(tree("name is not null"), "(not (null name))");
    assert_eq!(tree("`a b` == 'it''s' and c == \"x\""), "(and (== a b \"it's\") (== c \"x\"))");
    assert_eq!(tree("a / 2e1 > .5 and true"), "(and (> (/ a 20.0) 0.5) true)");
}

#[test]
fn whole_numbers_reach_both_ends_of_64_bits() {
    assert_eq!(tree("a > -9223372036854775808"), "(> a -9223372036854775808)");
    assert_eq!(tree("a < 9223372036854775807"), "(< a 9223372036854775807)");
    assert_eq!(tree("a < -(-9223372036854775808)"), "(< a (- -9223372036854775808))");
    for (text, at) in [("a < 9223372036854775808", 5), ("a > -9223372036854775809", 5)] {
        let refused = Expression::parse(text).unwrap_err();
        assert!(matches!(refused, SamplerError::Expression { at: found, .. } if found == at));
    }
}

#[test]
fn a_text_beside_a_number_suggests_the_column_of_its_names() {
    let columns = Made::of(1).columns();
    let advice = |text: &str| {
        let refused = Expression::parse(text).unwrap().check(&columns).unwrap_err();
        refused.instruction().spelled(meetpoint_diagnose::Surface::CommandLine)
    };
    for text in ["label == 'cat'", "'cat' == label", "label in (1, 'cat')"] {
        assert!(advice(text).contains("`label_name`"), "{text}: {}", advice(text));
    }
    assert!(!advice("weight == 'heavy'").contains("`"), "{}", advice("weight == 'heavy'"));
}

#[test]
fn what_does_not_parse_is_located() {
    let at = |text: &str| match Expression::parse(text).unwrap_err() {
        SamplerError::Expression { at, .. } => at,
        other => panic!("{other}"),
    };
    assert_eq!(at(""), 1);
    assert_eq!(at("label =="), 9);
    assert_eq!(at("label == 1 1"), 12);
    assert_eq!(at("label & 1"), 7);
    assert_eq!(at("(label == 1"), 12);
    assert_eq!(at("label in 1"), 10);
    assert_eq!(at("label == 'cat"), 10);
    assert_eq!(at("label < 1 < 2"), 11);
    assert_eq!(at("label is 1"), 10);
    assert_eq!(at("größe == 1 and"), 15);
    assert_eq!(at("label == 99999999999999999999"), 10);
    assert_eq!(at(&format!("{}label{}", "(".repeat(65), ")".repeat(65))), 66);
    assert_eq!(at(&vec!["a == 1"; 1100].join(" or ")), 5006);
    assert!(Expression::parse(&"x".repeat(100_000)).is_err());
}

#[test]
fn types_that_do_not_match_are_located() {
    let columns = Made::of(1).columns();
    let check = |text: &str| Expression::parse(text).unwrap().check(&columns);
    let at = |text: &str| match check(text).unwrap_err() {
        SamplerError::Expression { at, .. } => at,
        other => panic!("{other}"),
    };
    assert_eq!(at("label == 1 and name == 3"), 16);
    assert_eq!(at("label == 'cat'"), 1);
    assert_eq!(at("label + name == 3"), 9);
    assert_eq!(at("label"), 1);
    assert_eq!(at("not label"), 5);
    assert_eq!(at("weight % 2 == 1"), 1);
    assert_eq!(at("is_sharp < true"), 1);
    assert_eq!(at("boxes == 1"), 1);
    assert_eq!(at("label in (1, 'two')"), 14);
    for text in ["is_sharp", "label < weight", "label in (1, 2.5)", "boxes_or is null or is_sharp"]
    {
        match check(text) {
            Ok(()) => assert!(!text.contains("boxes_or")),
            Err(SamplerError::UnknownColumn { column, at: Some(1), known, .. }) => {
                assert_eq!(column, "boxes_or");
                assert_eq!(known.len(), columns.len());
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(columns[4].1, ColumnType::Other("lists".to_owned()));
}

/// Types are found in one pass: with two at each level, 60 levels would take 2^60 steps.
#[test]
fn the_check_of_a_deep_expression_ends() {
    let columns = Made::of(1).columns();
    let nested = |inside: &str, step: &str| {
        let text = format!("{}{inside}{}", "(".repeat(60), format!("){step}").repeat(60));
        Expression::parse(&text).unwrap().check(&columns)
    };
    assert_eq!(nested("label == 1", " == true"), Ok(()));
    assert_eq!(nested("label == 1", " in (true, false, is_sharp)"), Ok(()));
    assert!(matches!(
        nested("label == 'one'", " == true"),
        Err(SamplerError::Expression { at: 60, .. })
    ));
}
