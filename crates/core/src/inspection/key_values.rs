//! Keys of no known shape, told by the name that they are given and by how much
//! they look like chance.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::encoded;
use super::key_shapes::{Certainty, Key};
use super::wording::{entropy, has_words, is_chance};

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns stand here and are tested")
}

/// What a line has in it that names a key: a quick look before the long one.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)secret|token|pass|pwd|[_-]?key|credential|auth|_pat|login|curl|mysql|(?-u:\b)basic",
    )
});

/// `api_key = "…"`, `"password": "…"`, `setToken('…')`: a name that says so, and
/// a text in quotes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)(?P<name>[a-z0-9_.-]{0,40}(?:(?:secret|token|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|signing[_-]?key|encryption[_-]?key|master[_-]?key|write[_-]?key|app[_-]?key|credential)[a-z0-9_.-]{0,20}|(?-u:\b)(?:pass|pwd)|[_.-](?:pass|pwd)|(?-i:[a-z0-9](?:Pass|Pwd))))(?:\\?["'`\]]){0,2}\s*(?::[ a-z0-9_&'<>]{1,20})?(?:=>|:=|==?|:|,|\()\s*(?:[A-Za-z_.]{0,20}\()?\(?\\?["'`](?P<value>[^\s"'`\\<>{}$()]{12,200})\\?["'`]"#,
    )
});

/// `API_KEY=…` as files for the environment and for build servers have it.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^\s*(?:export\s+|ENV\s+|ARG\s+|-\s+)?(?P<name>[A-Za-z0-9_.-]{0,40}(?i:(?:secret|token|password|passwd|api[_-]?key|access[_-]?key|private[_-]?key|master[_-]?key|write[_-]?key|app[_-]?key)[a-z0-9_.-]{0,20}|(?-u:\b)(?:pass|pwd)|_(?:pass|pwd|pat)))\s*(?:=|:\s)\s*(?P<value>[A-Za-z0-9+/=_.~!@%^*:-]{12,1200})\s*;?(?:\s[#;].*|\s//.*)?$",
    )
});

/// `ENV API_TOKEN …`, as a Dockerfile may have it, and `storePassword '…'`, as
/// build scripts do.
static SPACED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"^\s*(?:ENV\s+(?P<name>[A-Z0-9_]{0,40}(?:SECRET|TOKEN|PASSWORD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY)[A-Z0-9_]{0,20})\s+|(?:store|key)Password\s+)["']?(?P<value>[^\s"'`<>{}$()]{12,200})["']?\s*$"#,
    )
});

/// `--token …`, as programs are told on a command line.
static FLAG: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?:^|\s)--?(?P<name>[a-z-]{0,30}(?:token|password|secret|api-?key|passphrase))[ =]["']?(?P<value>[^\s"'`<>{}$()]{12,200})"#,
    )
});

/// A password among the arguments of a program that takes it as it is.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?:(?:docker|podman|buildah|helm registry)\s+login\s.{0,200}?-p[ =]?|(?-u:\b)sshpass\s+-p\s*|(?-u:\b)mysql(?:dump|admin)?\s.{0,200}?-p|(?-u:\b)curl\s.{0,200}?(?:-u|--user)[ =]?["']?[^\s:"']{1,60}:)["']?(?P<value>[^\s"'`<>{}$()]{10,200})"#,
    )
});

/// `SECRET_KEY = '…'` of a web framework, whose keys have all signs in them.
static SIGNING: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?-u:\b)SECRET_KEY\s*[=:]\s*["'](?P<value>[^\s"']{40,80})["']"#));

/// `<password>…</password>`, and `key="ApiSecret" value="…"`.
static MARKUP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)<(?P<name>[a-z0-9_.:-]{0,30}(?:password|passwd|secret|token|api-?key))>\s*(?P<value>[^\s<>{}$()"']{12,200})\s*</|(?:key|name)="(?P<title>[^"]{0,40}(?:password|secret|token|api[_-]?key)[^"]{0,20})"\s+value="(?P<given>[^\s<>{}$()"']{12,200})""#,
    )
});

/// `host:port:database:user:…`, as programs look passwords up.
static COLONS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^[A-Za-z0-9.*-]{1,100}:(?:\d{2,5}|\*):[^\s:/]{1,60}:[^\s:/]{1,60}:(?P<value>[^\s:]{12,100})$",
    )
});

