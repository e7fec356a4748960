//! A way to a violation, in words.

use super::actions::{Action, Mishap};
use super::configs::Model;
use super::properties::Violation;
use super::state::{Ask, CLIENTS, Command, FORGOTTEN, NOBODY, NODES, State, World};
use super::step::{After, apply};
use core::fmt;
use redlock_core::machine::Verb;

/// The steps to a violation: one line each, who did what, and what everybody believes then.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What does not hold at the end.
    pub violation: Violation,
    /// The steps.
    pub steps: Vec<String>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>4}  {step}", number + 1)?;
        }
        write!(f, "      VIOLATED {}", self.violation)
    }
}

impl Trace {
    /// The way of these actions, walked again.
    pub(super) fn of(model: &Model, actions: &[Action], violation: Violation) -> Self {
        let mut world = World::new(model);
        let mut state = State::initial(&mut world);
        let mut steps = Vec::new();
        for action in actions {
            let what = describe(&world, &state, *action);
            match apply(&mut world, &state, *action, &mut 0) {
                Ok(After::State(after)) => state = after,
                Ok(After::Broken) | Err(_) => {
                    steps.push(what);
                    break;
                }
            }
            steps.push(format!("{what:<62} {}", beliefs(&world, &state)));
        }
        Self { violation, steps }
    }
}

fn name(client: u8) -> &'static str {
    ["A", "B"][usize::from(client)]
}

fn beliefs(world: &World<'_>, state: &State) -> String {
    let mut text = format!("{:>3} ms |", state.now_ms());
    for client in 0..CLIENTS {
        let holds = state.slots[client]
            .iter()
            .filter_map(|slot| world.view(slot))
            .find(|view| view.believes(state.now()));
        text += &match holds {
            Some(view) if world.model.fenced => {
                format!(" {} holds with {}", ["A", "B"][client], view.fence.unwrap_or(0))
            }
            Some(view) => format!(" {} holds until {:?}", ["A", "B"][client], view.deadline),
            None => format!(" {} -", ["A", "B"][client]),
        };
        if world.model.clients[client].campaigns {
            text += &format!(" ({:?})", world.election(state, client).stage());
        }
    }
    text += " | keys";
    for server in 0..NODES {
        text += &match state.servers[server].key {
            Some(key) if key.token == NOBODY => " old".to_owned(),
            Some(key) => {
                let (client, attempt) = if key.token < 8 { ("A", key.token) } else { ("B", key.token - 8) };
                let until = if world.model.expires { String::new() } else { format!("..{}", key.until) };
                format!(" {client}{}{until}", attempt + 1)
            }
            None => " -".to_owned(),
        };
    }
    if world.model.fenced {
        text += " | counters";
        for server in &state.servers {
            text += &server.counter.map_or_else(|| " -".to_owned(), |counter| format!(" {counter}"));
        }
        text += &format!(" | granted {}", state.fences[0]);
    }
    text
}

fn command(command: &Command) -> String {
    let verb = match command.asks {
        Ask::To(Verb::Set) => "SET".to_owned(),
        Ask::To(Verb::Extend { ttl, .. }) => format!("extension to {ttl:?}"),
        Ask::To(Verb::Repair { ttl }) => format!("repair for {ttl:?}"),
        Ask::To(Verb::Raise { fence }) => format!("raise to {fence}"),
        Ask::To(Verb::Release) => "release".to_owned(),
        Ask::Look => "look at its key".to_owned(),
    };
    match command.attempt {
        FORGOTTEN => format!("an old attempt's {verb}"),
        attempt => format!("attempt {}'s {verb}", attempt + 1),
    }
}

const fn mishap(after: Mishap) -> &'static str {
    match (after.key, after.counter) {
        (false, false) => "",
        (true, false) => ", its key gone early,",
        (false, true) => ", its counter gone,",
        (true, true) => ", its key and its counter gone,",
    }
}

fn describe(world: &World<'_>, state: &State, action: Action) -> String {
    let link = |client: u8, node: u8| world.link(state, client.into(), node.into());
    let first = |commands: &[Command]| commands.first().map(command).unwrap_or_default();
    match action {
        Action::Tick => "time passes".to_owned(),
        Action::Start { client } => {
            format!("{} starts attempt {}", name(client), state.done[usize::from(client)].attempts + 1)
        }
        Action::Extend { client, choice } => {
            let ticks = world.model.clients[usize::from(client)].extends[usize::from(choice)];
            format!("{} extends to {ticks} ticks", name(client))
        }
        Action::Release { client } => format!("{} releases", name(client)),
        Action::Abandon { client } => format!("{} calls the attempt off", name(client)),
        Action::Campaign { client } => format!("{} campaigns", name(client)),
        Action::Elected { client } => format!("{} hears that it has the lock", name(client)),
        Action::CallOff { client } => format!("{} calls its campaign off", name(client)),
        Action::CampaignFails { client } => format!("the campaign of {} fails", name(client)),
        Action::Void { client } => format!("{} finds that two nodes are one", name(client)),
        Action::Look { client, node } => format!("{} looks at its key on n{node}", name(client)),
        Action::HandOut { client, node } => {
            format!("{} hands out to n{node}: {}", name(client), first(&link(client, node).outbox))
        }
        Action::Execute { client, node, after } => {
            format!("n{node}{} executes {} {}", mishap(after), name(client), first(&link(client, node).sent))
        }
        Action::Fail { client, node, choice } => {
            let answer = world.model.errors[usize::from(choice)];
            format!("n{node} answers {answer:?} to {} {}", name(client), first(&link(client, node).sent))
        }
        Action::Read { client, node } => match link(client, node).answers.first() {
            Some((of, answer)) => {
                format!("{} reads from n{node}: {answer:?} to {}", name(client), command(of))
            }
            None => String::new(),
        },
        Action::Break { client, node, .. } => format!("the connection of {} to n{node} breaks", name(client)),
        Action::GiveUp { client, node } => format!("{} cannot connect to n{node}", name(client)),
        Action::Reconnect { client, node } => format!("{} has a new connection to n{node}", name(client)),
        Action::RunLate { client, node, dead, after } => {
            let late = link(client, node).late.get(usize::from(dead)).map(Vec::as_slice).unwrap_or_default();
            format!("n{node}{} executes, late, {} {}", mishap(after), name(client), first(late))
        }
        Action::Forget { server } => format!("server {server} forgets its keys"),
        Action::Restart { server } => format!("server {server} restarts and has forgotten its keys"),
    }
}
