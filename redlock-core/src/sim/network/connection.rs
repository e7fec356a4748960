//! One connection on the network.

use alloc::vec::Vec;

use super::{Delivery, Direction, Flow};
use crate::Instant;
use crate::sim::server::SessionId;

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// A wish for a connection; on the way back, its fulfilment.
    Open,
    Bytes(Vec<u8>),
    /// The end of the connection.
    Close,
    /// The client's own end gives up; no network is needed for that.
    Abort,
    /// The answer of a closed port.
    Refuse,
}

#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The server's side, once it is there.
    pub(super) session: Option<SessionId>,
    /// Nothing that arrives is told to the client any more.
    pub(super) client_is_gone: bool,
    pub(super) server_is_gone: bool,
    pub(super) to_server: Pipe,
    pub(super) to_client: Pipe,
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// When the last packet arrives, so that the next one does not overtake it.
    pub(super) last_arrival: Instant,
    /// Packets that wait for the flow to open.
    pub(super) held: Vec<Packet>,
    /// A packet was lost, so that nothing can arrive behind it.
    pub(super) is_broken: bool,
    /// How many bytes still get through.
    pub(super) cut_after: Option<usize>,
}

impl Connection {
    pub(super) const fn pipe(&mut self, direction: Direction) -> &mut Pipe {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }

    /// What the client is told of a packet.
    pub(super) fn at_client(&mut self, packet: Packet) -> Option<Delivery> {
        if self.client_is_gone {
            return None;
        }
        self.client_is_gone = matches!(packet, Packet::Close | Packet::Abort | Packet::Refuse);
        Some(match packet {
            Packet::Open => Delivery::Connected,
            Packet::Bytes(bytes) => Delivery::Bytes(bytes),
            Packet::Close | Packet::Abort => Delivery::Closed,
            Packet::Refuse => {
                self.server_is_gone = true;
                Delivery::Refused
            }
        })
    }

    pub(super) const fn is_done(&self) -> bool {
        self.client_is_gone && self.server_is_gone
    }
}

impl Pipe {
    /// What gets through of an arriving packet, and whether the connection is cut by it.
    pub(super) fn pass(&mut self, packet: Packet, flow: Flow) -> Option<(Packet, bool)> {
        if packet == Packet::Abort {
            return Some((packet, false));
        }
        if self.is_broken {
            return None;
        }
        match flow {
            Flow::Lost => {
                self.is_broken = true;
                return None;
            }
            Flow::Held => {
                self.held.push(packet);
                return None;
            }
            // What was sent before is still held, and comes first.
            Flow::Open if !self.held.is_empty() => {
                self.held.push(packet);
                return None;
            }
            Flow::Open => {}
        }
        match (packet, self.cut_after) {
            (Packet::Bytes(mut bytes), Some(room)) => {
                let is_cut = bytes.len() >= room;
                bytes.truncate(room);
                self.cut_after = (!is_cut).then(|| room.saturating_sub(bytes.len()));
                Some((Packet::Bytes(bytes), is_cut))
            }
            (packet, _) => Some((packet, false)),
        }
    }
}
