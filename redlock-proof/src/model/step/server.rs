//! The servers: what they execute, keep and forget.

use super::Step;
use crate::model::actions::{Mishap, ends, small};
use crate::model::properties::Met;
use crate::model::state::{Ask, Command, Forgot, Key, Up, is_of, token};
use core::time::Duration;
use redlock_core::machine::{Answer, Verb};

impl Step<'_, '_> {
    pub(super) fn token_of(&self, client: usize, attempt: u8) -> u8 {
        self.world.token_of(client, attempt)
    }

    pub(super) fn run(
        &mut self,
        client: usize,
        node: usize,
        command: Command,
        late: bool,
        after: Mishap,
    ) -> Answer {
        let server = self.world.model.server_of(node);
        if after.key {
            self.state.servers[server].key = None;
        }
        let verb = match command.asks {
            Ask::To(verb) => verb,
            Ask::Look => return self.look(server, client, command),
        };
        let counts = matches!(verb, Verb::Set | Verb::Raise { .. } | Verb::Repair { .. });
        if self.world.model.fenced && counts {
            let answer = self.run_fenced(client, node, command, late, after);
            if late && answer != Answer::No {
                self.met(Met::LateRan);
            }
            let overtaken = u64::from(self.state.fences[0]) > command.fence;
            if matches!(verb, Verb::Repair { .. }) && answer != Answer::No && overtaken {
                self.met(Met::LateRepair);
            }
            return answer;
        }
        let token = self.token_of(client, command.attempt);
        let key = self.state.servers[server].key;
        let mine = key.is_some_and(|key| key.token == token);
        let changed = match verb {
            Verb::Set => {
                key.is_none() && self.set(client, node, command.attempt, self.world.model.set_ttl(), late)
            }
            Verb::Repair { ttl } => key.is_none() && self.set(client, node, command.attempt, ttl, late),
            Verb::Extend { ttl, .. } => {
                let until = self.until(ttl);
                if let (true, Some(key)) = (mine, &mut self.state.servers[server].key) {
                    key.until = until;
                }
                mine
            }
            // Nobody but a fenced claim raises.
            Verb::Raise { .. } => false,
            Verb::Release => {
                if mine {
                    self.state.servers[server].key = None;
                }
                mine
            }
        };
        if changed && late {
            self.met(Met::LateRan);
        }
        if changed { Answer::Yes } else { Answer::No }
    }

    /// Whether the key has the token.
    fn look(&self, server: usize, client: usize, command: Command) -> Answer {
        let token = self.token_of(client, command.attempt);
        let there = self.state.servers[server].key.is_some_and(|key| key.token == token);
        if there { Answer::Yes } else { Answer::No }
    }

    pub(super) fn until(&self, ttl: Duration) -> u16 {
        if self.world.model.expires {
            // It is there until it is gone.
            return 0;
        }
        let until = u128::from(self.state.now_ms()) + ttl.as_millis();
        u16::try_from(until).unwrap_or(u16::MAX)
    }

    pub(super) fn set(&mut self, client: usize, node: usize, attempt: u8, ttl: Duration, late: bool) -> bool {
        let server = self.world.model.server_of(node);
        let token = self.token_of(client, attempt);
        if self.world.model.expires {
            self.state.servers[server].key = Some(Key { token, until: self.until(ttl), orphan: false });
            return true;
        }
        let view = self.world.view(&self.state.slots[client][usize::from(attempt)]);
        let cleaned = view.is_none_or(|view| view.ended && !view.owes[node]);
        let release = Command { attempt, asks: Ask::To(Verb::Release), fence: 0 };
        let link = self.peek(client, node);
        let orphan = late && cleaned && !link.outbox.contains(&release) && !link.sent.contains(&release);
        if orphan {
            self.met(Met::Orphan);
        }
        if let Some(forgot) = self.state.servers[server].forgot {
            let owner = &self.state.slots[usize::from(forgot.client)][usize::from(forgot.attempt)];
            let lives = self.world.view(owner).is_some_and(|view| !view.ended);
            if usize::from(forgot.client) == client && forgot.attempt == attempt {
                self.state.servers[server].forgot = None;
            } else if lives && !is_of(token, forgot.client.into()) && self.world.model.excuses {
                self.broken = true;
                self.met(Met::AssumptionBroken);
            }
        }
        self.state.servers[server].key = Some(Key { token, until: self.until(ttl), orphan });
        true
    }

    pub(super) fn forget(&mut self, server: usize) {
        let Some(key) = self.state.servers[server].key.take() else { return };
        let client = usize::from(!is_of(key.token, 0));
        let attempt = key.token - token(client, 0);
        self.state.servers[server].forgot = Some(Forgot { client: small(client), attempt, until: key.until });
    }

    pub(super) fn restart(&mut self, server: usize) {
        self.forget(server);
        let model = self.world.model;
        if model.quarantine {
            self.state.servers[server].quarantined_until = self.state.time + model.longest();
        }
        let to = model.break_to.first().copied().unwrap_or(Up::Down);
        for (client, node) in ends().filter(|(_, node)| model.server_of(*node) == server) {
            self.break_link(client, node, to, false);
            // Nor does it execute what older connections left.
            self.link(client, node).late.clear();
        }
    }
}
