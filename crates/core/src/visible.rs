//! Which characters a reader of a text would not see.

/// Control characters other than line breaks and tabs, changes of the reading
/// direction, and invisible characters.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Spaces without width, marks and changes of direction, separators;
        // then tags and rare variation selectors, in which whole texts can
        // hide. The joiners stay: some scripts are unreadable without them.
        '\u{ad}'
        | '\u{200b}'
        | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e01ef}' => true,
        c => c.is_control(),
    }
}
