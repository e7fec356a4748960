//! What a reply means for what was asked (R3, R4): only the exact reply that a command gives for success is a vote.

use alloc::format;
use alloc::string::String;

use super::error::{ErrorCode, ServerError};
use super::handshake::{DeleteForm, ExtendForm};
use super::reply::{Reply, Usual};

/// What was asked of a node. Several keys are always asked for by script, whatever the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// [`set`](super::command::set), to acquire or to repair, over so many keys.
    Set {
        /// How many keys.
        keys: usize,
    },
    /// [`extend`](super::command::extend), in this form, over so many keys.
    Extend {
        /// The form for one key.
        form: ExtendForm,
        /// How many keys.
        keys: usize,
    },
    /// [`fenced_set`](super::command::fenced_set), over so many keys.
    FencedSet {
        /// How many keys.
        keys: usize,
    },
    /// [`fenced_repair`](super::command::fenced_repair).
    FencedRepair,
    /// [`raise`](super::command::raise).
    Raise,
    /// [`release`](super::command::release), in this form, over so many keys.
    Release {
        /// The form for one key.
        form: DeleteForm,
        /// How many keys.
        keys: usize,
    },
}

/// What the node answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The exact reply for success: set, extended, deleted.
    Yes,
    /// The exact reply for success of a fenced set: the lowest and the highest counter.
    Counters(u64, u64),
    /// The exact reply for refusal: the key is taken, or (extend, release) not ours.
    No,
    /// An error. [`ServerError::is_not_applied`] says whether it is certain that nothing was done.
    Error(ServerError),
    /// A reply that the command does not give: no vote, and the stream cannot be trusted any more. Says what it was.
    Unexpected(String),
}

/// How to ask again after a native form was refused (R14, R22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// By the script this once: the native form needs memory that the server has not, the script does not.
    Once,
    /// By the script from now on, until the node's run id changes: the native form is not there, or not allowed.
    UntilRestart,
}

/// The pair of replies by which a command says yes and no.
enum Expected {
    /// `+OK` and null.
    Status,
    /// `:1` and `:0`; or a count of what was done, up to this.
    Count(usize),
    /// So many numbers as strings, and `:0`.
    Counters(usize),
}

impl Asked {
    /// Whether a command, and no script, was sent.
    pub(crate) const fn is_native(self) -> bool {
        match self {
            Self::Set { keys } => keys == 1,
            Self::Extend { form, keys } => keys == 1 && matches!(form, ExtendForm::Ifeq),
            Self::Release { form, keys } => keys == 1 && !matches!(form, DeleteForm::Script),
            Self::FencedSet { .. } | Self::FencedRepair | Self::Raise => false,
        }
    }

    const fn expected(self) -> Expected {
        match self {
            Self::Set { .. } | Self::Extend { .. } if self.is_native() => Expected::Status,
            Self::Set { .. } | Self::Extend { .. } | Self::FencedRepair | Self::Raise => Expected::Count(1),
            Self::FencedSet { keys } => Expected::Counters(keys),
            Self::Release { keys, .. } => Expected::Count(keys),
        }
    }

    /// Reads the answer out of a reply.
    ///
    /// A key of another type makes a compare fail with `WRONGTYPE` (for `DELEX` with an `ERR` of its own): it is not
    /// ours, which is a plain no. In a script it comes from the `GET`, before anything was written. To a `SET NX` no
    /// server says it; there it would be an error, as it is from a fenced script, where it tells of the counter.
    pub(crate) fn interpret(self, reply: Reply) -> Answer {
        if let Some(is_yes) = Usual::of(&reply).and_then(|usual| self.usual(usual)) {
            return if is_yes { Answer::Yes } else { Answer::No };
        }
        match (self.expected(), reply) {
            (_, Reply::Error(error)) => {
                let compares = matches!(self, Self::Extend { .. } | Self::Release { .. });
                if error.code() == ErrorCode::Wrongtype && compares {
                    Answer::No
                } else {
                    Answer::Error(error)
                }
            }
            (Expected::Status, Reply::Ok) => Answer::Yes,
            (Expected::Status, Reply::Null) => Answer::No,
            (Expected::Status, reply) => {
                Answer::Unexpected(format!("{reply} where +OK or a null was expected"))
            }
            (Expected::Count(most), Reply::Integer(count)) => match usize::try_from(count) {
                Ok(0) => Answer::No,
                Ok(count) if count <= most => Answer::Yes,
                Ok(_) | Err(_) => Answer::Unexpected(format!(":{count} where :0 to :{most} was expected")),
            },
            (Expected::Counters(keys), reply) => match counters(&reply, keys) {
                Some((lowest, highest)) => Answer::Counters(lowest, highest),
                None if reply == Reply::Integer(0) => Answer::No,
                None => Answer::Unexpected(format!("{reply} where {keys} fence counters or :0 was expected")),
            },
            (Expected::Count(most), reply) => {
                Answer::Unexpected(format!("{reply} where :0 to :{most} was expected"))
            }
        }
    }

