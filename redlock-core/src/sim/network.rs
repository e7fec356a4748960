//! The network between engines and nodes: seeded, in virtual time, with every fault that TCP can have.

mod connection;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use self::connection::{Connection, Packet, Pipe};
use super::random::Random;
use super::server::{Server, SessionId};
use crate::{ConnectionId, Instant, NodeId};

/// How the packets between one client and one node fare. The default is a good network: 500 µs each way, no faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The time that a packet takes, each way.
    pub latency: Duration,
    /// So much more at most, drawn anew for every packet; the order on a connection is kept all the same.
    pub jitter: Duration,
    /// What happens to packets on the way to the node.
    pub to_server: Flow,
    /// What happens to packets on the way to the client.
    pub to_client: Flow,
    /// What happens to attempts to connect.
    pub connects: Connects,
    /// Whether payloads arrive in pieces, cut anywhere.
    pub fragments: bool,
    /// What a connection still holds when its client gives it up arrives so much later at most: up to the end of some
    /// queue on the way, after other connections were made and used.
    pub late: Duration,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            latency: Duration::from_micros(500),
            jitter: Duration::ZERO,
            to_server: Flow::Open,
            to_client: Flow::Open,
            connects: Connects::Normal,
            fragments: false,
            late: Duration::ZERO,
        }
    }
}

/// What happens to packets in one direction, decided when they arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Flow {
    /// They arrive.
    #[default]
    Open,
    /// They wait, and arrive in order when the flow is open again: a partition that TCP survives by sending again.
    Held,
    /// They are lost. A connection that lost one never delivers anything in this direction again: it is half-open, and
    /// neither end is told.
    Lost,
}

/// What happens to attempts to connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Connects {
    /// They succeed if the node is up, else they are refused.
    #[default]
    Normal,
    /// They are refused, whatever the node does.
    Refused,
    /// They get no answer, ever.
    Swallowed,
}

/// One of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the client to the node.
    ToServer,
    /// From the node to the client.
    ToClient,
}

/// Something that arrives at a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// At which client.
    pub client: usize,
    /// On which of its connections.
    pub connection: ConnectionId,
    /// What.
    pub what: Delivery,
}

/// What arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The connection is made.
    Connected,
    /// Bytes from the node.
    Bytes(Vec<u8>),
    /// The connection was refused.
    Refused,
    /// The node, or something on the way, closed the connection.
    Closed,
}

/// A deterministic network that carries bytes between clients and [`Server`]s.
///
/// It knows nothing of engines: a client is a number, and what it sends are bytes. [`World`](super::World) connects it to
/// [`Client`](crate::Client)s; with an engine, a node or a loop of your own:
///
/// 1. Say what the client wants: [`connect`](Self::connect), [`send`](Self::send), [`disconnect`](Self::disconnect).
/// 2. Move your clock to [`next_due`](Self::next_due), and not beyond what your client's own timers say.
/// 3. [`deliver`](Self::deliver), and hand what arrives to the client.
///
/// ```
/// use redlock_core::sim::{Delivery, Dialect, Network, Server};
/// use redlock_core::{ConnectionId, Instant, NodeId};
///
/// let mut servers = [Server::new(Dialect::Redis7, 1)];
/// let mut network = Network::new(42);
/// let connection = ConnectionId { node: NodeId::new(0), generation: 1 };
/// network.connect(0, connection, Instant::ZERO);
/// let mut heard = Vec::new();
/// while let Some(now) = network.next_due(&servers) {
///     for arrival in network.deliver(&mut servers, now) {
///         match arrival.what {
///             Delivery::Connected => network.send(0, connection, b"PING\r\n", now),
///             Delivery::Bytes(bytes) => heard.extend(bytes),
///             Delivery::Refused | Delivery::Closed => {}
///         }
///     }
/// }
/// assert_eq!(heard, b"+PONG\r\n");
/// ```
#[derive(Debug)]
pub struct Network {
    random: Random,
    default_link: Link,
    links: BTreeMap<(usize, NodeId), Link>,
    /// Which server a client's node is, where it is not the one of the same index.
    routes: BTreeMap<(usize, NodeId), usize>,
    connections: BTreeMap<(usize, ConnectionId), Connection>,
    /// What is on the way, by when it arrives and in which order it was sent.
    flying: BTreeMap<(Instant, u64), (Address, Packet)>,
    next_packet: u64,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    client: usize,
    connection: ConnectionId,
    direction: Direction,
}

