//! Command lines by chance: mostly ordinary, with something in them that shells
//! read in their own way.
//!
//! What must never be run is called `evil`. It stands in quotes, comments,
//! here-documents and messages, where it is text, and behind everything by which
//! it could come out of them.

/// A small generator, so that a failure can be told by its number.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Seeds that are next to each other have nothing in common.
    pub fn of(seed: u64) -> Chance {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Chance((mixed ^ (mixed >> 31)) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.0 % end).unwrap_or(0)
    }

    fn of_list<'l>(&mut self, list: &[&'l str]) -> &'l str {
        list[self.below(list.len())]
    }

    /// Once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Programs that the lines run, or that they may run when a letter is changed; what
/// else a shell looks for is a finding.
pub const PROGRAMS: &[&str] = &[
    "git",
    "ls",
    "cat",
    "head",
    "tail",
    "grep",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "nl",
    "tee",
    "basename",
    "dirname",
    "go",
    "make",
    "npm",
    "cargo",
    "time",
    "timeout",
    "find",
    "sed",
    "awk",
    "diff",
    "tac",
    "rev",
    "comm",
    "nproc",
    "which",
    "seq",
    "cmp",
    "stat",
    "du",
    "file",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "od",
    "egrep",
    "fgrep",
    "jq",
];

/// Commands that are allowed, each complete in itself.
const ORDINARY: &[&str] = &[
    "git status",
    "git log --oneline -5",
    "git diff HEAD",
    "git add src/a",
    "git commit -m 'fix(task-1): evil'",
    "git commit -m \"$(cat <<'E'\nfix(task-1): x\n\nevil\nE\n)\"",
    "ls src",
    "ls -la",
    "cat src/a",
    "cat src/a src/b.txt",
    "head -n 5 src/a",
    "tail -20 src/b.txt",
    "grep -rn evil src",
    "grep -e 'evil\\|x' src/a",
    "wc -l src/a",
    "sort src/a",
    "echo evil",
    "echo 'evil; evil'",
    "echo \"evil $HOME evil\"",
    "echo \"$(cat src/a)\"",
    "printf '%s\\n' evil",
    "printf 'evil %s' \"$f\"",
    "true",
    "false",
    ":",
    "pwd",
    "cd src",
    "test -f src/a",
    "[ -n \"$f\" ]",
    "[ evil = evil ]",
    "basename src/evil",
    "tee src/x",
    "tr a-z A-Z",
    "cut -d: -f1 src/a",
    "timeout 5 ls",
    "time ls",
    "CI=1 ls",
    "cat <<'E'\nevil\n$(evil)\nE\n",
    "cat <<E\nevil $f\nE\n",
    "cat <<-E\n\tevil\n\tE\n",
    "cat <<\\E\n`evil`\nE\n",
    "cat <<\"E\"\nevil\nE\n",
    "cat <<< 'evil'",
    "ls # evil",
    "find . -name '*.evil' -type f",
    "find src \\( -name evil -o -name '*.txt' \\) -print",
    "sed -n '1,5p' src/a",
    "sed 's/evil/x/g; $d' src/b.txt",
    "awk '{print $1}' src/a",
    "diff -u src/a src/b.txt",
    "x=evil",
    "x='5 ../evil'",
    "x=$(cat src/a)",
    "echo $x \"$x\"",
    "head -n \"$x\" src/a",
    "set -e",
    "set -euo pipefail",
    "git -C src status",
    "make -C src",
    "cd src; ls; cd ..",
    "cat *",
    "wc -l *.txt",
];

