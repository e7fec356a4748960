//! Conversations with simulated nodes, in virtual time: each verdict where it belongs, and not where it does not.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::sim::{Condition, Dialect, Server};
use crate::time::Instant;
use crate::{Address, DisconnectReason, NodeFault};

const PATIENCE: Duration = Duration::from_secs(2);
const SCRATCH: &str = "redlock-check:1";
const TOKEN: &str = "3031323334353637383961626364656600000001";

/// A node and how long its answers take.
struct Host {
    server: Server,
    address: Address,
    way: Duration,
}

impl Host {
    fn new(server: Server) -> Self {
        let address = Address::parse(&format!("10.0.0.{}", server.run_id().len())).unwrap();
        Self { server, address, way: Duration::from_micros(150) }
    }

    fn at(self, address: &str) -> Self {
        Self { address: Address::parse(address).unwrap(), ..self }
    }

    fn ask(&mut self, task: Task) -> NodeReport {
        let mut now = Instant::from_secs(100);
        let mut probe = Probe::new(self.address.clone(), task, PATIENCE, now);
        let session = self.server.open(now);
        probe.handle_connected(now);
        let mut rounds = 0;
        while !probe.is_done() {
            rounds += 1;
            assert!(rounds < 1_000, "no end: {probe:?}");
            let Some(bytes) = probe.poll_transmit(now) else {
                now = probe.poll_timeout().unwrap();
                probe.handle_timeout(now);
                continue;
            };
            now = now.saturating_add(self.way);
            self.server.receive(session, &bytes, now);
            now = now.saturating_add(self.way);
            let said = self.server.output(session);
            if !said.is_empty() {
                probe.handle_input(&said, now);
            }
            if self.server.wants_close(session) {
                probe.handle_disconnected(DisconnectReason::Closed, now);
            }
        }
        assert_eq!(probe.poll_timeout(), None);
        assert_eq!(probe.poll_transmit(now), None);
        self.server.hang_up(session);
        probe.into_report()
    }

    fn check(&mut self) -> NodeReport {
        self.ask(Task::check(SCRATCH, Duration::from_secs(1)))
    }

    /// What is said about a topic, worst first.
    fn verdict(&mut self, topic: Topic) -> Option<Verdict> {
        verdict(&self.check(), topic)
    }
}

fn verdict(report: &NodeReport, topic: Topic) -> Option<Verdict> {
    let assessment = assess(core::slice::from_ref(report), &Expectations::default());
    let of_topic = assessment.nodes[0].iter().filter(|verdict| verdict.topic == topic);
    of_topic.max_by_key(|verdict| verdict.severity).cloned()
}

fn all(report: &NodeReport) -> Vec<Verdict> {
    assess(core::slice::from_ref(report), &Expectations::default()).nodes.remove(0)
}

fn node(dialect: Dialect) -> Host {
    Host::new(Server::new(dialect, 7))
}

fn with_rules(dialect: Dialect, rules: &[&str]) -> Host {
    Host::new(Server::new(dialect, 7).with_user("ann", "pw", rules)).at("redis://ann:pw@10.0.0.1")
}

fn severity(verdict: Option<Verdict>) -> Option<Severity> {
    verdict.map(|verdict| verdict.severity)
}

#[test]
fn a_sound_node_of_each_dialect_has_no_problem_and_keeps_no_key() {
    for dialect in Dialect::ALL {
        let server =
            Server::new(dialect, 7).with_config("appendonly", "yes").with_config("appendfsync", "always");
        let mut host = Host::new(server);
        let report = host.check();
        assert_eq!(report.fault, None);
        let verdicts = all(&report);
        for verdict in &verdicts {
            let expected = if verdict.topic == Topic::Version
                && dialect != Dialect::Redis84
                && dialect != Dialect::Valkey9
            {
                Severity::Note
            } else {
                Severity::Ok
            };
            assert_eq!(verdict.severity, expected, "{dialect:?}: {verdict:?}");
        }
        for topic in [
            Topic::Reach,
            Topic::Role,
            Topic::Version,
            Topic::Locking,
            Topic::Rights,
            Topic::Eviction,
            Topic::Persistence,
            Topic::Latency,
        ] {
            assert!(verdicts.iter().any(|verdict| verdict.topic == topic), "{dialect:?} {topic:?}");
        }
        assert_eq!(host.server.keys(Instant::from_secs(200)), Vec::<Vec<u8>>::new());
        assert_eq!(report.server.version.unwrap().to_string(), dialect.version());
        assert_eq!(report.samples.len(), 12);
        assert!(report.samples.iter().all(|sample| sample.round_trip() == Duration::from_micros(300)));
    }
}