/// # Setting up
impl Network {
    /// A good network between everyone. The seed decides jitter, pieces and lateness.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            default_link: Link {
                latency: Duration::from_micros(500),
                jitter: Duration::ZERO,
                to_server: Flow::Open,
                to_client: Flow::Open,
                connects: Connects::Normal,
                fragments: false,
                late: Duration::ZERO,
            },
            links: BTreeMap::new(),
            routes: BTreeMap::new(),
            connections: BTreeMap::new(),
            flying: BTreeMap::new(),
            next_packet: 0,
        }
    }

    /// Sets the link of all pairs that have none of their own. What is held by an open flow arrives.
    pub fn set_default_link(&mut self, link: Link, now: Instant) {
        self.default_link = link;
        self.release_held(now);
    }

    /// Sets the link between a client and a node. What is held by a flow that is open now arrives.
    pub fn set_link(&mut self, client: usize, node: NodeId, link: Link, now: Instant) {
        self.links.insert((client, node), link);
        self.release_held(now);
    }

    /// The link between a client and a node.
    #[must_use]
    pub fn link(&self, client: usize, node: NodeId) -> &Link {
        self.links.get(&(client, node)).unwrap_or(&self.default_link)
    }

    /// Lets a client's node be the server of another index: another order of addresses, or two names of one server.
    pub fn set_route(&mut self, client: usize, node: NodeId, server: usize) {
        self.routes.insert((client, node), server);
    }

    fn server_of(&self, client: usize, node: NodeId) -> usize {
        self.routes.get(&(client, node)).copied().unwrap_or_else(|| node.index())
    }
}

/// # What clients do
impl Network {
    /// The client wants a connection. The answer arrives later, or never.
    pub fn connect(&mut self, client: usize, connection: ConnectionId, now: Instant) {
        self.connections.insert((client, connection), Connection::default());
        self.fly(Address { client, connection, direction: Direction::ToServer }, Packet::Open, now);
    }

    /// The client writes.
    pub fn send(&mut self, client: usize, connection: ConnectionId, bytes: &[u8], now: Instant) {
        let is_open = self.connections.get(&(client, connection)).is_some_and(|c| !c.client_is_gone);
        if is_open {
            let to = Address { client, connection, direction: Direction::ToServer };
            self.fly_bytes(to, bytes.to_vec(), now);
        }
    }

    /// The client closes the connection, or gives up making it. What it has written still arrives, and perhaps late.
    pub fn disconnect(&mut self, client: usize, connection: ConnectionId, now: Instant) {
        let Some(known) = self.connections.get_mut(&(client, connection)) else { return };
        if !known.client_is_gone {
            known.client_is_gone = true;
            self.delay_flying(client, connection);
            self.fly(Address { client, connection, direction: Direction::ToServer }, Packet::Close, now);
        }
    }

    /// The client's process ends: all its connections are closed as by [`disconnect`](Self::disconnect).
    pub fn disconnect_all(&mut self, client: usize, now: Instant) {
        let connections: Vec<ConnectionId> = self
            .connections
            .keys()
            .filter(|(of, _)| *of == client)
            .map(|(_, connection)| *connection)
            .collect();
        for connection in connections {
            self.disconnect(client, connection, now);
        }
    }
}

/// # Faults
///
/// Each is about the newest connection between a client and a node; without one nothing happens.
impl Network {
    /// Something on the way breaks the connection: both ends are told, and what is under way is lost.
    pub fn reset(&mut self, client: usize, node: NodeId, now: Instant) {
        if let Some(connection) = self.newest(client, node) {
            self.break_connection(client, connection, now);
        }
    }

    /// The client is told at once that the connection is gone, but what it has written still arrives, and perhaps late.
    pub fn strand(&mut self, client: usize, node: NodeId, now: Instant) {
        if let Some(connection) = self.newest(client, node) {
            self.delay_flying(client, connection);
            self.flying.retain(|_, (to, _)| {
                (to.client, to.connection, to.direction) != (client, connection, Direction::ToClient)
            });
            let back = Address { client, connection, direction: Direction::ToClient };
            self.enqueue(now, back, Packet::Abort);
            self.fly(Address { direction: Direction::ToServer, ..back }, Packet::Close, now);
        }
    }

    /// Everything on the connection is lost from now on, both ways, and neither end is told.
    pub fn half_open(&mut self, client: usize, node: NodeId) {
        if let Some(connection) = self.newest(client, node) {
            self.lose(client, connection);
            if let Some(connection) = self.connections.get_mut(&(client, connection)) {
                connection.to_server.is_broken = true;
                connection.to_client.is_broken = true;
            }
        }
    }

    /// Lets so many more bytes through in this direction, then breaks the connection as [`reset`](Self::reset) does.
    pub fn cut_after(&mut self, client: usize, node: NodeId, direction: Direction, bytes: usize) {
        if let Some(connection) = self.newest(client, node)
            && let Some(connection) = self.connections.get_mut(&(client, connection))
        {
            connection.pipe(direction).cut_after = Some(bytes);
        }
    }

