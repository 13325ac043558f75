//! Files that lend the rights of their owner: a program inside must not leave one
//! for somebody outside to run.

use blueflame::sandbox::Tier;

use crate::cage::{Cage, attempts, everything};

const WAYS: [&str; 11] = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "open",
    "openat",
    "openat2",
    "creat",
    "mknod",
    "mknodat",
    "tmpfile",
];

/// Each way, with the bit of the owner and with that of the group.
fn lends(way: &str, bit: u8) -> String {
    format!("{{POC}} lend {way} src/lent {bit}")
}

#[test]
fn no_file_that_lends_rights_is_made() {
    if attempts().is_none() {
        return;
    }
    let outside = Cage::new().in_tier(Tier::Off);
    let cages = Cage::all_kinds();
    let mut wrong = Vec::new();
    for way in WAYS {
        for bit in [1, 2] {
            let command = lends(way, bit);
            let free = outside.run(everything(), &command);
            // A kernel without `fchmodat2` proves nothing about it.
            if !free.worked() && !free.stdout.contains("not implemented") {
                wrong.push(format!("{command} does not work outside: {free:?}"));
            }
            for (who, cage) in &cages {
                let confined = cage.run(everything(), &command);
                if confined.worked() {
                    wrong.push(format!("{command} works in {who}: {confined:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Nobody inside has the capability that this needs; no filter is there for it.
#[test]
fn no_file_is_given_capabilities() {
    if attempts().is_none() {
        return;
    }
    let command = lends("capability", 1);
    for (who, cage) in Cage::all_kinds() {
        let confined = cage.run(everything(), &command);
        assert!(confined.stdout.contains("refused"), "{who}: {confined:?}");
    }
}

/// What programs do with modes every day, among it what is tried with a call that
/// is not there any more.
#[test]
fn ordinary_modes_are_set() {
    let command = "cd src && umask 022 && install -m 755 a.txt b && chmod 600 b && cp -p b c \
        && tar cf t.tar b c && mkdir -p x && tar xf t.tar -C x && chmod +x x/b && chmod 1777 x \
        && git init -q y && cp -a x z && rm -r x z && test \"$(stat -c %a b)\" = 600 \
        && if command -v python3; then python3 -c 'import os, tempfile, shutil; \
           f = tempfile.NamedTemporaryFile(dir=\".\"); os.chmod(f.name, 0o755); \
           shutil.copytree(\"y\", \"w\")'; fi";
    for (who, cage) in Cage::all_kinds() {
        let outcome = cage.run(everything(), command);
        assert!(outcome.worked(), "{who}: {outcome:?}");
    }
}