#[test]
fn eviction_is_a_problem_where_locks_can_go() {
    let with = |policy: &str, limit: &str| {
        Host::new(
            Server::new(Dialect::Valkey9, 7)
                .with_config("maxmemory-policy", policy)
                .with_config("maxmemory", limit),
        )
    };
    for policy in
        ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl", "volatile-lru", "unheard-of"]
    {
        let verdict = with(policy, "1000000").verdict(Topic::Eviction).unwrap();
        assert_eq!(verdict.severity, Severity::Problem, "{policy}");
        assert!(verdict.finding.contains(policy) && verdict.advice.unwrap().contains("noeviction"));
        assert_eq!(severity(with(policy, "0").verdict(Topic::Eviction)), Some(Severity::Warning), "{policy}");
    }
    assert_eq!(severity(with("noeviction", "1000000").verdict(Topic::Eviction)), Some(Severity::Ok));
}

#[test]
fn persistence_is_told_by_what_a_restart_forgets() {
    let report = |appendonly: &str, fsync: &str| {
        Host::new(
            Server::new(Dialect::Redis7, 7)
                .with_config("appendonly", appendonly)
                .with_config("appendfsync", fsync),
        )
        .check()
    };
    assert_eq!(severity(verdict(&report("yes", "always"), Topic::Persistence)), Some(Severity::Ok));
    for (appendonly, fsync) in [("no", "always"), ("yes", "everysec"), ("yes", "no")] {
        let report = report(appendonly, fsync);
        let verdict = verdict(&report, Topic::Persistence).unwrap();
        assert_eq!(verdict.severity, Severity::Warning);
        assert!(verdict.advice.unwrap().contains("restart guard"));
        let guarded = Expectations::default().restart_guard(Some(Duration::from_secs(30)));
        let guarded = &assess(&[report], &guarded).nodes[0];
        assert!(guarded.iter().any(|v| v.topic == Topic::Persistence && v.severity == Severity::Ok));
    }
}

#[test]
fn r25_under_a_restart_guard_a_young_node_waits() {
    let mut report = node(Dialect::Valkey9).check();
    let guard = Expectations::default().restart_guard(Some(Duration::from_millis(9_500)));
    for (uptime, expected) in [(10, Severity::Warning), (11, Severity::Ok)] {
        report.server.uptime_secs = Some(uptime);
        let verdicts = &assess(&[report.clone()], &guard).nodes[0];
        let verdict = verdicts.iter().find(|verdict| verdict.topic == Topic::RestartGuard).unwrap();
        assert_eq!(verdict.severity, expected, "{uptime}");
    }
    report.server.uptime_secs = Some(-3_599);
    assert!(all(&report).iter().any(|v| v.topic == Topic::Clock && v.severity == Severity::Warning));
}

#[test]
fn config_denied_is_made_up_for_by_info() {
    let rules: Vec<&str> = Right::ALL_BUT_CONFIG.to_vec();
    let mut host = with_rules(Dialect::Valkey9, &rules);
    let report = host.check();
    assert!(report.settings.config_refused.is_some());
    assert_eq!(report.settings.appendonly, Some(false));
    assert_eq!(report.settings.maxmemory_policy.as_deref(), Some("noeviction"));
    assert_eq!(severity(verdict(&report, Topic::Eviction)), Some(Severity::Ok));
    let mut host = with_rules(Dialect::Valkey9, &["+set", "+delifeq", "+ping"]);
    let report = host.check();
    assert_eq!(severity(verdict(&report, Topic::Eviction)), Some(Severity::Note));
    assert_eq!(severity(verdict(&report, Topic::Persistence)), Some(Severity::Note));
}

impl Right {
    const ALL_BUT_CONFIG: [&'static str; 15] = [
        "+info",
        "+ping",
        "+set",
        "+delex",
        "+delifeq",
        "+eval",
        "+get",
        "+del",
        "+pexpire",
        "+exists",
        "+incr",
        "+persist",
        "+time",
        "+pttl",
        "+getrange",
    ];
}

fn least(dialect: Dialect) -> Vec<Right> {
    match dialect {
        Dialect::Redis7 => Right::least(ExtendForm::Script, DeleteForm::Script),
        Dialect::Redis84 => Right::least(ExtendForm::Ifeq, DeleteForm::Delex),
        Dialect::Valkey81 => Right::least(ExtendForm::Ifeq, DeleteForm::Script),
        Dialect::Valkey9 => Right::least(ExtendForm::Ifeq, DeleteForm::Delifeq),
    }
}

