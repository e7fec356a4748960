//! A server's counter: what the fenced scripts do with it, and what they answer.
//!
//! A number of the model is the script's microseconds: what a clock says is chosen, within what is assumed of clocks, when
//! a counter is made.

use super::Step;
use crate::model::configs::{Model, Start};
use crate::model::faults::Fault;
use crate::model::properties::Met;
use crate::model::state::{CLIENTS, Command, NODES, Server, State, World, is_free_for};
use redlock_core::machine::{Answer, Verb};

impl World<'_> {
    /// How many numbers a counter may start from if the server executes the command: 1 where none starts.
    pub(in crate::model) fn starts(
        &self,
        state: &State,
        client: usize,
        node: usize,
        command: &Command,
    ) -> u8 {
        let model = self.model;
        let server = &state.servers[model.server_of(node)];
        if !model.fenced || server.counter.is_some() || !runs(model, server, client, command) {
            return 1;
        }
        match (model.fault, server.had) {
            (Some(Fault::CounterFromZero), Some(_)) => 1,
            (Some(Fault::RepairPutsFence), Some(_)) if matches!(command.verb, Verb::Repair { .. }) => 1,
            (_, Some(_)) => crate::model::actions::small(model.starts_again.len()),
            (_, None) => crate::model::actions::small(model.starts.len()),
        }
    }

    /// The largest number anywhere: of a counter, of a fence that was granted, or of one that is named.
    fn largest_number(&self, state: &State) -> u8 {
        let counters = state.servers.iter().flat_map(|server| [server.counter, server.had]).flatten();
        let named = state.slots.iter().flatten().filter_map(|slot| self.view(slot)?.fence).map(number);
        let links = (0..CLIENTS).flat_map(|client| (0..NODES).map(move |node| (client, node)));
        let sent = links.flat_map(|(client, node)| self.link(state, client, node).to_run()).map(|command| {
            match command.verb {
                Verb::Raise { fence } => number(fence),
                Verb::Set | Verb::Extend { .. } | Verb::Repair { .. } | Verb::Release => {
                    number(command.fence)
                }
            }
        });
        counters.chain(named).chain(sent).chain(state.fences).max().unwrap_or(0)
    }
}

/// Whether the script gets beyond its look at the key.
fn runs(model: &Model, server: &Server, client: usize, command: &Command) -> bool {
    let token = crate::model::state::token(client, command.attempt);
    match command.verb {
        Verb::Set => server.key.is_none(),
        Verb::Raise { .. } if model.fault == Some(Fault::RaisedBlindly) => true,
        Verb::Raise { .. } => server.key.is_some_and(|key| key.token == token),
        Verb::Repair { .. } => is_free_for(server.key, token),
        Verb::Extend { .. } | Verb::Release => false,
    }
}

/// A fence of the model is small: there are few attempts.
pub(super) fn number(fence: u64) -> u8 {
    u8::try_from(fence).unwrap_or(u8::MAX)
}

impl Step<'_, '_> {
    /// A fenced script that works on the counter: a SET, a raise or a repair.
    pub(super) fn run_fenced(
        &mut self,
        client: usize,
        node: usize,
        command: Command,
        late: bool,
        choice: u8,
    ) -> Answer {
        let at = self.world.model.server_of(node);
        if !runs(self.world.model, &self.state.servers[at], client, &command) {
            return Answer::No;
        }
        let mut counter = self.counter(at, command, choice);
        let ttl = match command.verb {
            Verb::Set => {
                counter += 1;
                Some(self.world.model.set_ttl())
            }
            Verb::Raise { fence } => {
                counter = counter.max(number(fence));
                None
            }
            Verb::Repair { ttl } => {
                counter = counter.max(number(command.fence));
                Some(ttl)
            }
            Verb::Extend { .. } | Verb::Release => None,
        };
        self.state.servers[at].counter = Some(counter);
        self.state.servers[at].had = None;
        if let (Some(ttl), None) = (ttl, self.state.servers[at].key) {
            self.set(client, node, command.attempt, ttl, late);
        }
        match command.verb {
            Verb::Set => Answer::Counters { lowest: counter.into(), highest: counter.into() },
            Verb::Extend { .. } | Verb::Repair { .. } | Verb::Raise { .. } | Verb::Release => Answer::Yes,
        }
    }

    /// The counter, started if it is not there.
    fn counter(&mut self, server: usize, command: Command, choice: u8) -> u8 {
        let model = self.world.model;
        let Server { counter, had, .. } = self.state.servers[server];
        if let Some(counter) = counter {
            return counter;
        }
        let Some(had) = had else { return model.starts[usize::from(choice)] };
        self.met(Met::CounterRestarted);
        if self.fault(Fault::CounterFromZero) {
            return 0;
        }
        if self.fault(Fault::RepairPutsFence) && matches!(command.verb, Verb::Repair { .. }) {
            return number(command.fence);
        }
        match model.starts_again[usize::from(choice)] {
            Start::Own => had,
            // What is on the links that this step has changed already is this command, taken off.
            Start::Ahead => self.world.largest_number(&self.state),
            Start::Granted => self.state.fences[0],
            Start::Behind => 0,
        }
    }
}
