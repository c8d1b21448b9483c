//! Checks that the operations of a recipe can transform its targets, and that the targets are
//! consistent.

use super::{TARGETS_MAX, Target, TargetKind};
use crate::recipe::Operation;
use crate::recipe::declaration::OnTargets;
use crate::recipe::error::{Fault, Problem};
use crate::recipe::validate::check_value;
use std::collections::HashSet;

/// Checks targets, sorted by column name, after the operations were checked.
pub(in crate::recipe) fn check(
    operations: &[Operation],
    targets: &[Target],
) -> Result<(), Problem> {
    if targets.len() > TARGETS_MAX {
        let problem = format!("the recipe has {} targets", targets.len());
        return Err(Problem::of_recipe(problem, format!("at most {TARGETS_MAX}")));
    }
    let mut columns = HashSet::new();
    let mut filtered = HashSet::new();
    for target in targets {
        let refuse = |fault: Fault| fault.of_target(&target.column, target.kind.name());
        for (key, value) in target.kind.declaration().keys.iter().zip(target.kind.values()) {
            check_value(key, &value).map_err(refuse)?;
        }
        if !columns.insert(&target.column) {
            let fault = Fault::new("there are two for this column", "remove one of them");
            return Err(refuse(fault));
        }
        match &target.kind {
            TargetKind::Boxes(boxes) => {
                for column in &boxes.filters {
                    let others = targets.iter().filter(|it| it.column == *column);
                    let is_boxes = |it: &Target| matches!(it.kind, TargetKind::Boxes(_));
                    if others.into_iter().any(is_boxes) {
                        let problem = format!("names {column:?}, which holds boxes itself");
                        let remedy = "name columns with one value for each box";
                        return Err(refuse(Fault::of_value("filters", problem, remedy)));
                    }
                    if !filtered.insert(column) {
                        let problem = format!("names {column:?}, which is filtered already");
                        let remedy = "name each column once, for one target";
                        return Err(refuse(Fault::of_value("filters", problem, remedy)));
                    }
                }
                if !boxes.filters.is_empty() && !boxes.is_sanitized() {
                    let problem = "names columns, but all boxes are kept";
                    let remedy = "set `min_size` or `min_area`, such as min_size = 1";
                    return Err(refuse(Fault::of_value("filters", problem, remedy)));
                }
            }
            TargetKind::Keypoints(points) => {
                let mut seen = HashSet::new();
                let again = points.swap.iter().flatten().find(|index| !seen.insert(**index));
                if let Some(index) = again {
                    let problem = format!("names the point {index} twice");
                    let remedy = "name each point in at most one pair, with another point";
                    return Err(refuse(Fault::of_value("swap", problem, remedy)));
                }
            }
            TargetKind::Mask(_) | TargetKind::Saliency(_) => {}
        }
    }
    for (index, operation) in operations.iter().enumerate() {
        let of_operation = |fault: Fault| fault.of_operation(index, operation.name());
        check_operation(operation, targets).map_err(of_operation)?;
    }
    Ok(())
}

/// Checks one operation, and those that it contains, against all targets.
fn check_operation(operation: &Operation, targets: &[Target]) -> Result<(), Fault> {
    let name = operation.name();
    if operation.needs_boxes() {
        let is_boxes = |it: &&Target| matches!(it.kind, TargetKind::Boxes(_));
        let count = targets.iter().filter(is_boxes).count();
        if count != 1 {
            let problem =
                format!("`{name}` needs one target of the kind boxes, and the recipe has {count}");
            let remedy = "name the column with the boxes, such as [targets.boxes] with \
                          kind = \"boxes\" and format = \"xyxy\"";
            return Err(Fault::new(problem, remedy));
        }
    }
    for Target { column, kind } in targets {
        match operation.declaration().targets {
            OnTargets::Leaves | OnTargets::Moves => {}
            OnTargets::Refuses => {
                let problem = format!(
                    "`{name}` moves pixels of the picture, and cannot move the target {column:?} \
                     ({}) with them",
                    kind.name()
                );
                return Err(Fault::new(problem, "remove the operation, or the target"));
            }
        }
        if let Some((key, value)) = operation.repeats_pixels()
            && kind.has_points()
        {
            let problem = format!(
                "of `{name}` is \"{value}\", which shows parts of the picture again, where the \
                 target {column:?} ({}) has no points for them",
                kind.name()
            );
            let remedy = format!("set {key} = \"constant\", or remove the target");
            return Err(Fault::of_value(key, problem, remedy));
        }
    }
    operation.content().iter().try_for_each(|inner| check_operation(inner, targets))
}