#[test]
fn r22_the_least_rights_of_each_dialect_do_and_one_less_is_named() {
    for dialect in Dialect::ALL {
        let least = least(dialect);
        let rules: Vec<&str> = least.iter().map(|right| right.rule()).collect();
        let report = with_rules(dialect, &rules).check();
        let worst = all(&report).into_iter().max_by_key(|verdict| verdict.severity);
        assert!(
            worst.as_ref().is_none_or(|v| v.severity <= Severity::Warning && v.topic != Topic::Rights),
            "{worst:?}"
        );
        assert_eq!(severity(verdict(&report, Topic::Rights)), Some(Severity::Note), "{dialect:?}");
        for missing in &least {
            let rules: Vec<&str> =
                least.iter().filter(|right| *right != missing).map(|right| right.rule()).collect();
            let mut host = with_rules(dialect, &rules);
            let report = host.check();
            let verdicts = all(&report);
            let named =
                verdicts.iter().find(|v| v.topic == Topic::Rights && v.finding.contains(missing.rule()));
            let named = named
                .or_else(|| verdicts.iter().find(|v| v.finding.contains("INFO") && *missing == Right::Info));
            let harmless = [(Right::Ping, Severity::Note), (Right::Info, Severity::Warning)];
            let harmless = harmless.into_iter().find(|(right, _)| right == missing);
            let expected = harmless.map_or(Severity::Problem, |(_, severity)| severity);
            assert_eq!(
                named.map(|v| v.severity),
                Some(expected),
                "{dialect:?} without {missing:?}: {verdicts:?}"
            );
            let left = host.server.keys(Instant::from_secs(200));
            assert_eq!(left, Vec::<Vec<u8>>::new(), "{dialect:?} without {missing:?}");
        }
    }
}

#[test]
fn whether_waiters_are_told_is_tried() {
    let mut rules = Right::ALL_BUT_CONFIG.to_vec();
    let verdict = with_rules(Dialect::Valkey9, &rules).verdict(Topic::WakeUps).unwrap();
    assert_eq!(verdict.severity, Severity::Note);
    assert_eq!(verdict.advice.as_deref(), Some("Grant +client|tracking +client|caching."));
    rules.extend(["+client|tracking", "+client|caching"]);
    for dialect in Dialect::ALL {
        let verdict = with_rules(dialect, &rules).verdict(Topic::WakeUps).unwrap();
        assert_eq!(verdict.severity, Severity::Ok, "{dialect:?}: {verdict:?}");
    }
}

#[test]
fn r22_a_missing_native_right_is_a_note_where_the_script_works() {
    let rules = ["+info", "+ping", "+set", "+eval", "+get", "+del", "+pexpire"];
    for (dialect, right) in [(Dialect::Valkey9, "+delifeq"), (Dialect::Redis84, "+delex")] {
        let report = with_rules(dialect, &rules).check();
        let verdicts = all(&report);
        let note = verdicts.iter().find(|v| v.finding.contains(right)).unwrap();
        assert_eq!((note.topic, note.severity), (Topic::Rights, Severity::Note));
        assert_eq!(severity(verdict(&report, Topic::Locking)), Some(Severity::Ok));
    }
}

#[test]
fn keys_out_of_reach_are_a_problem_and_those_in_reach_are_not() {
    for (pattern, expected) in
        [("~lock:*", Severity::Problem), ("~redlock-check:*", Severity::Ok), ("~*", Severity::Ok)]
    {
        let mut rules = Right::ALL_BUT_CONFIG.to_vec();
        rules.extend(["+config|get", pattern]);
        let verdict = with_rules(Dialect::Redis7, &rules).verdict(Topic::Rights).unwrap();
        assert_eq!(verdict.severity, expected, "{pattern}: {verdict:?}");
        assert!(expected == Severity::Ok || verdict.advice.unwrap().contains("--key-prefix"));
    }
}