/// By which something could be run that does not stand where commands stand.
const TRAPS: &[&str] = &[
    "evil",
    "evil x",
    "./evil",
    "src/evil",
    "/bin/evil",
    "\\evil",
    "e'v'il",
    "\"evil\"",
    "$'evil'",
    "$\"evil\"",
    "ev\\\nil",
    "ev\\\r\nil",
    "$(evil)",
    "`evil`",
    "\"`evil`\"",
    "\"$\\\n(evil)\"",
    "$\\\n(evil)",
    "$(\\\n(evil))",
    "<\\\n(evil)",
    ">\\\n(evil)",
    "\"$\\\n{f:-$(evil)}\"",
    "\"$(evil)\"",
    "<(evil)",
    ">(evil)",
    "${f:-$(evil)}",
    "${f:=`evil`}",
    "${f/$(evil)/x}",
    "${a[$(evil)]}",
    "${!f}",
    "${f@P}",
    "$((a[$(evil)]))",
    "$[a[$(evil)]]",
    "((a[$(evil)]))",
    "{evil,x}",
    "{x,evil} y",
    "ev?l",
    "ev[i]l",
    "*",
    "~evil",
    "eval evil",
    "eval 'evil'",
    "exec evil",
    "command evil",
    "builtin eval evil",
    ". src/a",
    "source src/a",
    "env evil",
    "xargs evil",
    "bash -c evil",
    "sh src/a",
    "sudo evil",
    "nohup evil",
    "coproc evil",
    "time evil",
    "! evil",
    "timeout 1 evil",
    "trap evil EXIT",
    "alias ls=evil",
    "alias ls='evil '\nls",
    "hash -p evil ls",
    "enable -f evil evil",
    "export PATH=evil",
    "PATH=src evil",
    "BASH_ENV=src/a bash",
    "PS4='$(evil)' ls",
    "PROMPT_COMMAND=evil",
    "IFS=x ls",
    "printf -v 'a[$(evil)]' x",
    "test -v 'a[$(evil)]'",
    "[ -v 'a[$(evil)]' ]",
    "[ 'a[$(evil)]' -eq 1 ]",
    "[[ a[$(evil)] -eq 1 ]]",
    "[[ x =~ $(evil) ]]",
    "let 'a[$(evil)]=1'",
    "declare 'a[$(evil)]=1'",
    "unset 'a[$(evil)]'",
    "read 'a[$(evil)]' < src/a",
    "mapfile -C evil -c 1 < src/a",
    "git -c alias.x='!evil' x",
    "git log --output=evil",
    "sort -o evil src/a",
    "tee evil",
    "evil() { :; }",
    "function ls { evil; }",
    "ls() { evil; }; ls",
    "case x in x) evil;; esac",
    "select f in evil; do evil; done",
    "for ((i=0;i<1;i++)); do evil; done",
    "(evil)",
    "{ evil; }",
    "if evil; then ls; fi",
    "while evil; do break; done",
    "until evil; do ls; done",
    "evil &",
    "ls & evil",
    "!!",
    "!evil",
    "^ls^evil",
    "cat <<E\n$(evil)\nE\n",
    "cat <<E\n`evil`\nE\n",
    "cat <<E\n${f:-`evil`}\nE\n",
    "cat <<E\nx\nE \nevil\nE\n",
    "cat <<E\nx\n E\nevil\nE\n",
    "cat <<-E\n  E\nevil\n\tE\n",
    "cat <<'E'\nx\nE\nevil\n",
    "cat <<E\nx\\\nE\nevil\nE\n",
    "cat <<'E' ; evil\nE\n",
    "git commit -m \"$(cat <<'E'\nfix(task-1): x\nE evil)\nE\n)\"",
    "echo \"$(cat <<'E'\nx\nEevil)\nE\n)\"",
    "echo \"$(cat <<-'E'\n\tE evil ) x\nE\n)\"",
    "cat <<'E' <<'F'\nE\nF\nevil\nF\n",
    "cat <<'E\n'\nevil\nE\n",
    "cat <<E\"\"\nevil\nE\n",
    "cat <<''\n\nevil\n",
    "cat << # E\nevil\n",
    "cat <<$f\nevil\n$f\n",
    "> evil",
    ">| evil",
    "&> evil",
    ">& evil",
    "<> evil",
    "> src/x evil",
    "ls > src/x evil",
    "2>&1 evil",
    "3<&0 evil",
    "{fd}> src/x evil",
    "printf {fd}>src/x -v 'a[$(evil)]' y",
    "printf {fd}>&2 -v 'a[$(evil)]' y",
    "test {fd}</dev/null -v 'a[$(evil)]'",
    "exec 3<> evil",
    "head -n $f src/a",
    "tail -n $x src/a",
    "sort -k $f src/a",
    "cut -f $x src/a",
    "for f in '5 ../evil'; do head -n $f; done",
    "for f in '1 -o evil'; do sort -k $f src/a; done",
    "cat $x",
    "cat \"$x\"",
    "$x",
    "f=../evil; cat \"$f\"",
    "set -- evil; $1",
    "find . -exec evil {} +",
    "find . -name x -o -ok evil \\;",
    "find . -fprint evil",
    "sed '1e evil' src/a",
    "sed 's/a/evil/e' src/a",
    "sed -n 'w evil' src/a",
    "sed -i s/a/evil/ src/a",
    "awk 'BEGIN{system(\"evil\")}'",
    "awk '{print | \"evil\"}' src/a",
    "git -C .. status",
    "make -C .. evil",
    "cd src; cd ..; cd ..",
    "ls > src/-x; cat *",
    "exit; evil",
];

