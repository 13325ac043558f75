//! Binary files that projects hold on purpose, such as pictures and fonts: they
//! are shown to the person, while any other binary file is a violation. They
//! are told by their endings, and have to begin as such files do.

use super::{FileChange, FileKind, Side};

/// Bytes and where they stand.
type Mark = (usize, &'static [u8]);

/// What files with an ending begin with: one of these.
const ASSETS: &[(&str, &[Mark])] = &[
    ("avif", &[(4, b"ftyp")]),
    ("bmp", &[(0, b"BM")]),
    ("eot", &[(34, b"LP")]),
    ("flac", &[(0, b"fLaC"), (0, b"ID3")]),
    ("gif", &[(0, b"GIF87a"), (0, b"GIF89a")]),
    ("icns", &[(0, b"icns")]),
    ("ico", &[(0, b"\0\0\x01\0"), (0, b"\x89PNG\r\n")]),
    ("jpeg", &[(0, b"\xff\xd8\xff")]),
    ("jpg", &[(0, b"\xff\xd8\xff")]),
    ("mp3", &[(0, b"ID3"), (0, b"\xff\xfb"), (0, b"\xff\xfa"), (0, b"\xff\xf3"), (0, b"\xff\xf2")]),
    ("mp4", &[(4, b"ftyp"), (4, b"moov"), (4, b"mdat")]),
    ("ogg", &[(0, b"OggS")]),
    ("otf", &[(0, b"OTTO"), (0, b"\0\x01\0\0")]),
    ("pdf", &[(0, b"%PDF-")]),
    ("png", &[(0, b"\x89PNG\r\n")]),
    ("ttf", &[(0, b"\0\x01\0\0"), (0, b"true"), (0, b"OTTO"), (0, b"ttcf")]),
    ("wav", &[(8, b"WAVE")]),
    ("webm", &[(0, b"\x1a\x45\xdf\xa3")]),
    ("webp", &[(8, b"WEBP")]),
    ("woff", &[(0, b"wOFF")]),
    ("woff2", &[(0, b"wOF2")]),
];

fn beginnings(path: &str) -> Option<&'static [(usize, &'static [u8])]> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
    let (_, beginnings) = ASSETS.iter().find(|(asset, _)| *asset == ending)?;
    Some(beginnings)
}

pub(super) fn is_asset(path: &str) -> bool {
    beginnings(path).is_some()
}

/// Whether a file that is only to be looked at was made a program.
pub(super) fn made_executable(change: &FileChange) -> bool {
    let executable =
        |side: &Option<Side>| side.as_ref().is_some_and(|side| side.kind == FileKind::Executable);
    is_asset(&change.path) && executable(&change.after) && !executable(&change.before)
}

/// Why the content of a binary file may not stand, if so.
pub(super) fn objection(change: &FileChange) -> Option<&'static str> {
    match beginnings(&change.path) {
        _ if !change.lines.binary => None,
        None => Some("is a binary file. Commit sources, not what is made from them"),
        Some(known) if fits(&change.lines.head, known) => None,
        Some(_) => Some("is a binary file, and not of the kind that its ending says"),
    }
}

/// Whether a file begins in one of these ways. One whose beginning did not
/// change is still what it was.
fn fits(head: &[u8], known: &[(usize, &[u8])]) -> bool {
    let begins =
        |(at, bytes): &(usize, &[u8])| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    head.is_empty() || known.iter().any(begins)
}