#[test]
fn r23_what_is_no_node_is_told_and_not_written_to() {
    for (condition, topic, word) in [
        (Condition::Readonly, Topic::Role, "replica"),
        (Condition::Cluster { moved: None }, Topic::Role, "cluster"),
        (Condition::Loading, Topic::Locking, "starting up"),
        (Condition::Misconf, Topic::Locking, "cannot persist"),
    ] {
        let mut host = node(Dialect::Valkey9);
        host.server.set_condition(Some(condition));
        let report = host.check();
        let verdict = all(&report).into_iter().find(|v| v.severity == Severity::Problem).unwrap();
        assert_eq!(verdict.topic, topic);
        assert!(verdict.finding.contains(word), "{verdict:?}");
        assert_eq!(report.trial, Trial::default());
        let sets =
            host.server.log().iter().filter(|entry| entry.args[0].eq_ignore_ascii_case(b"set")).count();
        assert_eq!(sets, 0);
        assert_eq!(report.server.version.unwrap().to_string(), "9.1.2", "who it is is told all the same");
    }
    for condition in [Condition::Oom, Condition::Noreplicas] {
        let mut host = node(Dialect::Valkey9);
        host.server.set_condition(Some(condition));
        assert_eq!(severity(host.verdict(Topic::Locking)), Some(Severity::Problem));
    }
    for condition in [Condition::MaxClients, Condition::ProtectedMode] {
        let mut host = node(Dialect::Valkey9);
        host.server.set_condition(Some(condition));
        assert_eq!(severity(host.verdict(Topic::Reach)), Some(Severity::Problem));
    }
}

#[test]
fn logins_are_told_without_the_password() {
    let server = || Server::new(Dialect::Redis7, 7).with_password("sesame");
    for address in ["redis://10.0.0.1", "redis://:hunter2@10.0.0.1"] {
        let report = Host::new(server()).at(address).check();
        let verdict = verdict(&report, Topic::Login).unwrap();
        assert_eq!(verdict.severity, Severity::Problem);
        assert!(!format!("{verdict:?} {report:?}").contains("hunter2"));
    }
    let report = Host::new(server()).at("redis://:sesame@10.0.0.1").check();
    assert_eq!((report.fault.clone(), verdict(&report, Topic::Login)), (None, None));
}

#[test]
fn silence_ends_in_time_and_tells_where() {
    let mut host = node(Dialect::Valkey9);
    host.server.mute(true);
    assert!(matches!(host.check().fault, Some(NodeFault::HandshakeTimeout(_))));
    let now = Instant::ZERO;
    let mut probe = Probe::new(host.address.clone(), Task::read("k"), PATIENCE, now);
    probe.handle_timeout(Instant::from_millis(1_999));
    assert!(!probe.is_done());
    probe.handle_timeout(Instant::from_secs(2));
    assert!(matches!(probe.into_report().fault, Some(NodeFault::HandshakeTimeout(_))));
    let mut probe = Probe::new(host.address.clone(), Task::read("k"), PATIENCE, now);
    probe.handle_connected(now);
    probe.handle_input(b"HTTP/1.1 400 Bad Request\r\n", now);
    assert!(matches!(probe.into_report().fault, Some(NodeFault::NotRedis(_))));
    let mut probe = Probe::new(host.address, Task::read("k"), PATIENCE, now);
    probe.handle_disconnected(DisconnectReason::Refused("no".into()), now);
    assert!(matches!(probe.into_report().fault, Some(NodeFault::Refused(_))));
}

#[test]
fn a_slow_node_is_told_by_the_node_timeout() {
    for (way, expected) in [(1, Severity::Ok), (30, Severity::Note), (260, Severity::Problem)] {
        let mut host = node(Dialect::Valkey9);
        host.way = Duration::from_millis(way);
        assert_eq!(severity(host.verdict(Topic::Latency)), Some(expected), "{way} ms");
    }
}

fn clocks(shifts: &[(i64, i64)]) -> Vec<NodeReport> {
    let check = |(index, (offset_ms, rate_ppm)): (usize, &(i64, i64))| {
        let mut server = Server::new(Dialect::ALL[index % 4], index as u64);
        server.set_clock(*offset_ms, *rate_ppm, Instant::from_secs(100));
        let mut host = Host::new(server).at(&format!("10.0.0.{index}"));
        host.way = Duration::from_micros(50 * (index as u64 + 1));
        host.check()
    };
    shifts.iter().enumerate().map(check).collect()
}