/// What stands between commands.
const JOINTS: &[&str] = &[
    "; ", " && ", " || ", " | ", "\n", ";", "|", "&&", "||", " |& ", "\n\n", " ;\n", " &&\n",
    " |\n", " & ", ";;", "\r\n", "\r", " \\\n", "\\\n", "\\\r\n", " # ", "#", " ", "\t", "\u{b}",
    "\u{c}", "\u{a0}", "\u{2028}", "\u{200b}", "\u{85}", " -- ", "&", ")", "(", "}", "{", " then ",
    " do ", " done ", " fi ", " in ",
];

/// Single characters that change how the rest is read.
const SIGNS: &[&str] = &[
    "'", "\"", "`", "$", "\\", "\n", "\r", "\t", " ", "#", "(", ")", "{", "}", "[", "]", "<", ">",
    "|", "&", ";", "*", "?", "~", "=", "!", "%", "^", ",", "-", ":", "@", "+", "E", "\\\n",
    "\\\r\n", "$(", "${", "$'", "$\"", "<<", "<<<", "<(", ">(", "((", "))", "[[", "]]", ">&", "&>",
    "2>", "\u{a0}", "é", "\u{200b}", "\u{7f}", "\u{8}", "\u{1b}", "evil",
];

/// The line that comes of a chance.
pub fn line(chance: &mut Chance) -> String {
    let mut line = list(chance, 3);
    // Most are left as they are, and some are beaten out of shape.
    let blows = match chance.below(8) {
        0..=3 => 0,
        4 | 5 => 1,
        6 => 2,
        _ => 1 + chance.below(5),
    };
    for _ in 0..blows {
        line = beaten(chance, &line);
    }
    line
}

fn list(chance: &mut Chance, depth: usize) -> String {
    let mut text = command(chance, depth);
    for _ in 0..chance.below(4) {
        // The first ones are those by which commands are really joined.
        let joints = if chance.once_in(3) { JOINTS } else { &JOINTS[..10] };
        text.push_str(chance.of_list(joints));
        text.push_str(&command(chance, depth));
    }
    text
}

fn command(chance: &mut Chance, depth: usize) -> String {
    if depth > 0 && chance.once_in(5) {
        return compound(chance, depth - 1);
    }
    let mut text = if chance.once_in(7) {
        chance.of_list(TRAPS).to_owned()
    } else {
        chance.of_list(ORDINARY).to_owned()
    };
    if chance.once_in(5) && !text.ends_with('\n') {
        text.push_str(&tail(chance));
    }
    if chance.once_in(12) {
        text = format!(
            "{}{text}",
            chance.of_list(&[
                "CI=1 ",
                "A=evil ",
                "! ",
                "time ",
                "time -p ",
                "timeout 5 ",
                "2>&1 ",
                "> src/x ",
                "< src/a ",
                "\\\n",
                " ",
                "\t",
                "#",
                "A=$(evil) ",
                "-- ",
                "exec ",
                "then ",
                "\u{feff}",
            ])
        );
    }
    text
}

