//! What an unquoted scalar is, by the core schema of YAML 1.2.
//!
//! Only `true` and `false` are booleans: `yes`, `no`, `on` and `off` are text.

/// The meaning of an unquoted scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    /// A whole number with more digits than any number we could take.
    HugeInt,
    Float(f64),
    Text,
}

pub(super) fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
        "true" | "True" | "TRUE" => Plain::Bool(true),
        "false" | "False" | "FALSE" => Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => Plain::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Plain::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Plain::Float(f64::NEG_INFINITY),
        _ => number(text),
    }
}

fn number(text: &str) -> Plain {
    if let Some(digits) = text.strip_prefix("0x").filter(|d| all(d, |b| b.is_ascii_hexdigit())) {
        return i128::from_str_radix(digits, 16).map_or(Plain::HugeInt, Plain::Int);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|d| all(d, |b| (b'0'..=b'7').contains(&b)))
    {
        return i128::from_str_radix(digits, 8).map_or(Plain::HugeInt, Plain::Int);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if all(unsigned, |b| b.is_ascii_digit()) {
        return text.parse().map_or(Plain::HugeInt, Plain::Int);
    }
    if is_float(unsigned) {
        // Everything that has this shape is understood by the standard library.
        return text.parse().map_or(Plain::Text, Plain::Float);
    }
    Plain::Text
}

fn all(text: &str, fits: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(fits)
}

/// Digits with a point, with an exponent, or both.
fn is_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent
        .is_none_or(|e| all(e.strip_prefix(['-', '+']).unwrap_or(e), |b| b.is_ascii_digit()));
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquoted_scalars_mean_what_the_core_schema_says() {
        for (text, plain) in [
            ("", Plain::Null),
            ("~", Plain::Null),
            ("null", Plain::Null),
            ("true", Plain::Bool(true)),
            ("False", Plain::Bool(false)),
            ("yes", Plain::Text),
            ("no", Plain::Text),
            ("on", Plain::Text),
            ("12", Plain::Int(12)),
            ("-12", Plain::Int(-12)),
            ("+12", Plain::Int(12)),
            ("007", Plain::Int(7)),
            ("0x1F", Plain::Int(31)),
            ("0o17", Plain::Int(15)),
            ("0x", Plain::Text),
            ("1_000", Plain::Text),
            ("1.5", Plain::Float(1.5)),
            ("1.", Plain::Float(1.0)),
            (".5", Plain::Float(0.5)),
            ("1e3", Plain::Float(1000.0)),
            ("-1.5E-2", Plain::Float(-0.015)),
            (".", Plain::Text),
            ("e3", Plain::Text),
            ("1e", Plain::Text),
            ("1.2.3", Plain::Text),
            ("-", Plain::Text),
            ("300s", Plain::Text),
            ("inf", Plain::Text),
            ("nan", Plain::Text),
        ] {
            assert_eq!(resolve(text), plain, "{text:?}");
        }
        assert_eq!(resolve(&"9".repeat(60)), Plain::HugeInt);
        assert_eq!(resolve("-.inf"), Plain::Float(f64::NEG_INFINITY));
        assert!(matches!(resolve(".nan"), Plain::Float(nan) if nan.is_nan()));
    }
}
