//! Keys and tokens taken out of a text that goes where others may read it.

use std::sync::LazyLock;

use regex::Regex;

use super::key_shapes;

/// What stands in the place of one. Nobody takes it for a key again.
const HIDDEN: &str = "[hidden]";

/// How many there may be in a line; one with more has nothing else to say.
const MOST: usize = 50;

static KEY_END: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-----END ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----").expect("the pattern is tested")
});

/// The same text without what gives access to anything.
pub fn without_keys(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::with_capacity(text.len());
    // A private key has many lines, which look like nothing by themselves.
    while let Some(head) = key_shapes::key_head(rest) {
        kept.push_str(&rest[..head.start()]);
        kept.push_str(HIDDEN);
        let end = KEY_END.find(&rest[head.end()..]).map(|end| head.end() + end.end());
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    kept.push_str(rest);
    kept.split_inclusive('\n').map(line_without_keys).collect()
}

fn line_without_keys(line: &str) -> String {
    let mut line = line.to_owned();
    for _ in 0..MOST {
        let found = key_shapes::in_line(&line).first().map(|key| {
            // It is a part of the line.
            let start = key.text.as_ptr() as usize - line.as_ptr() as usize;
            start..start + key.text.len()
        });
        match found {
            Some(place) => line.replace_range(place, HIDDEN),
            None => return line,
        }
    }
    format!("{HIDDEN}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = concat!("ghp_", "0123456789abcdefghijklmnopqrstuvwxyz");
    const KEY: &str = concat!("AKIA", "Z7Q2N4KD83HFMW5T");

    #[test]
    fn keys_are_gone_and_everything_else_stays() {
        let password = concat!("DB_", "PASS=Xk29dLq0PzW7vB");
        let head = concat!("-----BEGIN RSA PRIV", "ATE KEY-----");
        let end = concat!("-----END RSA PRIV", "ATE KEY-----");
        let putty = concat!("PuTTY-User-", "Key-File-2: ssh-rsa");
        for (text, expected) in [
            ("nothing to hide\n".to_owned(), "nothing to hide\n"),
            (format!("push with {TOKEN} failed\nagain"), "push with [hidden] failed\nagain"),
            (format!("{TOKEN} {TOKEN} {KEY}"), "[hidden] [hidden] [hidden]"),
            (format!("{password}\r\nnext"), "DB_PASS=[hidden]\r\nnext"),
            (format!("a\n{head}\nMIIE\nabc\n{end}\nb"), "a\n[hidden]\nb"),
            (format!("a {head} MIIE cut o"), "a [hidden]"),
            (format!("said:\n{putty}\nEncryption: none\nAAAA"), "said:\n[hidden]"),
        ] {
            let hidden = without_keys(&text);
            assert_eq!(hidden, expected);
            assert_eq!(without_keys(&hidden), expected, "once is enough");
        }
        let many = vec![TOKEN; 200].join(" ");
        assert_eq!(without_keys(&many), "[hidden]\n");
    }
}