    /// The newest connection between the two that the client has not closed.
    #[must_use]
    pub fn newest(&self, client: usize, node: NodeId) -> Option<ConnectionId> {
        let connections = self.connections.iter().filter(|((of, connection), known)| {
            *of == client && connection.node == node && !known.client_is_gone
        });
        connections.map(|((_, connection), _)| *connection).max()
    }

    /// What the client's end of a connection has sent gets stuck somewhere for a while.
    fn delay_flying(&mut self, client: usize, connection: ConnectionId) {
        let late = self.random.span(self.link(client, connection.node).late);
        let to = Address { client, connection, direction: Direction::ToServer };
        for (at, packet) in self.take_flying(to) {
            self.fly_at(at.saturating_add(late), to, packet);
        }
    }
}

/// # Time
impl Network {
    /// When something happens next: a packet arrives, or a server has something to say by itself.
    #[must_use]
    pub fn next_due(&self, servers: &[Server]) -> Option<Instant> {
        let packet = self.flying.first_key_value().map(|((at, _), _)| *at);
        packet.into_iter().chain(servers.iter().filter_map(Server::next_event)).min()
    }

    /// Takes note of what was done to servers, such as a restart: what they say and close because of it goes on its way.
    pub fn notice(&mut self, servers: &mut [Server], now: Instant) {
        self.collect(servers, None, now);
    }

