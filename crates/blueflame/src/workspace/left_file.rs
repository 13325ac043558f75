//! A file that an agent left, read with care: it may be a link, a pipe that nobody
//! writes into, or larger than memory, and it may be changed meanwhile.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

pub(super) struct Left {
    pub bytes: Vec<u8>,
    /// By how many names it is known.
    pub names: u64,
}

/// What is in a plain file; `None` if it is none, or has more than this many bytes.
pub(super) fn read(path: &Path, most: u64) -> Option<Left> {
    let no_links = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(no_links).open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > most {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == found.len()).then(|| Left { bytes, names: found.nlink() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_plain_file_of_that_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("plain"), "text").unwrap();
        std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        // Reading one would take all memory, and reading the other would never end.
        File::create(at("huge")).unwrap().set_len(1 << 42).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), kind, mode, 0).unwrap();
        let text = |name: &str, most| read(&at(name), most).map(|left| (left.bytes, left.names));
        assert_eq!(text("plain", 4), Some((b"text".to_vec(), 1)));
        assert_eq!(text("plain", 3), None);
        for name in ["link", "directory", "huge", "pipe", "none"] {
            assert_eq!(text(name, 1 << 20), None, "{name}");
        }
        fs::hard_link(at("plain"), at("other")).unwrap();
        assert_eq!(text("plain", 4), Some((b"text".to_vec(), 2)));
    }
}