/// Something more for a command: a word, a redirection, a comment.
fn tail(chance: &mut Chance) -> String {
    let tails = [
        " 2>&1",
        " 2>/dev/null",
        " > src/x",
        " >> src/x",
        " < src/a",
        " > /dev/null 2>&1",
        " > evil",
        " > ../evil",
        " >src/x evil",
        " 2>&1 evil",
        " <<< evil",
        " <<< \"$(evil)\"",
        " # evil",
        " #evil",
        "#evil",
        " evil",
        " 'evil'",
        " \"evil\"",
        " $f",
        " \"$f\"",
        " ${f}",
        " {a,b}",
        " *",
        " src/*",
        " ./*",
        " ~",
        " -- evil",
        " \\",
        " \\\n evil",
        "\\\nevil",
        " \\\r\n evil",
        " '\nevil\n'",
        " \"\nevil\n\"",
        " \"\\\nevil\"",
        " <<E\nevil\nE\n",
        " <<'E'\n`evil`\nE\n",
        " <<E\n`evil`\nE\n",
        " <<-'E'\n\tevil\n\tE\n",
        " | cat",
        " || true",
        " && echo evil",
        " ; evil",
        "\nevil",
        "\r\nevil",
        "\revil",
        " & evil",
        " $'\\nevil'",
        " \"$(echo 'evil')\"",
        " $(echo evil)",
        " `echo evil`",
        " $((1+1))",
        " $[1+1]",
        " =(evil)",
        " {fd}>src/x",
        " {fd}<src/a",
        " {fd}>&2 evil",
    ];
    if chance.once_in(4) {
        return format!(" {}", chance.of_list(TRAPS));
    }
    // Ordinary ones come first.
    let end = if chance.once_in(2) { 6 } else { tails.len() };
    tails[chance.below(end)].to_owned()
}

fn compound(chance: &mut Chance, depth: usize) -> String {
    let body = list(chance, depth);
    let other = list(chance, depth);
    match chance.below(14) {
        0 => format!("( {body} )"),
        1 => format!("({body})"),
        2 => format!("{{ {body}; }}"),
        3 => format!("{{ {body}\n}}"),
        4 => format!("if {body}; then {other}; fi"),
        5 => format!("if {body}\nthen {other}\nelse {body}\nfi"),
        6 => format!("for f in a evil 'x y'; do {body}; done"),
        7 => format!("for f in src/*; do\n{body}\ndone"),
        8 => format!("while false; do {body}; done"),
        9 => format!("until true; do {body}; done > src/x"),
        10 => format!("echo \"$({body})\""),
        11 => format!("echo \"a $({body}) b `{other}`\""),
        12 => format!("cat <<E\n$({body})\nE\n"),
        _ => format!("case x in x) {body};; *) {other};; esac"),
    }
}

/// The line with one thing changed somewhere.
fn beaten(chance: &mut Chance, line: &str) -> String {
    let places: Vec<usize> = line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
    let at = places[chance.below(places.len())];
    let next = line[at..].chars().next().map_or(at, |c| at + c.len_utf8());
    match chance.below(8) {
        0 => format!("{}{}", &line[..at], &line[next..]),
        1..=3 => format!("{}{}{}", &line[..at], chance.of_list(SIGNS), &line[at..]),
        4 => format!("{}{}{}", &line[..at], chance.of_list(SIGNS), &line[next..]),
        5 => {
            let blank = chance
                .of_list(&["\t", "\n", "\r\n", "\\\n", "\\\r\n", "$IFS", "${IFS}", "  ", "\u{a0}"]);
            line.replacen(' ', blank, 1 + chance.below(3))
        }
        6 => {
            let end = places[chance.below(places.len())];
            let (from, to) = (at.min(end), at.max(end));
            format!("{line}{}", &line[from..to])
        }
        _ => format!("{}{}{}", &line[..at], chance.of_list(TRAPS), &line[at..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_line_and_another_another() {
        let of = |seed| line(&mut Chance::of(seed));
        assert_eq!(of(7), of(7));
        let lines: std::collections::BTreeSet<String> = (0..1000).map(of).collect();
        assert!(lines.len() > 900, "only {} different lines", lines.len());
    }
}
