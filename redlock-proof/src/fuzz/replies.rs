//! A stream cut anywhere is the same stream: what the engine does with it does not depend on the cuts.

use super::check;
use super::nodes::{self, PASSWORD};
use super::rig::entropy;
use crate::simulate::Dice;
use core::fmt::Write as _;
use core::time::Duration;
use redlock_core::{AcquireRequest, Client, Config, ConnectionId, Instant, Output};

/// Feeds the bytes to one node's connection: whole, one by one, and cut as their first bytes say.
///
/// # Errors
///
/// Two of the three made a difference.
pub fn replies(bytes: &[u8]) -> Result<(), String> {
    let (head, stream) = bytes.split_at_checked(4).unwrap_or((bytes, &[]));
    let mut dice = Dice::bytes(head);
    let (stage, protocol, seed) = (dice.below(4), dice.below(2), dice.seed());
    let whole = feed(stage, protocol, core::iter::once(stream))?;
    let single = feed(stage, protocol, stream.chunks(1))?;
    check(whole == single, || format!("byte by byte: {}", difference(&whole, &single)))?;
    let cut = feed(stage, protocol, pieces(stream, seed).into_iter())?;
    check(whole == cut, || format!("cut: {}", difference(&whole, &cut)))
}

/// The first line that is another one, and what came before it.
fn difference(whole: &str, other: &str) -> String {
    let same = whole.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    let [one, other] = [whole, other].map(|text| text.lines().nth(same).unwrap_or("the end"));
    let before: Vec<&str> = whole.lines().take(same).collect();
    format!("{}\nwhole: {one}\nelse:  {other}", before.join("\n"))
}

fn pieces(mut stream: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut cuts = Dice::seeded(seed);
    let mut pieces = Vec::new();
    while !stream.is_empty() {
        let (piece, rest) = stream.split_at(1 + cuts.index(stream.len().min(40)));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

/// What the engine says to the pieces, as text.
fn feed<'a>(stage: u64, protocol: u64, pieces: impl Iterator<Item = &'a [u8]>) -> Result<String, String> {
    let config = Config::builder().nodes((0..3).map(|node| format!("redis://:{PASSWORD}@node{node}/1")));
    let config = config.build().map_err(|error| error.to_string())?;
    let mut client = Client::new(config, 7, Instant::ZERO);
    let mut connections = Vec::new();
    // Nodes 1 and 2 are well in any case; node 0 is as far as the stage says.
    for _ in 0..6 {
        answer(&mut client, &mut connections, stage, protocol)?;
    }
    let request =
        AcquireRequest::new("k", entropy(1)).ttl(Duration::from_secs(10)).wait(Duration::from_millis(200));
    client.acquire(request.auto_renew(Duration::MAX), now());
    client.acquire(AcquireRequest::all(["a", "b"], entropy(2)).try_once(), now());
    let mut text = String::new();
    drain(&mut client, &mut text);
    for piece in pieces {
        if let Some(connection) = connections.iter().find(|connection| connection.node.index() == 0) {
            client.handle_input(*connection, piece, now());
        }
    }
    drain(&mut client, &mut text);
    let mut wake_ups = 0;
    while let Some(due) = client.poll_timeout().filter(|due| due.at < Instant::from_secs(4)) {
        wake_ups += 1;
        check(wake_ups < 2_000, || format!("busy at {due:?}"))?;
        client.handle_timeout(due.at);
        drain(&mut client, &mut text);
    }
    Ok(text)
}

const fn now() -> Instant {
    Instant::from_millis(1)
}

fn answer(
    client: &mut Client,
    connections: &mut Vec<ConnectionId>,
    stage: u64,
    protocol: u64,
) -> Result<(), String> {
    let mut outputs = Vec::new();
    while let Some(output) = client.poll_output() {
        outputs.push(output);
    }
    for output in outputs {
        match output {
            Output::Connect { connection, .. } => {
                connections.push(connection);
                client.handle_connected(connection, now());
            }
            Output::Transmit { connection, payload } => {
                for command in nodes::commands(&payload)? {
                    let node = connection.node.index();
                    let is_hello = command.first().is_some_and(|verb| verb == b"HELLO");
                    let answers = match stage {
                        0 => false,
                        1 => is_hello,
                        _ => true,
                    };
                    if node > 0 || answers {
                        // The last of the dialects, or the one without HELLO.
                        let choice = if is_hello && protocol == 0 { 0 } else { 4 };
                        client.handle_input(
                            connection,
                            &nodes::honest(&command, node, choice, b"_\r\n"),
                            now(),
                        );
                    }
                }
            }
            Output::Disconnect { .. } | Output::Event(_) => {}
        }
    }
    Ok(())
}

fn drain(client: &mut Client, text: &mut String) {
    while let Some(output) = client.poll_output() {
        let written = match &output {
            Output::Transmit { connection, payload } => {
                writeln!(text, "{connection:?} {}", payload.escape_ascii())
            }
            Output::Event(event) => writeln!(text, "{}", without_excerpts(&format!("{event:?}"))),
            Output::Connect { .. } | Output::Disconnect { .. } => writeln!(text, "{output:?}"),
        };
        debug_assert!(written.is_ok(), "a string takes everything");
    }
}

/// A stream that breaks the protocol is shown as far as it had arrived: that much may differ.
fn without_excerpts(event: &str) -> String {
    let mut text = String::new();
    let mut rest = event;
    while let Some((before, excerpt)) = rest.split_once(": \\\"") {
        text.push_str(before);
        rest = excerpt.split_once("\\\"\")").map_or("", |(_, behind)| behind);
    }
    text.push_str(rest);
    text
}
