//! Programs that people list: what they change, and what they may be asked to do.

use blueflame_core::ids::Role;
use blueflame_core::policy::Policy;

use super::ground::{bash, locked, rules};

#[test]
fn listed_commands_that_change_files_follow_the_scope() {
    let yaml = "permissions: {bash_rules: {allowed_commands: [rm, mv, cp, mkdir, git rm, chmod], \
                blocked_patterns: []}}";
    let policy = Policy::new(locked(rules(yaml, Role::Worker), &["src/auth"])).unwrap();
    for (command, expected) in [
        ("rm src/auth/a.go", "commands.allowed"),
        ("rm -rf src/a.go", "paths.scope"),
        ("rm -rf /", "paths.outside"),
        ("rm src/auth/*", "commands.allowed"),
        ("rm src/a*", "paths.scope"),
        ("rm *", "paths.not-allowed"),
        ("rm -r src/auth; cd src/auth; ls > a.txt", "paths.not-allowed"),
        ("cd src && ls; cd ..", "commands.allowed"),
        ("rm -r src/auth; cd src/auth; ls; cd ..; cd ..", "paths.outside"),
        ("while true; do cd src/auth; ls; cd ../..; rm -r src/auth; done", "paths.outside"),
        ("mv src/auth/a.go docs/a.go", "paths.scope"),
        ("mv -t docs src/auth/a.go", "commands.flag"),
        ("cp docs/a.md src/auth/a.md", "commands.allowed"),
        ("cp /etc/passwd src/auth/a.md", "paths.outside"),
        ("cp src/auth/a.go docs/a.go", "paths.scope"),
        ("mkdir -p src/auth/new", "commands.allowed"),
        ("git rm src/a.go", "paths.scope"),
        ("git rm -q src/auth/a.go", "commands.allowed"),
        ("ln -s /etc src/auth/x", "commands.not-allowed"),
    ] {
        let verdict = bash(&policy, command);
        assert_eq!(verdict.rule, expected, "{command}: {verdict:?}");
    }
}

#[test]
fn listed_programs_run_no_others() {
    let yaml = "permissions: {bash_rules: {allowed_commands: [git, rg, tar, rsync, man, gcc, sed, \
                find, awk, cp], blocked_patterns: []}}";
    let policy = Policy::new(rules(yaml, Role::Worker)).unwrap();
    for (command, expected) in [
        ("rg -n main src", "commands.allowed"),
        ("rg --pre src/x main", "commands.flag"),
        ("rg --pre=src/x main", "commands.flag"),
        ("tar -tf src/a.tar", "commands.allowed"),
        ("tar -xf src/a.tar --to-command=x", "commands.flag"),
        ("tar -cIx -f src/a.tar src", "commands.flag"),
        ("tar --checkpoint-act=exec=x -cf src/a.tar src", "commands.flag"),
        ("rsync -ae x src docs", "commands.flag"),
        ("man -P x ls", "commands.flag"),
        ("gcc -Wall -c src/a.c -o src/a.o", "commands.allowed"),
        ("gcc -fplugin=src/x.so src/a.c", "commands.flag"),
        ("gcc @src/f1.txt", "commands.flag"),
        ("git cat-file -p HEAD:src/a.go", "commands.allowed"),
        ("echo HEAD:.env | git cat-file --batch", "commands.flag"),
        ("git cat-file --filters HEAD:src/a.go", "commands.flag"),
        ("git rev-list --stdin", "commands.flag"),
        ("sed -i s/a/b/ src/a.go", "commands.allowed"),
        ("sed -i s/a/b/ Makefile", "paths.not-allowed"),
        ("sed -i 's/a/b/w Makefile' src/a.go", "commands.flag"),
        ("find . -delete", "commands.flag"),
        ("awk '{print > \"Makefile\"}' src/a.go", "commands.flag"),
        ("cp /tmp/x src/x", "commands.allowed"),
        ("cp src/a.go /tmp/x", "commands.allowed"),
        ("cp .env src/x", "paths.secret"),
    ] {
        let verdict = bash(&policy, command);
        assert_eq!(verdict.rule, expected, "{command}: {verdict:?}");
    }
}
