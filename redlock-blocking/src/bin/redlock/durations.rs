//! Durations as they are typed: `10s`, `500ms`, `1.5h`.

use core::time::Duration;

const UNITS: [(&str, u64); 4] =
    [("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000)];

/// Reads a number with `ms`, `s`, `m` or `h` behind it; without a unit it is seconds. A fraction is fine (`1.5s`), down
/// to the nanosecond; what is below is cut off.
///
/// # Errors
///
/// A sentence that says what is wrong with it.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.get(number.len()..).unwrap_or_default();
    let unit = if unit.is_empty() { "s" } else { unit };
    let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("unknown unit `{unit}`; write ms, s, m or h, as in 500ms or 10s"));
    };
    let (whole, fraction) =
        number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !fraction.is_none_or(is_number) {
        return Err("not a duration; write a number and a unit, as in 500ms, 10s, 2m or 1h".to_owned());
    }
    let too_long = || "too long a time; at most 584 years can be counted".to_owned();
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let mut total = whole.checked_mul(*nanos).ok_or_else(too_long)?;
    let mut place = *nanos;
    for digit in fraction.unwrap_or_default().bytes() {
        place /= 10;
        let part = place.saturating_mul(u64::from(digit.saturating_sub(b'0')));
        total = total.checked_add(part).ok_or_else(too_long)?;
    }
    Ok(Duration::from_nanos(total))
}

/// As [`parse`], or `forever`, which is [`Duration::MAX`].
///
/// # Errors
///
/// As [`parse`].
pub(crate) fn parse_or_forever(text: &str) -> Result<Duration, String> {
    if text == "forever" { Ok(Duration::MAX) } else { parse(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units() {
        for (text, millis) in [
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("7", 7_000),
            ("0", 0),
            ("0ms", 0),
            ("1.5s", 1_500),
            ("0.25", 250),
            ("1.5h", 5_400_000),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("0.5ms"), Ok(Duration::from_micros(500)));
        assert_eq!(parse("0.0000000019s"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn what_is_no_duration_is_told_so() {
        for text in
            ["", "s", "-1s", "+1s", "1 s", "1,5s", ".5s", "5.s", "1.2.3s", "1e3s", "ten", "1s2m", "٣s"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.contains("500ms"), "{text}: {error}");
        }
        assert!(parse("10x").unwrap_err().contains("`x`"));
        assert!(parse("10S").unwrap_err().contains("`S`"));
        for text in ["99999999999999999999s", "18446744073709551615s", "6000000h"] {
            assert!(parse(text).unwrap_err().contains("too long"), "{text}");
        }
    }

    #[test]
    fn for_ever_only_where_it_makes_sense() {
        assert_eq!(parse_or_forever("forever"), Ok(Duration::MAX));
        assert_eq!(parse_or_forever("3s"), Ok(Duration::from_secs(3)));
        assert!(parse("forever").is_err());
    }
}
