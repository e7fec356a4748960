//! The search: breadth first, every state once.

use super::actions::{Action, enabled};
use super::configs::Model;
use super::properties::{Met, Property, Violation, check, violated};
use super::state::{State, World};
use super::step::{After, apply};
use super::table::Seen;
use super::trace::Trace;

/// What a search has found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The model.
    pub model: &'static str,
    /// Different states.
    pub states: u64,
    /// Steps that were tried.
    pub transitions: u64,
    /// The number of steps to the state that is farthest from the first.
    pub depth: u32,
    /// Steps that broke the assumption of the algorithm, after which nothing was looked at.
    pub excused: u64,
    /// What should have happened somewhere, and did not.
    pub missing: Vec<Met>,
    /// A shortest way to a violation.
    pub violation: Option<Trace>,
}

/// How a state was reached.
struct Origin {
    parent: u32,
    action: Action,
}

/// Looks at every state of the model, until one violates a property.
#[must_use]
pub fn search(model: &Model) -> Outcome {
    let mut world = World::new(model);
    let first = State::initial(&mut world);
    let mut seen = Seen::default();
    seen.insert(first.print(&mut world));
    let mut origins = vec![Origin { parent: 0, action: Action::Tick }];
    let (mut layer, mut next) = (vec![first], Vec::new());
    let mut layer_start = 0_usize;
    let (mut met, mut transitions, mut depth, mut excused) = (0, 0, 0, 0);
    let mut actions = Vec::new();
    let mut violation: Option<Trace> = None;
    'search: while !layer.is_empty() {
        for (index, state) in layer.drain(..).enumerate() {
            enabled(&world, &state, &mut actions);
            for action in actions.iter().copied() {
                transitions += 1;
                let parent = u32::try_from(layer_start + index).unwrap_or(u32::MAX);
                let found = match apply(&mut world, &state, action, &mut met) {
                    Ok(After::Broken) => {
                        excused += 1;
                        continue;
                    }
                    Ok(After::State(after)) => {
                        if !seen.insert(after.print(&mut world)) {
                            continue;
                        }
                        origins.push(Origin { parent, action });
                        let checked = match world.asymmetry.take() {
                            Some(what) => Err(violated(Property::Symmetry, what)),
                            None => check(&world, &after, &mut met),
                        };
                        next.push(after);
                        checked.map_err(|violation| (origins.len() - 1, None, violation))
                    }
                    Err(violation) => Err((parent as usize, Some(action), violation)),
                };
                if let Err((at, last, what)) = found {
                    violation = Some(trace(model, &origins, at, last, what));
                    break 'search;
                }
            }
        }
        layer_start = origins.len() - next.len();
        core::mem::swap(&mut layer, &mut next);
        depth += u32::from(!layer.is_empty());
    }
    Outcome {
        model: model.name(),
        states: origins.len() as u64,
        transitions,
        depth,
        excused,
        missing: Met::missing(met, model.sometimes()),
        violation,
    }
}

fn trace(model: &Model, origins: &[Origin], at: usize, last: Option<Action>, what: Violation) -> Trace {
    let mut actions: Vec<Action> = last.into_iter().collect();
    let mut at = at;
    while at != 0 {
        actions.push(origins[at].action);
        at = origins[at].parent as usize;
    }
    actions.reverse();
    Trace::of(model, &actions, what)
}
