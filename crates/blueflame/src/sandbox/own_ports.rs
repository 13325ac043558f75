//! Who listens on a port, where there is no network namespace: a server of the
//! sandboxed program's own may be reached, nobody else's.

use std::collections::BTreeSet;
use std::fs;

use crate::process_tree;

/// Whether somebody listens on a port, and all who do were started below this
/// process. Addresses are not told apart: one server of somebody else's on the
/// port is enough to refuse it.
pub(super) fn is_own(port: u16) -> bool {
    let tables = ["tcp", "tcp6"]
        .map(|name| fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default());
    let listening: BTreeSet<u64> =
        tables.iter().flat_map(|table| table.lines()).filter_map(|it| listener(it, port)).collect();
    !listening.is_empty() && listening.is_subset(&sockets_below())
}

/// The socket of a line of the kernel's table, if it listens on this port.
fn listener(line: &str, port: u16) -> Option<u64> {
    const LISTENS: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, at) = fields.get(1)?.rsplit_once(':')?;
    let here = u16::from_str_radix(at, 16) == Ok(port) && *fields.get(3)? == LISTENS;
    if here { fields.get(9)?.parse().ok() } else { None }
}

/// Sockets that are open in processes below this one.
fn sockets_below() -> BTreeSet<u64> {
    let processes = process_tree::descendants().into_iter();
    let open = processes.flat_map(|it| {
        fs::read_dir(format!("/proc/{}/fd", it.pid)).into_iter().flatten().flatten()
    });
    open.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_table_of_the_kernel_is_read() {
        let line = "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    1000        0 81234 1 0000000000000000 100 0 0 10 0";
        assert_eq!(listener(line, 8080), Some(81_234));
        assert_eq!(listener(line, 8081), None);
        assert_eq!(listener(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(listener("  sl  local_address rem_address   st", 0), None);
    }

    #[test]
    fn what_this_process_itself_listens_on_is_not_below_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_own(listener.local_addr().unwrap().port()));
    }
}