    /// Lets everything happen that is due at `now` or before, each thing at its own instant and in order. What arrives at
    /// clients is the result.
    pub fn deliver(&mut self, servers: &mut [Server], now: Instant) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        loop {
            let packet = self.flying.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= now);
            let event = servers.iter().filter_map(Server::next_event).min().filter(|at| *at <= now);
            match (packet, event) {
                (None, None) => return arrivals,
                (packet, Some(at)) if packet.is_none_or(|packet| at <= packet) => {
                    for server in servers.iter_mut() {
                        server.tick(at);
                    }
                    self.collect(servers, None, at);
                }
                (_, _) => {
                    let Some(((at, _), (to, packet))) = self.flying.pop_first() else { return arrivals };
                    self.arrive(to, packet, servers, &mut arrivals, at);
                    let server = self.server_of(to.client, to.connection.node);
                    if to.direction == Direction::ToServer
                        && servers.get(server).is_some_and(Server::is_pending)
                    {
                        self.collect(servers, Some(server), at);
                    }
                }
            }
        }
    }

    fn arrive(
        &mut self,
        to: Address,
        packet: Packet,
        servers: &mut [Server],
        arrivals: &mut Vec<Arrival>,
        at: Instant,
    ) {
        let link = self.link(to.client, to.connection.node);
        let connects = link.connects;
        let flow = match to.direction {
            Direction::ToServer => link.to_server,
            Direction::ToClient => link.to_client,
        };
        let server = self.server_of(to.client, to.connection.node);
        let Some(connection) = self.connections.get_mut(&(to.client, to.connection)) else { return };
        let Some((packet, is_cut)) = connection.pipe(to.direction).pass(packet, flow) else { return };
        match to.direction {
            Direction::ToServer => {
                if let Some(server) = servers.get_mut(server) {
                    self.at_server(to, packet, connects, server, at);
                }
            }
            Direction::ToClient => {
                arrivals.extend(connection.at_client(packet).map(|what| Arrival {
                    at,
                    client: to.client,
                    connection: to.connection,
                    what,
                }));
            }
        }
        if is_cut {
            self.break_connection(to.client, to.connection, at);
        }
        self.forget_if_done(to);
    }

    fn at_server(
        &mut self,
        to: Address,
        packet: Packet,
        connects: Connects,
        server: &mut Server,
        at: Instant,
    ) {
        let back = Address { direction: Direction::ToClient, ..to };
        let Some(connection) = self.connections.get_mut(&(to.client, to.connection)) else { return };
        match (packet, connection.session) {
            (Packet::Open, _) => match connects {
                Connects::Swallowed => {}
                Connects::Normal if server.is_up() => {
                    connection.session = Some(server.open(at));
                    self.fly(back, Packet::Open, at);
                }
                Connects::Normal | Connects::Refused => self.fly(back, Packet::Refuse, at),
            },
            (Packet::Bytes(bytes), Some(session)) => server.receive(session, &bytes, at),
            (Packet::Close, Some(session)) => {
                server.hang_up(session);
                connection.session = None;
                connection.server_is_gone = true;
            }
            (Packet::Close, None) => connection.server_is_gone = true,
            (Packet::Bytes(_) | Packet::Abort | Packet::Refuse, _) => {}
        }
    }

    /// Takes what servers have to say, and notes where they have hung up.
    fn collect(&mut self, servers: &mut [Server], only: Option<usize>, at: Instant) {
        let open: Vec<(Address, SessionId)> = self
            .connections
            .iter()
            .filter_map(|((client, connection), known)| {
                let to = Address { client: *client, connection: *connection, direction: Direction::ToClient };
                Some((to, known.session?))
            })
            .collect();
        for (to, session) in open {
            let index = self.server_of(to.client, to.connection.node);
            if only.is_some_and(|only| only != index) {
                continue;
            }
            let Some(server) = servers.get_mut(index) else { continue };
            let bytes = server.output(session);
            if !bytes.is_empty() {
                self.fly_bytes(to, bytes, at);
            }
            if server.wants_close(session) {
                server.hang_up(session);
                if let Some(connection) = self.connections.get_mut(&(to.client, to.connection)) {
                    connection.session = None;
                    connection.server_is_gone = true;
                }
                self.fly(to, Packet::Close, at);
            }
        }
    }

    /// Both ends are told that the connection is gone, and nothing else arrives.
    fn break_connection(&mut self, client: usize, connection: ConnectionId, at: Instant) {
        self.lose(client, connection);
        for direction in [Direction::ToServer, Direction::ToClient] {
            self.fly(Address { client, connection, direction }, Packet::Close, at);
        }
    }

    /// Drops everything that is on the way on a connection.
    fn lose(&mut self, client: usize, connection: ConnectionId) {
        self.flying.retain(|_, (to, _)| (to.client, to.connection) != (client, connection));
        if let Some(known) = self.connections.get_mut(&(client, connection)) {
            known.to_server.held.clear();
            known.to_client.held.clear();
        }
    }

    /// What waited for a flow that is open now goes on, and what is on the way behind it stays behind it.
    fn release_held(&mut self, now: Instant) {
        let mut released = Vec::new();
        for ((client, id), connection) in &mut self.connections {
            let link = self.links.get(&(*client, id.node)).unwrap_or(&self.default_link);
            for (direction, flow) in
                [(Direction::ToServer, link.to_server), (Direction::ToClient, link.to_client)]
            {
                let pipe = connection.pipe(direction);
                if flow == Flow::Open && !pipe.held.is_empty() {
                    pipe.last_arrival = now;
                    released.push((
                        Address { client: *client, connection: *id, direction },
                        pipe.held.split_off(0),
                    ));
                }
            }
        }
        for (to, held) in released {
            let behind = self.take_flying(to);
            for packet in held {
                self.fly(to, packet, now);
            }
            for (at, packet) in behind {
                self.fly_at(at, to, packet);
            }
        }
    }

    /// Takes everything off the way to `to`, in order.
    fn take_flying(&mut self, to: Address) -> Vec<(Instant, Packet)> {
        let keys = self.flying.iter().filter(|(_, (of, _))| *of == to).map(|(key, _)| *key);
        let keys: Vec<(Instant, u64)> = keys.collect();
        keys.iter().filter_map(|key| Some((key.0, self.flying.remove(key)?.1))).collect()
    }

    fn fly_bytes(&mut self, to: Address, bytes: Vec<u8>, now: Instant) {
        if !self.link(to.client, to.connection.node).fragments {
            if !bytes.is_empty() {
                self.fly(to, Packet::Bytes(bytes), now);
            }
            return;
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let most = u64::try_from(rest.len()).unwrap_or(u64::MAX);
            let length = self.random.below(most).saturating_add(1);
            let (piece, behind) =
                rest.split_at(usize::try_from(length).unwrap_or(rest.len()).min(rest.len()));
            self.fly(to, Packet::Bytes(piece.to_vec()), now);
            rest = behind;
        }
    }

    /// Sends a packet, to arrive after those before it on its connection.
    fn fly(&mut self, to: Address, packet: Packet, now: Instant) {
        let link = self.link(to.client, to.connection.node);
        let (latency, jitter) = (link.latency, link.jitter);
        let at = now.saturating_add(latency).saturating_add(self.random.span(jitter));
        self.fly_at(at, to, packet);
    }

    /// As [`fly`](Self::fly), to arrive at `at` if nothing before it takes longer.
    fn fly_at(&mut self, at: Instant, to: Address, packet: Packet) {
        let Some(connection) = self.connections.get_mut(&(to.client, to.connection)) else { return };
        let pipe: &mut Pipe = connection.pipe(to.direction);
        pipe.last_arrival = pipe.last_arrival.max(at);
        let at = pipe.last_arrival;
        self.enqueue(at, to, packet);
    }

    fn enqueue(&mut self, at: Instant, to: Address, packet: Packet) {
        self.flying.insert((at, self.next_packet), (to, packet));
        self.next_packet = self.next_packet.saturating_add(1);
    }

    /// A connection that both ends have done with leaves no trace.
    fn forget_if_done(&mut self, of: Address) {
        let key = (of.client, of.connection);
        if self.connections.get(&key).is_some_and(Connection::is_done) {
            self.connections.remove(&key);
            self.flying.retain(|_, (to, _)| (to.client, to.connection) != key);
        }
    }
}
