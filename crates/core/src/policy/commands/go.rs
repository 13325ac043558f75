//! `go`: its options, and what the project's own program is given.

use super::super::ground::{Found, Resolved};
use super::super::verdict::{Rule, deny};
use super::argument::Argument;
use super::programs::refuse;
use super::simple::Call;
use super::{Walk, Walked};

/// Where people's files are, on systems other than this one as well.
const ROOTS: &[&str] = &[
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "bin",
    "boot",
    "data",
    "dev",
    "etc",
    "home",
    "lib",
    "lib64",
    "media",
    "mnt",
    "nix",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "sbin",
    "snap",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "work",
    "workspace",
];

pub(super) fn judge(walk: &Walk<'_>, call: &Call<'_>) -> Walked<()> {
    const REFUSED: &[&str] = &[
        "exec",
        "toolexec",
        "vettool",
        "overlay",
        "modfile",
        "C",
        "pkgdir",
        "compiler",
        "gccgoflags",
        "modcacherw",
        "workfile",
        "fuzzcachedir",
        "gocoverdir",
    ];
    const OUTPUTS: &[&str] = &[
        "o",
        "coverprofile",
        "cpuprofile",
        "memprofile",
        "blockprofile",
        "mutexprofile",
        "trace",
        "outputdir",
        "testlogfile",
    ];
    const TEXTS: &[&str] = &["run", "bench", "skip", "fuzz", "tags", "list"];
    let runs = call.arguments.first().is_some_and(|word| word.is("run"));
    let mut package = !runs;
    let mut for_the_test = false;
    let mut words = call.arguments.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(flag) = word.text.strip_prefix('-').filter(|_| !package || !runs) else {
            let package_is_told = package;
            if !package {
                package = true;
                let local = word.text.starts_with('.')
                    || word.text.rsplit_once('.').is_some_and(|(_, end)| end == "go");
                if !local || word.text.contains('@') {
                    return deny(
                        Rule::CommandArgument,
                        format!("`{}` is not of this module. Use a path like ./cmd.", word.text),
                    );
                }
            }
            if word.text.contains('@') && !runs {
                return refuse(call, &word.text);
            }
            if for_the_test || runs && package_is_told {
                walk.own_argument(word, call)?;
            } else {
                walk.plain(word, call)?;
            }
            continue;
        };
        word.literal()?;
        let flag = flag.strip_prefix('-').unwrap_or(flag);
        let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
        let name = name.strip_prefix("test.").unwrap_or(name);
        for_the_test |= name == "args";
        let changes_modules = name == "mod" && value != Some("readonly") && value != Some("vendor");
        let refused = REFUSED.contains(&name) || name.starts_with("debug-");
        if refused || changes_modules {
            return refuse(call, &word.text);
        }
        let output = OUTPUTS.contains(&name);
        let separate =
            value.is_none() && (output || TEXTS.contains(&name) || name.ends_with("flags"));
        let value = match value {
            Some(value) => value,
            None if separate => words.next().map_or(Ok(""), Argument::literal)?,
            None => continue,
        };
        if name.ends_with("flags") {
            if !are_plain_flags(value) {
                return refuse(call, &word.text);
            }
        } else if output {
            walk.writes(value, call.from)?;
        } else if !TEXTS.contains(&name) {
            walk.pieces(value, call)?;
        }
    }
    Ok(())
}

/// Whether options for go's compiler and linker only change what is built. Others
/// write files, or run another linker.
fn are_plain_flags(flags: &str) -> bool {
    const PLAIN: &[&str] = &["-m", "-m=2", "-m=3", "-N", "-l", "-S", "-B", "-e", "-s", "-w"];
    let mut names_value = false;
    flags.split_whitespace().all(|flag| {
        let flag = flag.trim_matches(['\'', '"']);
        if std::mem::take(&mut names_value) {
            return !flag.starts_with('-') && flag.contains('=');
        }
        // `all=-N`: for which packages.
        let flag = flag.split_once("=-").map_or(flag, |(packages, _)| {
            if packages.starts_with('-') { flag } else { &flag[packages.len() + 1..] }
        });
        names_value = flag == "-X";
        names_value || PLAIN.contains(&flag) || flag.starts_with("-X=")
    })
}

impl Walk<'_> {
    /// Judges an argument of a program that the project builds: it may be given
    /// temporary files, and `/api/users`, which no file system has.
    pub(super) fn own_argument(&self, word: &Argument, call: &Call<'_>) -> Walked<()> {
        let value = value(word.literal()?);
        if self.is_no_file(value) {
            return Ok(());
        }
        if value.starts_with('/') && !value.contains([',', ':', '=']) {
            return self.reads(value, call.from);
        }
        self.plain(word, call)
    }

    /// The same for a script, which loads what it is given: nothing temporary.
    pub(super) fn script_argument(&self, word: &Argument, call: &Call<'_>) -> Walked<()> {
        if word.literal().is_ok_and(|text| self.is_no_file(value(text))) {
            return Ok(());
        }
        self.plain(word, call)
    }

    /// Whether a text looks like a path whose very first directory is on no system.
    fn is_no_file(&self, text: &str) -> bool {
        let plain = text.starts_with('/') && !text.contains([',', ':', '=']);
        let root = text.split('/').find(|name| !name.is_empty()).unwrap_or_default();
        let climbs = text.split('/').any(|name| name == "..");
        let nowhere = |found: Resolved| matches!(found, Resolved::At { found: Found::Nothing, .. });
        let missing = || nowhere(self.ground.resolve(&format!("/{root}")));
        plain && !climbs && !root.is_empty() && !ROOTS.contains(&root) && missing()
    }
}

/// What stands behind the `=` of an option.
fn value(text: &str) -> &str {
    text.strip_prefix('-').and_then(|option| option.split_once('=')).map_or(text, |it| it.1)
}
