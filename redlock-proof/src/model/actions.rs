//! What can happen next.

use super::state::{ATTEMPTS, Ask, CLIENTS, NODES, State, Up, World};
use redlock_core::machine::{Answer, Verb};

/// What has happened to a server just before it executes a command: it could have happened earlier, but nobody knows before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Mishap {
    /// The key is gone before its time: a clock was wrong.
    pub(super) key: bool,
    /// The counter is gone.
    pub(super) counter: bool,
    /// If the command starts a counter: from the model's `start`th number.
    pub(super) start: u8,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// One tick of time passes; every claim gets its timeout.
    Tick,
    Start {
        client: u8,
    },
    Extend {
        client: u8,
        choice: u8,
    },
    Release {
        client: u8,
    },
    Abandon {
        client: u8,
    },
    /// A candidate campaigns; that its last term is over is seen before.
    Campaign {
        client: u8,
    },
    /// A candidate hears that its lock was granted.
    Elected {
        client: u8,
    },
    /// Nobody waits for a candidate's campaign any more.
    CallOff {
        client: u8,
    },
    /// A campaign fails for a reason that waiting does not mend.
    CampaignFails {
        client: u8,
    },
    /// The client finds out that the second node of the alias is the first's second name (R24).
    Void {
        client: u8,
    },
    /// The client asks the node whether its key has the token still: it was told that it changed, or asks anyway.
    Look {
        client: u8,
        node: u8,
    },
    /// What is queued for the node is handed out.
    HandOut {
        client: u8,
        node: u8,
    },
    /// The server executes the next command of the connection.
    Execute {
        client: u8,
        node: u8,
        after: Mishap,
    },
    /// It answers that command with an error instead, the model's `choice`th.
    Fail {
        client: u8,
        node: u8,
        choice: u8,
    },
    /// The client reads the next answer.
    Read {
        client: u8,
        node: u8,
    },
    Break {
        client: u8,
        node: u8,
        choice: u8,
    },
    /// An attempt to connect fails.
    GiveUp {
        client: u8,
        node: u8,
    },
    Reconnect {
        client: u8,
        node: u8,
    },
    /// The server executes the next command of a dead connection.
    RunLate {
        client: u8,
        node: u8,
        dead: u8,
        after: Mishap,
    },
    /// The server loses its keys, and no connection.
    Forget {
        server: u8,
    },
    /// The server loses its keys and all its connections.
    Restart {
        server: u8,
    },
}

pub(super) const fn small(index: usize) -> u8 {
    // All indices are below the fixed sizes of the arrays.
    index.to_le_bytes()[0]
}

/// Everything that can happen in a state.
pub(super) fn enabled(world: &World<'_>, state: &State, actions: &mut Vec<Action>) {
    actions.clear();
    let model = world.model;
    for client in 0..CLIENTS {
        if model.clients[client].campaigns {
            candidate_actions(world, state, client, actions);
        } else {
            user_actions(world, state, client, actions);
        }
    }
    for (client, node) in ends() {
        if may_look(world, state, client, node) {
            actions.push(Action::Look { client: small(client), node: small(node) });
        }
        link_actions(world, state, client, node, actions);
    }
    for server in 0..NODES {
        let remembers = state.servers[server].key.is_some() && !model.expires;
        if remembers && model.forget_at[server] && state.forgets < model.forgets {
            actions.push(Action::Forget { server: small(server) });
        }
        if remembers && model.restart_at[server] && state.restarts < model.restarts {
            actions.push(Action::Restart { server: small(server) });
        }
    }
    if state.time < model.horizon {
        actions.push(Action::Tick);
    }
}

pub(super) fn ends() -> impl Iterator<Item = (usize, usize)> {
    (0..CLIENTS).flat_map(|client| (0..NODES).map(move |node| (client, node)))
}

fn candidate_actions(world: &World<'_>, state: &State, client: usize, actions: &mut Vec<Action>) {
    let plan = &world.model.clients[client];
    let (candidate, done, name) = (&state.candidates[client], &state.done[client], small(client));
    let live = state.slots[client].iter().any(|slot| world.view(slot).is_some_and(|view| !view.ended));
    let left = done.attempts < plan.attempts;
    if candidate.asks && plan.abandons {
        actions.push(Action::CallOff { client: name });
    }
    match candidate.granted {
        Some(_) => actions.push(Action::Elected { client: name }),
        None if candidate.asks && !live => {
            if left && candidate.from <= state.time {
                actions.push(Action::Start { client: name });
            }
            if done.fails < plan.fails_at_most {
                actions.push(Action::CampaignFails { client: name });
            }
        }
        None if !candidate.asks => {
            if left && (!live || world.model.expires) {
                actions.push(Action::Campaign { client: name });
            }
            if plan.releases && world.leads(state, client) && !world.model.expires {
                actions.push(Action::Release { client: name });
            }
        }
        None => {}
    }
}

