//! R26 for operators: no password and no token is in any log, at any level, nor in any metric, event or debug text.

#![expect(clippy::std_instead_of_alloc, reason = "a test")]

use core::error::Error;
use core::fmt::Write as _;
use core::time::Duration;
use metrics_exporter_prometheus::PrometheusBuilder;
use redlock_core::sim::{Dialect, Memory, Server, TcpNode};
use redlock_tokio::Redlock;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::sleep;

const PASSWORD: &str = "correct-horse";
const WRONG: &str = "battery-staple";
/// Of a token: 128 bits of entropy, and 32 that count the attempts.
const DIGITS: usize = 40;

/// All that was written to it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a value starts with is the token, in hexadecimal digits. The names of scripts look the same, and are in no log either.
fn is_token(word: &[u8]) -> bool {
    word.get(..DIGITS).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

#[tokio::test]
async fn r26_operators_see_no_password_and_no_token() -> Result<(), Box<dyn Error>> {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_span_events(tracing_subscriber::fmt::format::FmtSpan::FULL)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .init();
    let metrics = PrometheusBuilder::new().install_recorder()?;

    let server = |seed| Server::new(Dialect::Redis7, seed).with_password(PASSWORD);
    let nodes: Vec<TcpNode> = (0..3).map(|seed| TcpNode::start(server(seed))).collect::<io::Result<_>>()?;
    let url = |node: &TcpNode, password: &str| format!("redis://:{password}@{}", node.addr());
    // One of three has another password.
    let [first, second, third] = nodes.as_slice() else { return Err("three nodes".into()) };
    let urls = [url(first, PASSWORD), url(second, PASSWORD), url(third, WRONG)];
    let redlock = Redlock::connect(&urls).await?;
    let other = Redlock::connect(&urls).await?;
    let mut events = redlock.events();
    let mut seen = String::new();

    // A lock that is taken, refused to another, extended, renewed, and released; one that is lost; one that cannot be had.
    let ttl = Duration::from_millis(300);
    let guard = redlock.acquire("door").ttl(ttl).fenced().auto_renew(Duration::from_secs(60)).await?;
    let refused = other.acquire("door").wait(Duration::from_millis(50)).await;
    write!(seen, "{guard:?} {refused:?} {:?} {:?}", guard.votes(), redlock.nodes())?;
    sleep(Duration::from_millis(350)).await;
    write!(seen, "{:?} {:?}", guard.extend(ttl).await, guard.release().await)?;
    let guard = redlock.acquire("window").ttl(ttl).await?;
    let mut tokens = first.with(|server, _| {
        let words = server.log().iter().flat_map(|entry| entry.args.clone());
        let tokens =
            words.filter(|word| is_token(word)).map(|word| String::from_utf8_lossy(&word).into_owned());
        tokens.collect::<Vec<_>>()
    });
    tokens.sort();
    tokens.dedup();
    first.kill();
    let refused = redlock.acquire("window").wait(Duration::from_millis(400)).await;
    write!(
        seen,
        "{refused:?} {} {:?}",
        refused.as_ref().map_or_else(ToString::to_string, |_| String::new()),
        guard
    )?;
    first.revive(Memory::Lose)?;
    drop(guard);
    redlock.close().await;
    other.close().await;
    while let Some(event) = events.next().await {
        write!(seen, "{event:?}")?;
    }

    let texts = [log.text(), metrics.render(), seen];
    assert!(tokens.len() >= 3, "{tokens:?}");
    for text in &texts {
        assert!(text.len() > 1000, "{text}");
        for secret in [PASSWORD, WRONG].into_iter().chain(tokens.iter().map(String::as_str)) {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    let [log, metrics, _] = &texts;
    for said in [
        "redlock.acquire{resource=door}",
        "redlock: acquired",
        "redlock: lost",
        "login refused",
        "redlock: renewed",
    ] {
        assert!(log.contains(said), "{said} is not in {log}");
    }
    assert!(metrics.contains("redlock_lost_total{reason=\"expired\"} 1"), "{metrics}");
    assert!(metrics.contains("redlock_held 0") && metrics.contains("redlock_waiters 0"), "{metrics}");
    Ok(())
}
