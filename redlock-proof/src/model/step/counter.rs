//! A server's counter: what the fenced scripts do with it, and what they answer.
//!
//! A number of the model is the script's microseconds: what a clock says is chosen, within what is assumed of clocks, when
//! a counter is made.

use super::Step;
use crate::model::actions::{Mishap, small};
use crate::model::configs::{Model, Start};
use crate::model::faults::Fault;
use crate::model::properties::Met;
use crate::model::state::{Ask, CLIENTS, Command, NODES, Server, State, World, is_free_for};
use redlock_core::machine::{Answer, Verb};

impl World<'_> {
    /// What may have happened to the server before it executes the command, and what a counter may start from then.
    ///
    /// Keys and counters that are gone are looked at only where the command finds out: it is the same to have lost them
    /// later, or not at all, everywhere else.
    pub(in crate::model) fn ways(
        &self,
        state: &State,
        client: usize,
        node: usize,
        command: &Command,
    ) -> impl Iterator<Item = Mishap> {
        let model = self.model;
        let server = state.servers[model.server_of(node)];
        let token = self.token_of(client, command.attempt);
        let tells = server.key.is_some_and(|key| match command.asks {
            Ask::To(Verb::Set) => true,
            Ask::To(Verb::Repair { .. }) => key.token != token,
            Ask::To(Verb::Raise { .. } | Verb::Extend { .. }) | Ask::Look => key.token == token,
            Ask::To(Verb::Release) => false,
        });
        let forgets = model.expires && state.forgets < model.forgets && server.counter.is_some();
        let starts = [(false, false), (true, false), (false, true), (true, true)].map(|(key, counter)| {
            let after = Server { key: server.key.filter(|_| !key), ..server };
            let counts = model.fenced && runs(model, &after, token, command);
            let starts = match (counts, counter, server.counter) {
                _ if (key && !(tells && model.expires)) || (counter && !(counts && forgets)) => 0,
                (true, true, _) => match model.fault {
                    Some(Fault::CounterFromZero) => 1,
                    Some(Fault::RepairPutsFence) if matches!(command.asks, Ask::To(Verb::Repair { .. })) => 1,
                    Some(_) | None => small(model.starts_again.len()),
                },
                (true, false, None) => small(model.starts.len()),
                (true, false, Some(_)) | (false, ..) => 1,
            };
            (key, counter, starts)
        });
        starts
            .into_iter()
            .flat_map(|(key, counter, starts)| (0..starts).map(move |start| Mishap { key, counter, start }))
    }

    /// The largest number anywhere: of a counter, of a fence that was granted, or of one that is named.
    fn largest_number(&self, state: &State) -> u8 {
        let counters = state.servers.iter().filter_map(|server| server.counter);
        let named = state.slots.iter().flatten().filter_map(|slot| self.view(slot)?.fence).map(number);
        let links = (0..CLIENTS).flat_map(|client| (0..NODES).map(move |node| (client, node)));
        let sent = links.flat_map(|(client, node)| self.link(state, client, node).to_run()).map(|command| {
            match command.asks {
                Ask::To(Verb::Raise { fence }) => number(fence),
                Ask::To(Verb::Set | Verb::Extend { .. } | Verb::Repair { .. } | Verb::Release)
                | Ask::Look => number(command.fence),
            }
        });
        counters.chain(named).chain(sent).chain(state.fences).max().unwrap_or(0)
    }
}

/// Whether the script gets beyond its look at the key.
fn runs(model: &Model, server: &Server, token: u8, command: &Command) -> bool {
    match command.asks {
        Ask::To(Verb::Set) => server.key.is_none(),
        Ask::To(Verb::Raise { .. }) if model.fault == Some(Fault::RaisedBlindly) => true,
        Ask::To(Verb::Raise { .. }) => server.key.is_some_and(|key| key.token == token),
        Ask::To(Verb::Repair { .. }) => is_free_for(server.key, token),
        Ask::To(Verb::Extend { .. } | Verb::Release) | Ask::Look => false,
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
        after: Mishap,
    ) -> Answer {
        let at = self.world.model.server_of(node);
        let token = self.token_of(client, command.attempt);
        if !runs(self.world.model, &self.state.servers[at], token, &command) {
            return Answer::No;
        }
        let counter = self.counter(at, command, after);
        let (counter, ttl) = match command.asks {
            Ask::To(Verb::Set) => (counter + 1, Some(self.world.model.set_ttl())),
            Ask::To(Verb::Repair { ttl }) => (counter.max(number(command.fence)), Some(ttl)),
            Ask::To(Verb::Raise { fence }) => (counter.max(number(fence)), None),
            Ask::To(Verb::Extend { .. } | Verb::Release) | Ask::Look => (counter, None),
        };
        self.state.servers[at].counter = Some(counter);
        if let (Some(ttl), None) = (ttl, self.state.servers[at].key) {
            self.set(client, node, command.attempt, ttl, late);
        }
        if command.asks == Ask::To(Verb::Set) {
            Answer::Counters { lowest: counter.into(), highest: counter.into() }
        } else {
            Answer::Yes
        }
    }

    /// The counter, started if it is not there.
    fn counter(&mut self, server: usize, command: Command, after: Mishap) -> u8 {
        let model = self.world.model;
        let start = usize::from(after.start);
        let Some(counter) = self.state.servers[server].counter else { return model.starts[start] };
        if !after.counter {
            return counter;
        }
        self.state.forgets += 1;
        self.met(Met::CounterRestarted);
        match model.fault {
            Some(Fault::CounterFromZero) => return 0,
            Some(Fault::RepairPutsFence) if matches!(command.asks, Ask::To(Verb::Repair { .. })) => {
                return number(command.fence);
            }
            Some(_) | None => {}
        }
        match model.starts_again[start] {
            Start::Own => counter,
            // What this step has taken off a link is this command.
            Start::Ahead => self.world.largest_number(&self.state),
            Start::Granted => self.state.fences[0],
            Start::Behind => 0,
        }
    }
}
