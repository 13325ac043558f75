//! A plan as a profile for macOS, where the kernel takes one from
//! `/usr/bin/sandbox-exec`. Never tried on a Mac: only the text is tested.
//!
//! There are no namespaces there: names of files can be seen, limits are those of
//! each process, and the network is closed but for sockets in the program's own
//! directories and its gateway.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::plan::{Plan, View};

/// What every program needs, whatever the plan says. The last rule that fits an
/// operation counts.
const ALWAYS: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow file-read-metadata (vnode-type DIRECTORY))
(allow file-read* (literal "/") (subpath "/System") (subpath "/Library/Apple") (subpath "/Library/Developer") (subpath "/private/var/db/dyld") (subpath "/private/var/db/timezone") (subpath "/private/var/select") (subpath "/dev/fd"))
(allow file-map-executable (subpath "/System") (subpath "/Library/Apple"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger"))
(deny process-exec (literal "/usr/bin/osascript") (literal "/usr/bin/open") (literal "/bin/launchctl") (literal "/usr/bin/security") (literal "/usr/bin/crontab") (literal "/usr/bin/at"))
"#;

/// The profile that keeps a program to a plan.
pub fn profile(plan: &Plan) -> String {
    let mut text = ALWAYS.to_owned();
    let mut rule = |rule: &str, path: &Path| {
        let _ = writeln!(text, "({rule} {})", filter(path));
    };
    // From the top down: what lies in something else comes after it.
    for (path, view) in &plan.views {
        match (view, plan.open.get(path)) {
            (View::Read(from), _) => {
                rule("allow file-read* file-map-executable", from);
                rule("deny file-write*", from);
            }
            (View::Write(from), None) => {
                rule("allow file-read* file-map-executable file-write*", from);
                rule("allow network-bind network-outbound", from);
            }
            // A rule can name a single file: nothing beside it is opened.
            (View::Write(from), Some(free)) => {
                rule("allow file-read* file-map-executable", from);
                for file in free {
                    rule("allow file-write*", file);
                }
            }
            // Links are the machine's own, and there is no memory to give.
            (View::Link(_) | View::Fresh(_), _) => {}
        }
    }
    if let Some(gateway) = &plan.gateway {
        rule("allow network-outbound", gateway);
    }
    // These last: a directory that can be written can else be moved away.
    for git_dir in plan.views.keys().filter(|path| path.ends_with(".git")) {
        let _ = writeln!(text, "(deny file-write-unlink (literal {}))", quoted(git_dir));
    }
    text
}

/// A path and all below it; for a file that is the file.
fn filter(path: &Path) -> String {
    format!("(subpath {})", quoted(path))
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// The command line that puts a profile into force.
pub fn confined(plan: &Plan, program: &[std::ffi::OsString]) -> Vec<std::ffi::OsString> {
    let launcher = [PathBuf::from("/usr/bin/sandbox-exec").into(), "-p".into()];
    let profile = profile(plan).into();
    launcher.into_iter().chain([profile]).chain(program.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::plan::{Limits, Tier};
    use super::*;

    fn plan() -> Plan {
        let at = PathBuf::from;
        Plan {
            tier: Tier::Namespaces,
            views: BTreeMap::from([
                (at("/usr"), View::Read(at("/usr"))),
                (at("/bin"), View::Link(at("usr/bin"))),
                (at("/tmp"), View::Fresh(1)),
                (at("/w"), View::Read(at("/w"))),
                (at("/w/.git"), View::Write(at("/w/.git"))),
                (at("/w/.git/hooks"), View::Read(at("/w/.git/hooks"))),
                (at("/w/docs"), View::Write(at("/w/docs"))),
                (at("/w/src"), View::Write(at("/w/src"))),
            ]),
            open: BTreeMap::from([(at("/w/docs"), vec![at("/w/docs/a \"b\".md")])]),
            home: at("/home"),
            gateway: Some(at("/run/gateway")),
            door: None,
            limits: Limits::default(),
        }
    }

    #[test]
    fn a_plan_becomes_rules_in_its_order() {
        let text = profile(&plan());
        let own: Vec<&str> = text.strip_prefix(ALWAYS).unwrap().lines().collect();
        assert_eq!(
            own,
            [
                r#"(allow file-read* file-map-executable (subpath "/usr"))"#,
                r#"(deny file-write* (subpath "/usr"))"#,
                r#"(allow file-read* file-map-executable (subpath "/w"))"#,
                r#"(deny file-write* (subpath "/w"))"#,
                r#"(allow file-read* file-map-executable file-write* (subpath "/w/.git"))"#,
                r#"(allow network-bind network-outbound (subpath "/w/.git"))"#,
                r#"(allow file-read* file-map-executable (subpath "/w/.git/hooks"))"#,
                r#"(deny file-write* (subpath "/w/.git/hooks"))"#,
                r#"(allow file-read* file-map-executable (subpath "/w/docs"))"#,
                r#"(allow file-write* (subpath "/w/docs/a \"b\".md"))"#,
                r#"(allow file-read* file-map-executable file-write* (subpath "/w/src"))"#,
                r#"(allow network-bind network-outbound (subpath "/w/src"))"#,
                r#"(allow network-outbound (subpath "/run/gateway"))"#,
                r#"(deny file-write-unlink (literal "/w/.git"))"#,
            ]
        );
    }

    #[test]
    fn nothing_is_allowed_that_no_rule_names() {
        let text = profile(&plan());
        assert!(text.starts_with("(version 1)\n(deny default)\n"), "{text}");
        assert!(!text.contains("(allow default)") && !text.contains("(remote ip"), "{text}");
        let depth = text.chars().fold(0, |depth, it| match it {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        });
        assert_eq!(depth, 0, "{text}");
    }

    #[test]
    fn the_program_comes_after_its_profile() {
        let words = confined(&plan(), &["/bin/sh".into(), "-c".into()]);
        assert_eq!(words[0], "/usr/bin/sandbox-exec");
        assert_eq!(words[3..], ["/bin/sh", "-c"].map(std::ffi::OsString::from));
    }
}