    /// What a usual reply says, where it is a plain yes or no to this.
    pub(crate) const fn usual(self, reply: Usual) -> Option<bool> {
        match (self.expected(), reply) {
            (Expected::Status, Usual::Ok) => Some(true),
            (Expected::Count(most), Usual::One) if most >= 1 => Some(true),
            (Expected::Count(_) | Expected::Counters(_), Usual::Zero) => Some(false),
            (Expected::Status | Expected::Count(_) | Expected::Counters(_), _) => None,
        }
    }

    /// How to ask again after this error; `None` where the script would fare no better, or it was the script already.
    pub(crate) fn fallback(self, error: &ServerError) -> Option<Fallback> {
        if !self.is_native() || matches!(self, Self::Set { .. }) {
            return None;
        }
        if error.code() == ErrorCode::Oom {
            return Some(Fallback::Once);
        }
        native_refused(error).then_some(Fallback::UntilRestart)
    }
}

/// The lowest and the highest of so many counters. A counter is what `INCR` leaves: a whole number, above zero if nobody
/// has put another there.
fn counters(reply: &Reply, keys: usize) -> Option<(u64, u64)> {
    let Reply::Array(items) = reply else { return None };
    if items.len() != keys {
        return None;
    }
    let mut range = None;
    for item in items {
        let Reply::Bulk(digits) = item else { return None };
        let counter: u64 = core::str::from_utf8(digits).ok()?.parse().ok().filter(|counter| *counter > 0)?;
        let (lowest, highest) = range.unwrap_or((counter, counter));
        range = Some((counter.min(lowest), counter.max(highest)));
    }
    range
}

