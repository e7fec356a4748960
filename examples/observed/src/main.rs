//! A client that is watched: logs by `tracing`, metrics for Prometheus.
//!
//! `cargo run -p observed` serves metrics at <http://127.0.0.1:9464/metrics> and writes its log, while tasks take locks on
//! simulated nodes of which one dies and comes back now and then. It needs no server; with `REDLOCK_NODES` set it uses those.
//! `observed 0` takes a free port. It goes on until Ctrl-C.
//!
//! To see the dashboard: `prometheus --config.file=examples/observed/prometheus.yml`, and import `dashboard.json` in Grafana.

use core::error::Error;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use metrics_exporter_prometheus::PrometheusBuilder;
use redlock_core::sim::{Dialect, Memory, Server, TcpNode};
use redlock_tokio::Redlock;
use std::io::{Write as _, stderr};
use std::net::TcpListener;
use std::{env, io};
use tokio::time::sleep;
use tracing_subscriber::fmt;

type Failure = Box<dyn Error + Send + Sync>;

/// What most exporters use as the default port of a program of one's own.
const PORT: u16 = 9464;

/// For latencies of a lock: from a round trip within a rack to the longest waits.
const BUCKETS: [f64; 12] = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    fmt().with_writer(stderr).with_target(true).init();

    // The recorder first: series start at zero with the client.
    let address = free(env::args().nth(1).map_or(Ok(PORT), |port| port.parse())?)?;
    PrometheusBuilder::new().set_buckets(&BUCKETS)?.with_http_listener(address).install()?;
    writeln!(io::stdout(), "metrics at http://{address}/metrics")?;

    let (urls, nodes) = match env::var("REDLOCK_NODES") {
        Ok(list) => (list.split(',').map(str::to_owned).collect(), Vec::new()),
        Err(_) => simulated_nodes()?,
    };
    // Two clients: within one, waiters queue, and none loses a round to another.
    let redlocks = [Redlock::connect(&urls).await?, Redlock::connect(&urls).await?];
    for (worker, redlock) in (0..8).zip(redlocks.iter().cycle()) {
        tokio::spawn(work(redlock.clone(), worker));
    }
    tokio::select! {
        () = trouble(nodes) => {}
        stopped = tokio::signal::ctrl_c() => stopped?,
    }
    for redlock in redlocks {
        redlock.close().await;
    }
    Ok(())
}

/// Takes one of three locks after the other, and works for a while. Now and then it gives up waiting, or extends.
async fn work(redlock: Redlock, worker: u64) {
    for round in worker.. {
        let resource = format!("shelf:{}", round % 3);
        let acquire =
            redlock.acquire(&resource).ttl(Duration::from_millis(600)).wait(Duration::from_millis(80));
        let acquire = if round % 4 == 0 { acquire.auto_renew(Duration::from_secs(5)) } else { acquire };
        if let Ok(guard) = acquire.await {
            sleep(Duration::from_millis(10 + 7 * (round % 11))).await;
            if round % 5 == 0 {
                // Its outcome is in the metrics, which is all that this is about.
                let _extended = guard.extend(Duration::from_millis(600)).await;
            }
            let _released = guard.release().await;
        } else if redlock.is_closed() {
            return;
        }
        sleep(Duration::from_millis(5)).await;
    }
}

/// One node after the other dies, and comes back without its memory.
async fn trouble(nodes: Vec<TcpNode>) {
    if nodes.is_empty() {
        return core::future::pending().await;
    }
    for node in nodes.iter().cycle() {
        sleep(Duration::from_secs(4)).await;
        node.kill();
        sleep(Duration::from_secs(1)).await;
        if node.revive(Memory::Lose).is_err() {
            return;
        }
    }
}

fn simulated_nodes() -> io::Result<(Vec<String>, Vec<TcpNode>)> {
    let start = |number| TcpNode::start(Server::new(Dialect::Redis7, number));
    let nodes: Vec<TcpNode> = (0..5).map(start).collect::<io::Result<_>>()?;
    Ok((nodes.iter().map(|node| format!("redis://{}", node.addr())).collect(), nodes))
}

/// The port, or a free one for 0: the exporter does not say which one it got.
fn free(port: u16) -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))?.local_addr()
}
