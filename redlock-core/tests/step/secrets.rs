//! No password and no token in anything that is shown: R26.

use crate::bench::*;
use redlock_core::{AcquireRequest, Config, Event, Output};
use std::error::Error;

const PASSWORD: &str = "hunter2-secret";
/// The token of the request below: entropy and attempt.
const TOKEN: &str = "c1c2c3c4c5c6c7c8c9cacbcccdcecfd000000001";
const ENTROPY: [u8; 16] =
    [0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf, 0xd0];

fn config() -> Config {
    let nodes = (0..3).map(|node| format!("redis://ada:{PASSWORD}@node{node}/1"));
    Config::builder().nodes(nodes).build().unwrap()
}

fn request() -> AcquireRequest {
    AcquireRequest::new("orders", ENTROPY).try_once()
}

fn check(shown: &str) {
    assert!(!shown.contains(PASSWORD), "the password: {shown}");
    assert!(!shown.contains("hunter2"), "the password's beginning: {shown}");
    assert!(!shown.contains(&TOKEN[..32]), "the token: {shown}");
    assert!(!shown.contains("193, 194, 195"), "the entropy in decimal: {shown}");
    assert!(!shown.contains("0xc1, 0xc2"), "the entropy in hex: {shown}");
}

/// Everything that can be shown now.
fn check_all(bench: &mut Bench) {
    check(&format!("{:?} {:#?}", bench.client, bench.client));
    check(&format!("{:?}", bench.client.config()));
    for index in 0..3 {
        let status = bench.client.node(node(index)).unwrap();
        check(&format!("{status:?} {status:#?}"));
    }
    for output in std::mem::take(&mut bench.log) {
        check(&format!("{output:?} {output:#?}"));
        if let Output::Event(event) = output {
            if let Event::Acquired { lock, .. } = event
                && let Some(view) = bench.client.lock(lock)
            {
                check(&format!("{view:?} {view:#?} {:?}", view.votes().collect::<Vec<_>>()));
            }
            let text = match &event {
                Event::AcquireFailed { error, .. } => {
                    format!("{error} {:?}", error.source().map(ToString::to_string))
                }
                Event::ExtendFailed { error, .. } | Event::RenewalFailed { error, .. } => error.to_string(),
                Event::ConnectFailed { error, .. } => error.to_string(),
                Event::NodeDown { fault, .. } => fault.to_string(),
                _ => String::new(),
            };
            check(&text);
        }
    }
}

/// A bench whose nodes were greeted by hand, since they want a login.
fn greeted() -> Bench {
    let mut bench = Bench::over(config());
    for node in 0..3 {
        bench.accept(node);
        bench.reply(node, &hello("redis", "8.4.0"));
        bench.reply(node, OK);
        bench.reply(node, &info(u32::from(node), 90));
        bench.reply(node, b"+PONG\r\n");
    }
    bench.forget();
    bench
}

#[test]
fn r26_requests_and_configurations() {
    check(&format!("{:?} {:#?}", request(), request()));
    check(&format!("{:?} {:#?}", config(), config()));
    let config = config();
    check(&format!("{:?} {}", config.nodes(), config.nodes()[0].address()));
}

#[test]
fn r26_a_lock_through_its_whole_life() {
    let mut bench = greeted();
    bench.client.acquire(request(), bench.now);
    check(&format!("{:?}", bench.client));
    bench.drain();
    check_all(&mut bench);
    bench.reply_all(OK);
    let (lock, _) = bench.acquired();
    check_all(&mut bench);
    bench.extend(lock, 5_000);
    bench.reply_all(OK);
    check_all(&mut bench);
    bench.release(lock);
    bench.reply_all(ONE);
    check_all(&mut bench);
}

#[test]
fn r26_server_texts_that_echo_the_token() {
    let echoes = [
        format!("-ERR unknown command 'SET', with args beginning with: 'orders' '{TOKEN}' 'NX' \r\n"),
        format!("-ERR unknown command `SET`, with args beginning with: `orders`, `{TOKEN}`, \r\n"),
        format!("-ERR what is {TOKEN}?\r\n"),
        format!("-ERR {} {TOKEN}\r\n", "x".repeat(230)),
        format!("-ERR {TOKEN} script: on @user_script:1.\r\n"),
        format!("-{TOKEN}\r\n"),
        format!("${}\r\n{TOKEN}\r\n", TOKEN.len()),
        format!("+{TOKEN}\r\n"),
        format!("{TOKEN}\r\n"),
    ];
    for echo in &echoes {
        for stage in 0..4 {
            let mut bench = greeted();
            bench.client.acquire(request(), bench.now);
            bench.drain();
            if stage == 0 {
                bench.reply_all_connected(echo.as_bytes());
            } else if stage == 3 {
                bench.reply(0, NIL);
                bench.reply(1, NIL);
                bench.reply(0, ZERO);
                bench.reply(0, echo.as_bytes()); // to PTTL
            } else {
                bench.reply_all(OK);
                let (lock, _) = bench.acquired();
                if stage == 1 {
                    bench.extend(lock, 5_000);
                } else {
                    bench.release(lock);
                }
                bench.reply_all_connected(echo.as_bytes());
            }
            bench.at(600);
            check_all(&mut bench);
        }
    }
}

impl Bench {
    fn reply_all_connected(&mut self, bytes: &[u8]) {
        for node in 0..3 {
            if self.is_connected(node) {
                self.reply(node, bytes);
            }
        }
    }
}

#[test]
fn r26_server_texts_that_echo_the_password() {
    let echoes = [
        format!("-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'ada' '{PASSWORD}' \r\n"),
        format!("-WRONGPASS {PASSWORD} is wrong\r\n"),
        format!("-ERR {PASSWORD}\r\n"),
        format!("-{PASSWORD}\r\n"),
    ];
    for echo in &echoes {
        // To HELLO, AUTH, SELECT, INFO, PING, and to nothing.
        for stage in 0..6 {
            let mut bench = Bench::over(config());
            bench.accept(0);
            let before: &[&[u8]] = &[b"-NOPROTO x\r\n", OK, OK, b"$0\r\n\r\n", b"+PONG\r\n"];
            for reply in &before[..stage] {
                bench.reply(0, reply);
            }
            if bench.is_connected(0) {
                bench.reply(0, echo.as_bytes());
            }
            check_all(&mut bench);
            if bench.is_connected(0) {
                bench.cut(0);
            }
            bench.client.connect(ms(100), bench.now);
            bench.at(200);
            check_all(&mut bench);
        }
    }
}

#[test]
fn r26_the_address_in_an_error_has_no_password() {
    let mut bench = greeted();
    bench.client.acquire(request(), bench.now);
    bench.drain();
    bench.reply(0, NIL);
    bench.reply(1, b"-ERR oops\r\n");
    bench.reply(0, ZERO);
    bench.reply(0, b":5\r\n");
    let error = bench.acquire_failed();
    assert_eq!(&*error.nodes[0].address, "redis://ada@node0:6379/1");
    check(&error.to_string());
}
