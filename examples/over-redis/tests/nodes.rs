//! The driver against simulated nodes and against every real server that is found, beside a client that is no example.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

#[path = "../../../redlock-blocking/tests/suite/mod.rs"]
mod suite;

use over_redis::{Locks, now, request};
use redlock_blocking::Redlock;
use redlock_core::sim::{Dialect, Server, TcpNode};
use redlock_core::{AcquireError, Config, ConfigBuilder, LostReason, NodeOutcome, ReleaseOutcome};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use suite::cluster::{Cluster, Real, Simulated, programs};
use suite::{Make, eventually};

const SECOND: Duration = Duration::from_secs(1);

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

/// With simulated nodes, and with those of every real server.
fn on_all(count: usize, test: impl AsyncFn(&dyn Cluster)) {
    let mut kinds: Vec<Box<Make<'_>>> = vec![Box::new(Simulated::start)];
    for program in programs() {
        kinds.push(Box::new(|count| Real::start(program, count)));
    }
    for make in kinds {
        let cluster = make(count);
        run(test(&*cluster));
    }
}

fn locks_of(urls: &[String], config: ConfigBuilder) -> Locks {
    let clients: Vec<_> = urls.iter().map(|url| redis::Client::open(url.as_str()).unwrap()).collect();
    let quick = config.retry_delay(Duration::from_millis(5), Duration::from_millis(20));
    Locks::over(&clients, quick).unwrap()
}

fn locks(cluster: &dyn Cluster) -> Locks {
    locks_of(&cluster.urls(), Config::builder())
}

