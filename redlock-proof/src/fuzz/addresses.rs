//! What users write for addresses: it is understood or refused, and no password is ever shown.

use super::check;
use redlock_core::{Address, Config, parse_list};

/// What stands for a password. Nothing that is shown may have it.
const MARK: &str = "hunter2SECRET";

/// Reads the bytes as an address, as a list of addresses, and as the parts around a password.
///
/// # Errors
///
/// An address that does not come back from its own text, or a password that is shown.
pub fn addresses(bytes: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(address) = Address::parse(&text) {
        round_trip(&address)?;
    }
    if let Ok(list) = parse_list(&text) {
        list.iter().try_for_each(round_trip)?;
    }
    let (choice, text) = bytes.split_first().unwrap_or((&0, &[]));
    secret(*choice, &String::from_utf8_lossy(text))
}

fn round_trip(address: &Address) -> Result<(), String> {
    let shown = address.to_string();
    let again = Address::parse(&shown).map_err(|error| format!("{shown:?} does not parse: {error}"))?;
    check(again.endpoint() == address.endpoint(), || format!("{shown:?} is another server"))?;
    check(again.is_tls() == address.is_tls(), || format!("{shown:?} has another transport"))?;
    check(again.username() == address.username(), || format!("{shown:?} has another user"))?;
    check(again.database() == address.database(), || format!("{shown:?} has another database"))?;
    check(again.password().is_none(), || format!("{shown:?} has a password"))?;
    check(again.to_string() == shown, || format!("{shown:?} is not canonical: {again}"))?;
    // What is shown does not depend on the password.
    let user = address.username().unwrap_or_default();
    let [one, other] = [MARK, "x"].map(|password| address.clone().with_credentials(user, password));
    check(one.to_string() == shown && other.to_string() == shown, || format!("{one} and {other}"))?;
    check(format!("{one:?}") == format!("{other:?}"), || format!("{one:?} and {other:?}"))
}

/// Puts a password where a user would, among parts that the fuzzer bends.
fn secret(choice: u8, text: &str) -> Result<(), String> {
    const SCHEMES: [&str; 8] = [
        "redis://",
        "rediss://",
        "valkey://",
        "unix://",
        "redis+unix://",
        "REDIS://",
        "valkeys://",
        " redis://",
    ];
    let scheme = SCHEMES[usize::from(choice) % SCHEMES.len()];
    let (user, rest) = text.split_once('\n').unwrap_or(("", text));
    // A user's name ends at the colon; an `@` or a `/` in it would end the credentials.
    let user = user.replace([':', '@', '/', ',', '?', '#'], "");
    let (behind, host) = rest.split_once('\n').unwrap_or(("", rest));
    // Where the password ends is where the last `@` of the credentials is: one behind it belongs to a path.
    let host = host.replace('@', "");
    let whole = format!("{scheme}{user}:{MARK}{behind}@{host}");
    let mut shown = Vec::new();
    match Address::parse(&whole) {
        Ok(address) => {
            round_trip(&address)?;
            shown.push(format!("{address} {address:?} {address:#?}"));
        }
        Err(error) => shown.push(format!("{error} {error:?} {error:#?}")),
    }
    for list in [whole.clone(), format!("a,{whole}"), format!("{whole},b:1")] {
        if let Err(error) = parse_list(&list) {
            shown.push(format!("{error} {error:?}"));
        }
    }
    match Config::builder().nodes(["a", whole.as_str(), "b"]).build() {
        Ok(config) => shown.push(format!("{config:?}")),
        Err(error) => shown.push(format!("{error} {error:?}")),
    }
    shown
        .iter()
        .try_for_each(|shown| check(!shown.contains(MARK), || format!("{whole:?} is shown as {shown}")))
}