/// So many colons are in what [`COLONS`] finds. To make that ready takes longer than to look
/// through everything that most agents write.
const COLONS_AT_LEAST: usize = 4;

/// `Authorization: Bearer …`.
static BEARER: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)(?-u:\b)authorization["']?\s*[:=,]\s*["']?(?:bearer|token)\s+(?P<value>[A-Za-z0-9+/_.=-]{20,1200})"#,
    )
});

/// A name and a password in base 64, as programs log in with.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)(?:"auth"\s*:\s*"|(?-u:\b|:)_auth\s*=\s*["']?|(?-u:\b)authorization["']?\s*[:=,]\s*["']?basic\s+)(?P<pair>[A-Za-z0-9+/]{16,200})(?:[="'\s]|$)"#,
    )
});

/// `…;Password=…;` in the string that a program reaches a database with, and
/// `?api_key=…&` in an address.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"(?i)[;"'?&]\s*(?P<name>password|pwd|sharedaccesskey|api_?key|secret|access_token|client_secret)\s*=\s*(?P<value>[^\s;&"'`<>{}$()\\]{12,200})(?:[;&"'`\\\s]|$)"#,
    )
});

/// `machine … password …`, as programs look passwords up.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^\s*(?:machine\s+\S+|default)\s(?:.{0,200}\s)?(?P<name>password)\s+(?P<value>\S{8,200})",
    )
});

/// `scheme://user:password@host`.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?-u:\b)[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{0,60}:(?P<value>[^\s/:@{}$<>\[\]\\]{3,100})@(?P<host>[A-Za-z0-9\[][A-Za-z0-9.:-]*)",
    )
});

/// Names of things that look like chance and open nothing.
static PUBLIC: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)public|pubkey|sha\d|hash|digest|checksum|integrity|fingerprint|thumbprint|nonce|salt|url|uri|path|file|name|header|prefix|suffix|type|kind|regex|pattern|alphabet|charset|token_?id$|tokeniz|cancellation|csrf|path|label|locale|selector|placeholder|address|contract|publishable|site_?key",
    )
});

/// Words of values that were made up, and shapes of those that anybody may know:
/// addresses of a chain, keys that are published.
static MADE_UP: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i)example|dummy|sample|fake|mock|test|placeholder|change_?me|your|insert|redacted|removed|hidden|todo|foo|bar|abcdef|qwert|asdf|letmein|hunter2|correct|horse|lorem|secret|passw|token|apikey|api[_-]key|none|null|undefined|0000|1111|1234|xxxx|\*\*\*|\.\.\.|^env[.:]|^vault:|^arn:|^op://|^https?:|^data:|^[a-z]+://|^0x[0-9a-f]{40}$|^pk_(?:live|test)_|^eyJ|^sha\d+[:-]",
    )
});

/// The key that a line gives a name to, if it looks like one.
pub(super) fn in_line(line: &str) -> Option<Key<'_>> {
    if line.contains("://")
        && let Some(found) = ADDRESS.captures(line)
    {
        return address(&found);
    }
    let looked_up = || line.matches(':').count() >= COLONS_AT_LEAST && COLONS.is_match(line);
    if !NAMED.is_match(line) && !looked_up() {
        return None;
    }
    if let Some(key) = pair(line) {
        return Some(key);
    }
    let patterns = [
        &*QUOTED, &*PLAIN, &*PART, &*LOGIN, &*SPACED, &*FLAG, &*ARGUMENT, &*SIGNING, &*MARKUP,
        &*COLONS, &*BEARER,
    ];
    patterns.into_iter().find_map(|pattern| {
        let found = pattern.captures(line)?;
        let name = found.name("name").or(found.name("title")).map_or("", |name| name.as_str());
        let text = found.name("value").or(found.name("given"))?.as_str();
        let made_up = MADE_UP.is_match(text) || PUBLIC.is_match(name);
        (!made_up && is_chance(text)).then_some(Key {
            name: "what looks like a password or key",
            certainty: Certainty::Sure,
            text,
        })
    })
}

