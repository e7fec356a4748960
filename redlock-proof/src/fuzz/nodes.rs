//! What nodes could answer: mostly what real ones do, sometimes what none should.

use crate::simulate::Dice;

/// The password of every node here; nothing that is shown may have it.
pub(super) const PASSWORD: &str = "hunter2SECRET";

/// The commands in a payload: arrays of bulk strings only.
pub(super) fn commands(payload: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let wrong = || format!("no array of bulk strings: {}", payload.escape_ascii());
    let mut rest = payload;
    let mut commands = Vec::new();
    while !rest.is_empty() {
        let words = number(&mut rest, b'*').filter(|words| *words > 0).ok_or_else(wrong)?;
        let mut command = Vec::with_capacity(words);
        for _ in 0..words {
            let length = number(&mut rest, b'$').ok_or_else(wrong)?;
            let (word, behind) = rest.split_at_checked(length).ok_or_else(wrong)?;
            rest = behind.strip_prefix(b"\r\n").ok_or_else(wrong)?;
            command.push(word.to_vec());
        }
        commands.push(command);
    }
    Ok(commands)
}

fn number(bytes: &mut &[u8], kind: u8) -> Option<usize> {
    let line = bytes.strip_prefix(&[kind])?;
    let end = line.iter().position(|byte| *byte == b'\r')?;
    let digits = line.get(..end)?;
    *bytes = line.get(end..)?.strip_prefix(b"\r\n")?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// What a node that works says to the command; the choice decides who it is, and whether a key is free. `nil` is what
/// stands for nothing in the protocol that is spoken.
pub(super) fn honest(command: &[Vec<u8>], node: usize, choice: u64, nil: &[u8]) -> Vec<u8> {
    let verb = command.first().map_or(&b""[..], Vec::as_slice);
    match verb {
        b"HELLO" => match choice % 6 {
            0 => b"-ERR unknown command 'HELLO', with args beginning with: '3' \r\n".to_vec(),
            1 => hello("redis", "7.0.15"),
            2 => hello("redis", "8.4.0"),
            3 => hello("valkey", "8.1.1"),
            _ => hello("valkey", "9.1.2"),
        },
        b"AUTH" | b"SELECT" | b"CLIENT" => b"+OK\r\n".to_vec(),
        b"INFO" => match choice % 8 {
            0 => b"-NOPERM User u has no permissions to run the 'info' command\r\n".to_vec(),
            // Now and then a node is another one's second name, and now and then it was restarted.
            1 => info(0, "master"),
            2 => info(node, "slave"),
            3 => info(node + 100, "master"),
            _ => info(node, "master"),
        },
        b"PING" => b"+PONG\r\n".to_vec(),
        b"PTTL" => format!(":{}\r\n", i64::try_from(choice % 300).unwrap_or(0) - 2).into_bytes(),
        b"SET" if !choice.is_multiple_of(3) => b"+OK\r\n".to_vec(),
        b"SET" => nil.to_vec(),
        _ if !choice.is_multiple_of(3) => b":1\r\n".to_vec(),
        _ => b":0\r\n".to_vec(),
    }
}

fn hello(server: &str, version: &str) -> Vec<u8> {
    format!(
        "%3\r\n$6\r\nserver\r\n${}\r\n{server}\r\n$7\r\nversion\r\n${}\r\n{version}\r\n$5\r\nproto\r\n:3\r\n",
        server.len(),
        version.len()
    )
    .into_bytes()
}

fn info(node: usize, role: &str) -> Vec<u8> {
    let text = format!(
        "# Server\r\nrun_id:{node:040}\r\nuptime_in_seconds:1000\r\n# Replication\r\nrole:{role}\r\n"
    );
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// What a node says that does not work, or is none.
pub(super) fn odd(command: &[Vec<u8>], dice: &mut Dice<'_>) -> Vec<u8> {
    const TEXTS: [&[u8]; 24] = [
        b"_\r\n",
        b"$-1\r\n",
        b"+QUEUED\r\n",
        b":2\r\n",
        b":-1\r\n",
        b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-NOPERM User u has no permissions to run the 'set' command\r\n",
        b"-ERR ACL failure in script: User u has no permissions to run the 'get' command script: on @user_script:1.\r\n",
        b"-READONLY You can't write against a read only replica.\r\n",
        b"-MOVED 12182 127.0.0.1:7001\r\n",
        b"-ERR syntax error\r\n",
        b"-ERR unknown command 'DELIFEQ', with args beginning with: 'k' \r\n",
        b"-ERR max number of clients reached\r\n",
        b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        b"-NOAUTH Authentication required.\r\n",
        b"-WRONGTYPE Operation against a key holding the wrong kind of value script: on @user_script:1.\r\n",
        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n",
        b"*-1\r\n",
        b"*1\r\n*1\r\n*1\r\n+OK\r\n",
        b"|1\r\n+a\r\n+b\r\n+OK\r\n",
        b"*1000000000\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$3\r\nabc\r\n",
    ];
    let choice = dice.index(TEXTS.len() + 2);
    match TEXTS.get(choice) {
        Some(text) => text.to_vec(),
        // As servers do: they echo what they do not know, secrets too.
        None if choice == TEXTS.len() => {
            let mut echo = b"-ERR unknown command, with args beginning with:".to_vec();
            for word in command {
                echo.extend([b" '", word.as_slice(), b"'"].concat());
            }
            echo.retain(|byte| !matches!(byte, b'\r' | b'\n'));
            echo.extend(b"\r\n");
            echo
        }
        None => raw(dice),
    }
}

/// A few bytes as the fuzzer wants them.
pub(super) fn raw(dice: &mut Dice<'_>) -> Vec<u8> {
    let length = dice.below(24);
    (0..length).map(|_| u8::try_from(dice.below(256)).unwrap_or(0)).collect()
}