#[test]
fn clocks_are_compared_within_their_error() {
    let reports = clocks(&[(0, 0), (3, 0), (-2_000, 0), (7, 0), (400, 0)]);
    let readings: Vec<ClockReading> = readings(&reports).into_iter().flatten().collect();
    // The middle one is 3 ms ahead of an undisturbed clock.
    for (reading, expected) in readings.iter().zip([-3_000, 0, -2_003_000, 4_000, 397_000]) {
        assert!((reading.offset_micros - expected).abs() <= reading.error_micros, "{reading:?} {expected}");
        assert!(reading.error_micros < 600, "{reading:?}");
    }
    let assessment = assess(&reports, &Expectations::default());
    let worst = |node: usize| {
        let clock = assessment.nodes[node].iter().filter(|verdict| verdict.topic == Topic::Clock);
        clock.map(|verdict| verdict.severity).max().unwrap()
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(worst),
        [Severity::Ok, Severity::Ok, Severity::Warning, Severity::Ok, Severity::Note]
    );
    assert!(assessment.is_safe(), "a clock that is off breaks no lock by itself");
}

#[test]
fn a_clock_that_runs_away_is_a_problem() {
    let reports = clocks(&[(0, 0), (0, 50_000), (0, 20), (0, 3_000), (0, 0)]);
    let assessment = assess(&reports, &Expectations::default());
    let worst = |node: usize| {
        let clock = assessment.nodes[node].iter().filter(|verdict| verdict.topic == Topic::Clock);
        clock.map(|verdict| verdict.severity).max().unwrap()
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(worst),
        [Severity::Ok, Severity::Problem, Severity::Ok, Severity::Warning, Severity::Ok]
    );
    assert_eq!((assessment.usable, assessment.quorum), (4, 3));
}

#[test]
fn a_clock_alone_is_not_judged() {
    assert!(!all(&clocks(&[(5_000, 0)])[0]).iter().any(|verdict| verdict.topic == Topic::Clock));
}

#[test]
fn r24_one_server_under_two_names_counts_once() {
    let mut one = node(Dialect::Valkey9).at("redis://localhost");
    let mut two = Host::new(Server::new(Dialect::Valkey9, 8)).at("redis://10.0.0.2");
    let first = one.check();
    let mut again = first.clone();
    again.address = Address::parse("redis://127.0.0.1").unwrap();
    let assessment = assess(&[first, two.check(), again], &Expectations::default());
    let problem =
        |node: usize| assessment.nodes[node].iter().find(|v| v.severity == Severity::Problem).cloned();
    assert_eq!((problem(0), problem(1)), (None, None));
    let twin = problem(2).unwrap();
    assert_eq!(twin.topic, Topic::Identity);
    assert!(twin.finding.contains("redis://localhost:6379"), "{twin:?}");
    assert_eq!((assessment.usable, assessment.is_safe()), (2, true));
}

#[test]
fn a_quorum_without_a_problem_is_safe_and_less_is_not() {
    let good = node(Dialect::Valkey9).check();
    let bad = NodeReport::unreachable(Address::parse("10.0.0.9").unwrap(), NodeFault::Refused("no".into()));
    for (count, faults) in [(1, 0), (1, 1), (3, 1), (3, 2), (4, 1), (4, 2), (5, 2), (5, 3)] {
        let mut reports: Vec<NodeReport> = (0..count)
            .map(|index| {
                let mut report = if index < faults { bad.clone() } else { good.clone() };
                report.server.run_id = Some(index.to_string());
                report
            })
            .collect();
        let assessment = assess(&reports, &Expectations::default());
        let is_safe = (count - faults) * 2 > count;
        assert_eq!(assessment.is_safe(), is_safe, "{count} {faults}");
        let worst = assessment.fleet.iter().map(|verdict| verdict.severity).max().unwrap();
        assert_eq!(worst == Severity::Problem, !is_safe);
        let even =
            assessment.fleet.iter().any(|v| v.topic == Topic::NodeCount && v.severity == Severity::Note);
        assert_eq!(even, count % 2 == 0 || count == 1);
        reports.clear();
    }
    assert!(!assess(&[], &Expectations::default()).is_safe());
}