fn user_actions(world: &World<'_>, state: &State, client: usize, actions: &mut Vec<Action>) {
    let model = world.model;
    let plan = &model.clients[client];
    let done = state.done[client];
    let now = state.now();
    let name = small(client);
    let live = state.slots[client].iter().filter_map(|slot| world.view(slot)).find(|view| !view.ended);
    let waits = plan.start_after_extend && state.done[1 - client].extends == 0;
    let in_time = plan.start_from <= state.time && state.time <= plan.start_until && !waits;
    match live {
        None if done.attempts < plan.attempts && in_time => actions.push(Action::Start { client: name }),
        Some(view) if model.expires => {
            if done.attempts < plan.attempts && in_time {
                actions.push(Action::Start { client: name });
            }
            if !view.attempting && done.extends < plan.extends_at_most {
                let choices = 0..small(plan.extends.len());
                actions.extend(choices.map(|choice| Action::Extend { client: name, choice }));
            }
        }
        Some(view) if view.attempting && plan.abandons => actions.push(Action::Abandon { client: name }),
        Some(view) if view.believes(now) => {
            if done.extends < plan.extends_at_most && state.time <= plan.extend_until {
                let choices = match plan.extends_in_order {
                    true => done.extends..done.extends + 1,
                    false => 0..small(plan.extends.len()),
                };
                actions.extend(choices.map(|choice| Action::Extend { client: name, choice }));
            }
            if plan.releases {
                actions.push(Action::Release { client: name });
            }
        }
        Some(_) | None => {}
    }
    if model.alias.is_some() && model.voids && !state.voided && live.is_some() {
        actions.push(Action::Void { client: name });
    }
}

/// A holder looks at its key where the node has confirmed the token, one look at a time.
fn may_look(world: &World<'_>, state: &State, client: usize, node: usize) -> bool {
    let link = world.link(state, client, node);
    let supported = |attempt: usize| {
        let view = world.view(&state.slots[client][attempt]);
        view.is_some_and(|view| view.held && view.support[node].is_some())
    };
    state.done[client].looks < world.model.clients[client].looks_at_most
        && link.up == Up::Ready
        && (0..ATTEMPTS).any(|attempt| supported(attempt) && !link.is_looking(attempt))
}

fn link_actions(world: &World<'_>, state: &State, client: usize, node: usize, actions: &mut Vec<Action>) {
    let model = world.model;
    let link = world.link(state, client, node);
    let (end, at) = (small(client), small(node));
    if !link.outbox.is_empty() && link.up.is_ready() {
        actions.push(Action::HandOut { client: end, node: at });
    }
    if let Some(command) = link.sent.first() {
        let ways = world.ways(state, client, node, command);
        actions.extend(ways.map(|after| Action::Execute { client: end, node: at, after }));
        if !matches!(command.asks, Ask::To(Verb::Release) | Ask::Look) && state.errors < model.errors_at_most
        {
            for (choice, answer) in model.errors.iter().enumerate() {
                let extends = matches!(command.asks, Ask::To(Verb::Extend { .. }));
                if extends || matches!(answer, Answer::NotApplied) {
                    actions.push(Action::Fail { client: end, node: at, choice: small(choice) });
                }
            }
        }
    }
    if !link.answers.is_empty() {
        actions.push(Action::Read { client: end, node: at });
    }
    match link.up {
        Up::Ready | Up::Quarantined => {
            let worth = !link.sent.is_empty()
                || !link.answers.is_empty()
                || !link.outbox.is_empty()
                || model.idle_breaks;
            if worth && state.done[client].breaks < model.breaks[client] && model.break_at[node] {
                let choices = 0..small(model.break_to.len());
                actions.extend(choices.map(|choice| Action::Break { client: end, node: at, choice }));
            }
        }
        Up::Connecting => {
            if model.gives_up {
                actions.push(Action::GiveUp { client: end, node: at });
            }
            actions.push(Action::Reconnect { client: end, node: at });
        }
        Up::Down => actions.push(Action::Reconnect { client: end, node: at }),
    }
    for (dead, commands) in link.late.iter().enumerate() {
        let ways = commands.iter().take(1).flat_map(|first| world.ways(state, client, node, first));
        actions.extend(ways.map(|after| Action::RunLate { client: end, node: at, dead: small(dead), after }));
    }
}
