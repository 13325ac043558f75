//! The way from the root of a file to one value, as `tasks[2].title`.

use std::fmt;

/// A chain that lives on the stack while the tree is walked: most values have
/// no problem, so most paths are never spelled out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    Root,
    Key(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(Path::Root, key) if is_plain(key) => f.write_str(key),
            Path::Key(parent, key) => f.write_str(&path_below(&parent.to_string(), key)),
        }
    }
}

/// The path of a key below a known path.
pub fn path_below(parent: &str, key: &str) -> String {
    if is_plain(key) { format!("{parent}.{key}") } else { format!("{parent}[{key:?}]") }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_code() {
        let tasks = Path::Key(&Path::Root, "tasks");
        let second = Path::Item(&tasks, 2);
        assert_eq!(Path::Key(&second, "title").to_string(), "tasks[2].title");
        assert_eq!(Path::Key(&second, "a.b").to_string(), "tasks[2][\"a.b\"]");
    }
}