async fn idle_until(done: impl Fn() -> bool) {
    let start = now();
    while !done() {
        assert!(now().saturating_duration_since(start) < 10 * SECOND, "not after ten seconds");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Drives it for a while, with nothing to do: what is owed to nodes goes out.
async fn driven_until(locks: &mut Locks, until: impl Fn() -> bool) {
    let start = now();
    while !until() {
        assert!(now().saturating_duration_since(start) < 10 * SECOND, "not after ten seconds");
        let lock = locks.acquire(request("something else").unwrap()).await.unwrap();
        let _outcome = locks.release(lock).await.unwrap();
    }
}

fn nowhere(cluster: &dyn Cluster, key: &str) -> bool {
    (0..cluster.addrs().len()).all(|node| cluster.value(node, key).is_none())
}

async fn try_once(locks: &mut Locks, name: &'static str) -> Result<redlock_core::LockId, AcquireError> {
    locks.acquire(request(name).unwrap().try_once()).await
}

#[test]
fn it_excludes_another_client_and_is_excluded() {
    on_all(5, async |cluster| {
        let mut locks = locks_of(&cluster.urls(), Config::builder().client_name("here"));
        let other = Redlock::builder().nodes(cluster.urls()).connect().unwrap();

        let lock = locks.acquire(request("door").unwrap()).await.unwrap();
        assert!(locks.is_held(lock));
        let is_everywhere = || (0..5).all(|node| cluster.value(node, "door").is_some());
        let late_nodes_get_it = locks.while_held(lock, async {
            while !is_everywhere() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        assert_eq!(late_nodes_get_it.await, Ok(()));
        assert!(String::from_utf8(cluster.value(0, "door").unwrap()).unwrap().ends_with(":here"));
        let refused = other.acquire("door").wait(Duration::ZERO).lock().unwrap_err();
        assert!(refused.kind.is_contended(), "{refused}");

        locks.extend(lock, 20 * SECOND).await.unwrap().unwrap();
        let extended =
            (0..5).filter(|node| cluster.ttl(*node, "door").is_some_and(|left| left > 10 * SECOND));
        assert!(extended.count() >= 3, "a majority has confirmed it");
        assert_eq!(locks.release(lock).await.unwrap(), ReleaseOutcome::Released);
        assert!(!locks.is_held(lock));
        driven_until(&mut locks, || nowhere(cluster, "door")).await;

        let guard = other.acquire("door").lock().unwrap();
        assert!(try_once(&mut locks, "door").await.unwrap_err().kind.is_contended());
        // Told by the nodes, long before the other's lock would have run out.
        let waits = locks.acquire(request("door").unwrap().wait(8 * SECOND));
        let released = std::thread::spawn(move || guard.release().unwrap());
        let lock = waits.await.unwrap();
        released.join().unwrap();
        assert!(locks.is_held(lock));
        locks.close().await;
        eventually("closing has released it", || nowhere(cluster, "door"));
    });
}

/// With a retry delay that is longer than the test may take.
#[test]
fn pushes_come_through_to_who_waits() {
    on_all(3, async |cluster| {
        let other = Redlock::builder().nodes(cluster.urls()).connect().unwrap();
        let clients: Vec<_> =
            cluster.urls().iter().map(|url| redis::Client::open(url.as_str()).unwrap()).collect();
        let patient = Config::builder().retry_delay(20 * SECOND, 20 * SECOND);
        let mut locks = Locks::over(&clients, patient).unwrap();
        for _ in 0..10 {
            let guard = other.acquire("door").lock().unwrap();
            let released = async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                tokio::task::spawn_blocking(move || guard.release().unwrap()).await.unwrap();
            };
            let waits = locks.acquire(request("door").unwrap().wait(9 * SECOND));
            let (lock, ()) = tokio::join!(waits, released);
            let released = locks.release(lock.unwrap()).await.unwrap();
            assert_eq!(released, ReleaseOutcome::Released);
        }
    });
}

#[test]
fn fences_grow() {
    on_all(3, async |cluster| {
        let mut locks = locks(cluster);
        let mut last = None;
        for _ in 0..3 {
            let lock = locks.acquire(request("door").unwrap().fenced()).await.unwrap();
            let fence = locks.client().lock(lock).unwrap().fence();
            assert!(fence.is_some() && fence > last, "{fence:?} after {last:?}");
            last = fence;
            locks.release(lock).await.unwrap();
        }
    });
}

#[test]
fn r16_it_is_renewed_while_the_work_goes_on() {
    on_all(3, async |cluster| {
        let mut locks = locks(cluster);
        let asked = request("door").unwrap().ttl(SECOND / 2).auto_renew(Duration::from_secs(60));
        let lock = locks.acquire(asked).await.unwrap();
        let worked = locks.while_held(lock, tokio::time::sleep(2 * SECOND)).await;
        assert_eq!(worked, Ok(()));
        assert!(locks.is_held(lock));
        locks.release(lock).await.unwrap();
    });
}

#[test]
fn r17_a_majority_that_dies_ends_the_work_by_the_deadline() {
    on_all(3, async |cluster| {
        let mut locks = locks(cluster);
        let asked = request("door").unwrap().ttl(SECOND).auto_renew(Duration::from_secs(60));
        let lock = locks.acquire(asked).await.unwrap();
        let start = now();
        cluster.kill(0);
        cluster.kill(1);
        let worked = locks.while_held(lock, std::future::pending::<()>()).await;
        assert_eq!(worked, Err(LostReason::Expired));
        assert!(!locks.is_held(lock));
        let took = now().saturating_duration_since(start);
        assert!(took < 2 * SECOND, "{took:?}");
        let refused = try_once(&mut locks, "door").await.unwrap_err();
        assert!(refused.kind.is_no_quorum(), "{refused}");
    });
}

#[test]
fn r7_hung_and_cut_nodes_are_cleaned_up() {
    on_all(5, async |cluster| {
        let mut locks = locks(cluster);
        cluster.freeze(0);
        cluster.freeze(1);
        for round in 0..20 {
            let lock = locks.acquire(request("door").unwrap()).await.unwrap();
            cluster.cut(2 + round % 3);
            let _whatever = locks.release(lock).await.unwrap();
        }
        cluster.thaw(0);
        cluster.thaw(1);
        driven_until(&mut locks, || nowhere(cluster, "door")).await;
    });
}

#[test]
fn r20_a_future_that_is_dropped_leaves_nothing() {
    on_all(3, async |cluster| {
        let mut locks = locks(cluster);
        // From before the first byte is sent until after the grant.
        for micros in (0..3000).step_by(100) {
            let asked = locks.acquire(request("door").unwrap());
            let taken = tokio::time::timeout(Duration::from_micros(micros), asked).await;
            if let Ok(lock) = taken {
                locks.release(lock.unwrap()).await.unwrap();
            }
        }
        driven_until(&mut locks, || nowhere(cluster, "door")).await;
        let lock = locks.acquire(request("door").unwrap()).await.unwrap();
        locks.release(lock).await.unwrap();
    });
}

/// Two of three nodes forget a lock that is held. A client whose connections were made anew behind its back would have their
/// votes for a second one.
#[test]
fn r25_a_restart_behind_a_connection_is_noticed() {
    on_all(3, async |cluster| {
        let ttl = 5 * SECOND;
        let guarded = || locks_of(&cluster.urls(), Config::builder().restart_guard(ttl).default_ttl(ttl));
        let (mut holder, mut rival) = (guarded(), guarded());
        // The nodes have just been started themselves, and are kept out for as long.
        let lock = rival.acquire(request("door").unwrap().wait(10 * SECOND)).await.unwrap();
        rival.release(lock).await.unwrap();
        let lock = holder.acquire(request("door").unwrap()).await.unwrap();
        let is_everywhere = || (0..3).all(|node| cluster.value(node, "door").is_some());
        while !is_everywhere() {
            holder.while_held(lock, tokio::time::sleep(Duration::from_millis(1))).await.unwrap();
        }
        for node in [0, 1] {
            cluster.kill(node);
            cluster.restart(node);
        }
        let second = try_once(&mut rival, "door").await;
        assert!(holder.is_held(lock), "the machine is too slow for this test");
        assert!(second.is_err(), "two holders");
    });
}

#[test]
fn r9_a_refused_login_is_final_and_told_in_the_servers_words() {
    on_all(3, async |cluster| {
        for node in 0..3 {
            cluster.set_password(node, "correct");
        }
        let with = |password: &str| -> Vec<String> {
            cluster
                .urls()
                .iter()
                .map(|url| url.replace("redis://", &format!("redis://:{password}@")))
                .collect()
        };
        let mut locks = locks_of(&with("wrong"), Config::builder());
        let refused = locks.acquire(request("door").unwrap().wait(8 * SECOND)).await.unwrap_err();
        assert!(refused.elapsed < 4 * SECOND, "{refused}");
        assert!(refused.to_string().contains("WRONGPASS"), "{refused}");
        assert!(!format!("{refused:?}").contains("wrong@"), "{refused:?}");

        let mut locks = locks_of(&with("correct"), Config::builder());
        let lock = locks.acquire(request("door").unwrap()).await.unwrap();
        locks.release(lock).await.unwrap();
    });
}

/// What nodes say is what another client hears, to the letter.
#[test]
fn r4_errors_are_those_that_the_server_wrote() {
    let texts = [
        "NOPERM User default has no permissions to run the 'set' command",
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
        "NOREPLICAS Not enough good replicas to write.",
        "MOVED 1234 10.0.0.1:6379",
        "ASK 1234 10.0.0.1:6379",
        "CLUSTERDOWN Hash slot not served",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "NOAUTH Authentication required.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "ERR unknown command 'SET', with args beginning with: ",
        "ERR  two  blanks",
        "ERR",
        "ODDITY of another product: with a colon",
    ];
    for text in texts {
        let node = TcpNode::start(Server::new(Dialect::Redis7, 1)).unwrap();
        let urls = [format!("redis://{}", node.addr())];
        let other = Redlock::connect(&urls).unwrap();
        node.with(|server, _| server.fail_always("set", text));
        let theirs = other.acquire("door").wait(Duration::ZERO).lock().unwrap_err();
        run(async {
            let ours = try_once(&mut locks_of(&urls, Config::builder()), "door").await.unwrap_err();
            let outcomes = |error: &AcquireError| -> Vec<NodeOutcome> {
                error.nodes.iter().map(|node| node.outcome.clone()).collect()
            };
            assert_eq!(outcomes(&ours), outcomes(&theirs), "{text}");
            assert_eq!(ours.kind, theirs.kind, "{text}");
        });
    }
}

/// A server that greets as it should, and answers `SET` with this. Connections that the client closed are told.
fn answering(set: &'static str) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let (closed, is_closed) = channel();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, closed) = (client.unwrap(), closed.clone());
            std::thread::spawn(move || {
                let mut read = BufReader::new(client.try_clone().unwrap());
                let mut line = String::new();
                while read.read_line(&mut line).is_ok_and(|length| length > 0) {
                    let reply = match line.trim_end() {
                        "HELLO" => "%1\r\n$5\r\nproto\r\n:3\r\n",
                        "CLIENT" => "+OK\r\n",
                        "INFO" => "$0\r\n\r\n",
                        "PING" => "+PONG\r\n",
                        "SET" => set,
                        "EVAL" => ":1\r\n",
                        _ => "",
                    };
                    line.clear();
                    if client.write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                }
                let _test_is_over = closed.send(());
            });
        }
    });
    (url, is_closed)
}

#[test]
fn r3_only_the_status_ok_is_a_vote() {
    for said in [
        "$2\r\nOK\r\n",
        "+ok\r\n",
        "+QUEUED\r\n",
        "+\r\n",
        ":1\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "*1\r\n+OK\r\n",
        "=6\r\ntxt:OK\r\n",
        "!8\r\nERR a\r\nb\r\n",
        "nonsense\r\n",
    ] {
        let (url, is_closed) = answering(said);
        run(async {
            let mut locks = locks_of(&[url], Config::builder());
            let refused = try_once(&mut locks, "door").await.map(|_| "granted").map_err(|error| error.kind);
            assert!(refused.is_err(), "{said:?}");
            // The stream is not trusted any more, and the client is still there.
            idle_until(|| is_closed.try_recv().is_ok()).await;
        });
    }
    let (url, _) = answering("+OK\r\n");
    run(async {
        let mut locks = locks_of(&[url], Config::builder());
        let lock = try_once(&mut locks, "door").await.unwrap();
        assert!(locks.is_held(lock));
    });
}