/// `name:password` in base 64, if the password is one.
fn pair(line: &str) -> Option<Key<'_>> {
    let text = PAIR.captures(line)?.name("pair")?.as_str();
    let decoded = encoded::decoded(text.as_bytes())?;
    let (_, password) = decoded.split_once(':')?;
    let sure = password.len() >= 8 && !MADE_UP.is_match(&decoded) && is_chance(password);
    sure.then_some(Key {
        name: "a name and a password in base 64",
        certainty: Certainty::Sure,
        text,
    })
}

fn address<'t>(found: &Captures<'t>) -> Option<Key<'t>> {
    let (text, host) = (found.name("value")?.as_str(), found.name("host")?.as_str());
    let here = ["localhost", "127.", "[::1", "0.0.0.0", "example.", "host", "db.example", "test"]
        .iter()
        .any(|beginning| host.starts_with(beginning))
        || [".local", ".test", ".example", "example.com", "example.org"]
            .iter()
            .any(|end| host.trim_end_matches('.').ends_with(end));
    let of_both_cases = text.chars().any(|c| c.is_ascii_lowercase())
        && text.chars().any(|c| c.is_ascii_uppercase())
        && !has_words(text);
    let strong = text.len() >= 10 && text.chars().any(|c| c.is_ascii_digit())
        || text.len() >= 20 && of_both_cases;
    let sure = strong && !here && !MADE_UP.is_match(text) && entropy(text) >= 3.0;
    let certainty = if sure { Certainty::Sure } else { Certainty::Likely };
    Some(Key { name: "a password in an address", certainty, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_value_that_looks_like_chance_is_a_key() {
        for line in [
            concat!("const API_", "KEY = \"k8Fq2ZpL0vXw7RtB3nYs\";"),
            concat!("  \"client_", "secret\": \"9f86d081884c7d659a2feaa0c55ad015\","),
            concat!("pass", "word: 'Xk29dLq0PzW7vB'"),
            concat!("let db_pass", "word: &str = \"Xk29dLq0PzW7vB\";"),
            concat!("export STRIPE_", "TOKEN=k8Fq2ZpL0vXw7RtB3nYs"),
            concat!("  auth_", "token: k8Fq2ZpL0vXw7RtB3nYs"),
            concat!("client.setApi", "Key(\"k8Fq2ZpL0vXw7RtB3nYs\")"),
            concat!("api_", "key = \"x7kqmzvwtr92hdpl4bncyfgs\""),
            concat!("DB_", "PASS=Xk29dLq0PzW7vB"),
            concat!("db", "Pass = 'Xk29dLq0PzW7vB'"),
            concat!("\"Server=db;User=sa;Pass", "word=Xk29dLq0PzW7vB;\""),
            concat!("get(\"https://api.acme.io/v1?api_", "key=k8Fq2ZpL0vXw7RtB3nYs&a=1\")"),
            concat!("JWT_", "SECRET=k8Fq2ZpL0vXw7RtB3nYs # prod"),
            concat!("api_", "key=k8Fq2ZpL0vXw7RtB3nYs;"),
            concat!("machine api.acme.io login me pass", "word Xk29dLq0PzW7vB"),
            concat!("dsn = \"postgres://app:", "Xk29dLq0PzW7@db.prod.acme.io/app\""),
            concat!("cloudinary://729343010713966:", "cvwJZOnaOmSsqYettGJuXahRvvz@acme"),
            concat!("  SecretAccess", "Key: VKu4MbMnrHxtIKZRAQ/Ggl2JfaQqHu42bqjzeVs7"),
            concat!("RAILS_MASTER_", "KEY=37c6675d3bed355ca5ebaabdda76c8be"),
            concat!("AZURE_DEVOPS_", "PAT=czv3gagqoo4xz5jwb6gs2fhjwtv5n6w6g44uetchbvgkplkv35oz"),
            concat!("SECRET_", "KEY = '--!g#&tc=!yfdvw10ho+&#a^^ydt7cu8!ju6-ojd(=z2)#!6fo'"),
            concat!("docker login -u bot ", "-p EKVdJzqfzGBXSiWiEJmF8 registry.acme.io"),
            concat!("curl -u admin", ":zPKmJNVHpq7rXBuR7K3 https://api.acme.io"),
            concat!("sshpass ", "-p '8N7j310savSZht6' ssh root@x.acme.io"),
            concat!("mysql -uroot ", "-pCEbvnVInnIHWqJEN9 -h db.acme.io"),
            concat!("<add key=\"Api", "Secret\" value=\"PEV8WL39SnWVWouw5rGRBrdexwCFGH1h\"/>"),
            concat!("<pass", "word>CNxZR8SZ84em54Dffz5l3</password>"),
            concat!("store", "Password 's99egkrhSjFj3nH87'"),
            concat!("ENV API_", "TOKEN l1TS5QYjkphcuKiCqxlnJTcQuwjxCIkIth6bz7FX"),
            concat!("deploy --", "token bzN1oCwfudMPmLHoY7XrmbfI2CRQ9fGzmFuMMG8d"),
            concat!("deploy --api-", "key=6QxzjT2BxyxaswwtC3JfnU4CVAZCskZU5BU5Ai1L"),
            concat!("db.acme.io:5432:", "app:app:pyXCpVcmDVXgHQnEyR2"),
            concat!("-H \"Authorization: ", "Bearer fhQABxwmuwMPbXtkwN0ZCNjCc70omRxjWU2fhVdp\""),
            concat!("\"auth\": \"", "YWNtZWJvdDpYazI5ZExxMFB6Vzd2Qg==\""),
            concat!("_auth=", "YWRtaW46WGsyOWRMcTBQelc3dkI="),
        ] {
            assert_eq!(in_line(line).map(|key| key.certainty), Some(Certainty::Sure), "{line}");
        }
    }

    #[test]
    fn what_only_sounds_like_one_is_none() {
        for line in [
            "let token = parser.next_token();",
            "password = os.environ[\"DB_PASSWORD\"]",
            "api_key: ${{ secrets.API_KEY }}",
            "\"token\": \"your-token-goes-here-1\"",
            "const TOKEN_URL = \"https://login.acme.io/oauth2/v2.0/token\";",
            "password: \"correct-horse-battery-staple\"",
            "token_hash = \"9f86d081884c7d659a2feaa0c55ad015\"",
            "access_key = \"user.preferences.v2.accessKeyLabel\"",
            "SECRET_KEY_BASE=changeme1234",
            "secretName: my-app-tls-2024-internal",
            "const tokenAddress = \"0x6B175474E89094C44Da98b954EedeAC495271d0F\";",
            "token: \"0x6B175474E89094C44Da98b954EedeAC495271d0F\"",
            "apiKey: \"pk_live_51Hq2ZpL0vXw7RtB3nYsk8F\"",
            "PWD=/home/someone/project2024",
            "let private_key = \"-----BEGIN\";",
            "\"tokenizer\": \"Qwen2TokenizerFastV3a9\"",
            "curl -u \"$USER:$PASS\" https://api.acme.io",
            "docker login -u bot -p ${{ secrets.REGISTRY }} registry.acme.io",
            "deploy --token \"$DEPLOY_TOKEN\"",
            "\"auth\": \"dXNlcjpwYXNzd29yZA==\"",
            "<password>${db.password}</password>",
            "12:30:10:20:some.words.here",
            "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.0123456789ab",
        ] {
            assert_eq!(in_line(line), None, "{line}");
        }
        let example = "postgres://app:hunter22@db.example.com/app";
        assert_eq!(in_line(example).map(|key| key.certainty), Some(Certainty::Likely));
    }
}