/// Whether an error to a native compare-and-delete or compare-and-extend means that the server has not got it, or does
/// not let this user have it.
pub(crate) const fn native_refused(error: &ServerError) -> bool {
    matches!(
        error.code(),
        ErrorCode::UnknownCommand
            | ErrorCode::UnknownSubcommand
            | ErrorCode::Syntax
            | ErrorCode::WrongArity
            | ErrorCode::Noperm
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::reply::Blob;
    use alloc::vec;
    use alloc::vec::Vec;

    const SET: Asked = Asked::Set { keys: 1 };
    const SET_ALL: Asked = Asked::Set { keys: 2 };
    const IFEQ: Asked = Asked::Extend { form: ExtendForm::Ifeq, keys: 1 };
    const EXTEND: Asked = Asked::Extend { form: ExtendForm::Script, keys: 1 };
    const EXTEND_ALL: Asked = Asked::Extend { form: ExtendForm::Ifeq, keys: 3 };
    const DELEX: Asked = Asked::Release { form: DeleteForm::Delex, keys: 1 };
    const DELIFEQ: Asked = Asked::Release { form: DeleteForm::Delifeq, keys: 1 };
    const RELEASE: Asked = Asked::Release { form: DeleteForm::Script, keys: 1 };
    const RELEASE_ALL: Asked = Asked::Release { form: DeleteForm::Delex, keys: 3 };
    const FENCED: Asked = Asked::FencedSet { keys: 2 };
    const ALL: [Asked; 12] = [
        SET,
        SET_ALL,
        IFEQ,
        EXTEND,
        EXTEND_ALL,
        DELEX,
        DELIFEQ,
        RELEASE,
        RELEASE_ALL,
        FENCED,
        Asked::FencedRepair,
        Asked::Raise,
    ];

    fn error(line: &str) -> ServerError {
        ServerError::parse(line.as_bytes())
    }

    fn replies() -> Vec<Reply> {
        let mut replies: Vec<Reply> =
            [-2, -1, 0, 1, 2, 3, 4, i64::MAX, i64::MIN].map(Reply::Integer).to_vec();
        replies.extend([Reply::Ok, Reply::Null, Reply::Other("double"), Reply::Other("boolean")]);
        replies.extend(["", "ok", "OK ", "QUEUED", "1"].map(|text| Reply::Simple(text.into())));
        replies.extend(["", "1", "0", "OK"].map(|text| Reply::Bulk(Blob::copy_of(text.as_bytes()))));
        replies.extend([
            Reply::Array(vec![Reply::Integer(1)]),
            Reply::Map(vec![]),
            Reply::Push(vec![Reply::Ok]),
        ]);
        replies
    }

    #[test]
    fn b04_r3_only_the_exact_reply_is_a_vote() {
        for asked in ALL {
            let (yes, no): (Vec<Reply>, Reply) = match asked.expected() {
                Expected::Status => (vec![Reply::Ok], Reply::Null),
                Expected::Count(most) => ((1..).take(most).map(Reply::Integer).collect(), Reply::Integer(0)),
                Expected::Counters(_) => (vec![], Reply::Integer(0)),
            };
            for reply in replies() {
                let answer = asked.interpret(reply.clone());
                match answer {
                    Answer::Yes => assert!(yes.contains(&reply), "{asked:?} {reply:?}"),
                    Answer::No => assert_eq!(reply, no, "{asked:?}"),
                    Answer::Unexpected(text) => {
                        assert!(!yes.contains(&reply) && reply != no, "{asked:?} {text}")
                    }
                    Answer::Error(_) | Answer::Counters(..) => panic!("{asked:?} {reply:?}"),
                }
            }
        }
    }

    #[test]
    fn what_was_unexpected_is_said() {
        let text = |asked: Asked, reply| match asked.interpret(reply) {
            Answer::Unexpected(text) => text,
            answer @ (Answer::Yes | Answer::Counters(..) | Answer::No | Answer::Error(_)) => {
                panic!("{answer:?}")
            }
        };
        assert_eq!(text(EXTEND, Reply::Integer(2)), ":2 where :0 to :1 was expected");
        assert_eq!(text(EXTEND, Reply::Ok), "+OK where :0 to :1 was expected");
        assert_eq!(
            text(SET, Reply::Bulk(Blob::copy_of(b"1"))),
            "a string of 1 bytes where +OK or a null was expected"
        );
    }

    #[test]
    fn r4_every_error_is_an_error_and_no_contention() {
        let lines = [
            "LOADING x",
            "READONLY x",
            "MASTERDOWN x",
            "MISCONF x",
            "OOM x",
            "NOPERM x",
            "NOAUTH x",
            "MOVED 1 a:1",
            "ASK 1 a:1",
            "CLUSTERDOWN x",
            "BUSY x",
            "NOREPLICAS x",
            "TRYAGAIN x",
            "LOCKED x",
            "oops",
            "ERR x",
        ];
        for asked in ALL {
            for line in lines {
                assert_eq!(
                    asked.interpret(Reply::Error(error(line))),
                    Answer::Error(error(line)),
                    "{asked:?}"
                );
            }
        }
    }

    #[test]
    fn a_key_of_another_type_is_not_ours() {
        let native = "WRONGTYPE Operation against a key holding the wrong kind of value";
        let script =
            "WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:1.";
        let delex = "ERR Key should be of string type if conditions are specified";
        for asked in [IFEQ, EXTEND, EXTEND_ALL, DELEX, DELIFEQ, RELEASE, RELEASE_ALL] {
            for line in [native, script, delex] {
                assert_eq!(asked.interpret(Reply::Error(error(line))), Answer::No, "{asked:?} {line}");
            }
        }
        assert_eq!(SET.interpret(Reply::Error(error(native))), Answer::Error(error(native)));
    }

    #[test]
    fn r22_a_native_form_that_is_refused_falls_back_to_the_script() {
        for line in [
            "ERR unknown command 'DELEX', with args beginning with: 'k' 'IFEQ' 'v' ",
            "ERR syntax error",
            "ERR wrong number of arguments for 'delex' command",
            "NOPERM User u has no permissions to run the 'delex' command",
        ] {
            for asked in ALL {
                let expected = matches!(asked, IFEQ | DELEX | DELIFEQ).then_some(Fallback::UntilRestart);
                assert_eq!(asked.fallback(&error(line)), expected, "{asked:?} {line}");
            }
        }
        for line in ["NOAUTH x", "READONLY x", "MISCONF x", "BUSY x", "LOADING x", "oops"] {
            assert!(ALL.iter().all(|asked| asked.fallback(&error(line)).is_none()), "{line}");
        }
    }

    #[test]
    fn a_fenced_set_answers_with_its_counters() {
        let bulks = |texts: &[&str]| {
            Reply::Array(texts.iter().map(|text| Reply::Bulk(Blob::copy_of(text.as_bytes()))).collect())
        };
        assert_eq!(FENCED.interpret(bulks(&["12", "9"])), Answer::Counters(9, 12));
        // Above what a double can tell apart, which is why they are texts.
        let (below, above) = ("9007199254740992", "9007199254740993");
        let Answer::Counters(lowest, highest) = FENCED.interpret(bulks(&[above, below])) else { panic!() };
        assert_eq!(highest - lowest, 1);
        assert_eq!(FENCED.interpret(Reply::Integer(0)), Answer::No);
        for garbled in [
            bulks(&["12"]),
            bulks(&["1", "2", "3"]),
            bulks(&["12", ""]),
            bulks(&["12", "x"]),
            bulks(&["12", "-3"]),
            bulks(&["12", "0"]),
            bulks(&["12", "1.5"]),
            bulks(&["12", "99999999999999999999"]),
            Reply::Array(vec![Reply::Integer(12), Reply::Integer(9)]),
            Reply::Integer(1),
            Reply::Ok,
            Reply::Null,
        ] {
            assert!(matches!(FENCED.interpret(garbled.clone()), Answer::Unexpected(_)), "{garbled:?}");
        }
        let wrongtype = error("WRONGTYPE Operation against a key holding the wrong kind of value script: x");
        for asked in [FENCED, Asked::FencedRepair, Asked::Raise] {
            assert_eq!(asked.interpret(Reply::Error(wrongtype.clone())), Answer::Error(wrongtype.clone()));
        }
    }

    #[test]
    fn r14_under_oom_the_script_extends() {
        let oom = error("OOM command not allowed when used memory > 'maxmemory'.");
        assert_eq!(IFEQ.fallback(&oom), Some(Fallback::Once));
        assert_eq!(EXTEND.fallback(&oom), None);
        assert_eq!(SET.fallback(&oom), None);
    }
}