#[test]
fn who_holds_a_key_is_read_without_its_token() {
    let now = Instant::from_secs(100);
    for dialect in Dialect::ALL {
        let mut host = node(dialect);
        let key = host.ask(Task::read("job")).key;
        assert_eq!(key, Some(KeyState::Free));
        let value = format!("{TOKEN}:billing");
        host.server.put(b"job", value.as_bytes(), Some(Duration::from_secs(5)), now);
        host.server.put(b"job:fence", b"1800000000000000007", None, now);
        let report = host.ask(Task::read("job"));
        assert!(!format!("{report:?}").contains(TOKEN));
        let Some(KeyState::Held(held)) = report.key else { panic!("{report:?}") };
        assert_eq!(held.client_name().as_deref(), Some("billing"));
        let Remaining::For(left) = held.remaining() else { panic!("{held:?}") };
        assert!(left <= Duration::from_secs(5) && left > Duration::from_millis(4_990), "{left:?}");
        assert_eq!(report.fence, Some(FenceState::Number("1800000000000000007".into())));
        host.server.put(b"job", b"", None, now);
        let Some(KeyState::Held(empty)) = host.ask(Task::read("job")).key else {
            panic!("an empty string is held")
        };
        assert_eq!((empty.is_ours(), empty.remaining()), (false, Remaining::Forever));
        host.server.put_list(b"job", &[b"a"], None, now);
        let report = host.ask(Task::read("job"));
        assert_eq!(report.key, Some(KeyState::NotAString(Remaining::Forever)));
        host.server.put_list(b"job:fence", &[b"a"], None, now);
        assert_eq!(host.ask(Task::read("job")).fence, Some(FenceState::NotANumber));
    }
    let report = with_rules(Dialect::Valkey9, &["+info", "+pttl"]).ask(Task::read("job"));
    assert_eq!(report.key, Some(KeyState::Free), "the time alone tells that nothing is there");
    let report = with_rules(Dialect::Valkey9, &["+info"]).ask(Task::read("job"));
    assert!(matches!(report.key, Some(KeyState::Untold(_))), "{report:?}");
}

#[test]
fn a_key_is_removed_and_its_fence_counter_is_not() {
    let now = Instant::from_secs(100);
    let mut host = node(Dialect::Redis7);
    host.server.put(b"job", b"anything", None, now);
    host.server.put(b"job:fence", b"7", None, now);
    assert_eq!(host.ask(Task::remove("job")).removal, Some(Removal::Removed));
    assert_eq!(host.ask(Task::remove("job")).removal, Some(Removal::WasFree));
    assert_eq!(host.server.keys(Instant::from_secs(200)), [b"job:fence"]);
    host.server.set_condition(Some(Condition::Readonly));
    let report = host.ask(Task::remove("job"));
    assert_eq!((report.fault, report.removal), (Some(NodeFault::Replica), None));
}

/// One report per letter: a value on the node, `-` free, `?` silent, `l` a list.
fn holdings(letters: &str) -> Vec<NodeReport> {
    let address = Address::parse("10.0.0.1").unwrap();
    let of = |(index, letter): (usize, char)| {
        let mut report = NodeReport::unreachable(address.clone(), NodeFault::Closed);
        report.key = match letter {
            '?' => None,
            '-' => Some(KeyState::Free),
            'l' => Some(KeyState::NotAString(Remaining::Forever)),
            letter => {
                let left = Remaining::For(Duration::from_secs(index as u64 + 1));
                Some(KeyState::Held(HeldKey::new(String::from(letter).into(), left)))
            }
        };
        report
    };
    letters.chars().enumerate().map(of).collect()
}

#[test]
fn a_quorum_with_one_value_holds_and_nothing_else() {
    let told = |letters: &str| match Holding::of(&holdings(letters)) {
        Holding::Held { on, remaining, .. } => format!("held {on} {remaining:?}"),
        Holding::Free { leftovers } => format!("free {leftovers}"),
        Holding::Split { free_in } => format!("split {free_in:?}"),
        Holding::Untold => "untold".into(),
    };
    for (letters, expected) in [
        ("aaaaa", "held 5 For(3s)"),
        ("aaa--", "held 3 For(1s)"),
        ("--aaa", "held 3 For(3s)"),
        ("aaa??", "held 3 For(1s)"),
        ("aab??", "untold"),
        ("aabb-", "split For(4s)"),
        ("aab--", "split For(3s)"),
        ("aa---", "free 2"),
        ("-----", "free 0"),
        ("---??", "free 0"),
        ("--???", "untold"),
        ("?????", "untold"),
        ("llll-", "split Forever"),
        ("a", "held 1 For(1s)"),
        ("?", "untold"),
        ("ab", "split For(2s)"),
        ("aa", "held 2 For(1s)"),
        ("a-", "split For(1s)"),
    ] {
        assert_eq!(told(letters), expected, "{letters}");
    }
    let reports = holdings("aab-?");
    let holding = Holding::of(&holdings("aaab-"));
    let holders: Vec<bool> = reports.iter().map(|report| holding.node(report).is_holder).collect();
    assert_eq!(holders, vec![true, true, false, false, false]);
}
