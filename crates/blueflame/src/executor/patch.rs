//! A patch as models of OpenAI write it, taken apart into what it does to files, in
//! the words that the policy has for that.

use serde_json::json;

use super::Call;

/// What a patch does, file by file; or why it cannot be said.
///
/// Only the lines that name files matter. Within the text of a file, every line
/// begins with `+`, `-`, a space or `@@`, so none of it can pass for one.
pub fn calls(patch: &str, cwd: &str) -> Result<Vec<Call>, String> {
    let mut lines = patch.trim().lines();
    if lines.next().map(str::trim) != Some("*** Begin Patch") {
        return Err("the patch does not start with `*** Begin Patch`".to_owned());
    }
    let mut calls = Vec::new();
    let mut ended = false;
    for line in lines {
        if ended {
            return Err("the patch goes on after `*** End Patch`".to_owned());
        }
        // It takes lines with spaces before them for the same.
        let Some(mark) = line.trim().strip_prefix("*** ") else { continue };
        if mark == "End Patch" {
            ended = true;
        } else if mark == "End of File" {
        } else if let Some(path) = mark.strip_prefix("Add File: ") {
            calls.push(write(path, cwd));
        } else if let Some(path) = mark.strip_prefix("Update File: ") {
            calls.push(edit(path, cwd));
        } else if let Some(path) = mark.strip_prefix("Delete File: ") {
            calls.push(edit(path, cwd));
        } else if let Some(path) = mark.strip_prefix("Move to: ") {
            calls.push(write(path, cwd));
        } else {
            return Err(format!("`{line}` in the patch is not understood"));
        }
    }
    match (ended, calls.is_empty()) {
        (true, false) => Ok(calls),
        (true, true) => Err("the patch changes nothing".to_owned()),
        (false, _) => Err("the patch does not end with `*** End Patch`".to_owned()),
    }
}

fn write(path: &str, cwd: &str) -> Call {
    call("Write", json!({"file_path": path.trim(), "content": ""}), cwd)
}

fn edit(path: &str, cwd: &str) -> Call {
    call("Edit", json!({"file_path": path.trim(), "old_string": "", "new_string": ""}), cwd)
}

fn call(tool: &str, input: serde_json::Value, cwd: &str) -> Call {
    Call { tool: tool.to_owned(), input, cwd: cwd.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_patch_is_named() {
        let patch = "*** Begin Patch\n*** Add File: a b.txt\n+*** Delete File: no.txt\n\
                     *** Update File: src/x.rs\n*** Move to: src/y.rs\n@@ fn\n-a\n+b\n\
                     *** End of File\n *** Delete File: old\n*** End Patch\n";
        let named: Vec<(String, String)> = calls(patch, "/w")
            .unwrap()
            .into_iter()
            .map(|call| (call.tool, call.input["file_path"].as_str().unwrap().to_owned()))
            .collect();
        let expected =
            [("Write", "a b.txt"), ("Edit", "src/x.rs"), ("Write", "src/y.rs"), ("Edit", "old")];
        assert_eq!(named, expected.map(|(tool, path)| (tool.to_owned(), path.to_owned())));
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for patch in [
            "",
            "*** Begin Patch",
            "*** Begin Patch\n*** End Patch",
            "*** Begin Patch\n*** Environment ID: x\n*** Add File: a\n+x\n*** End Patch",
            "*** Begin Patch\n*** Add File: a\n*** End Patch\n*** Begin Patch",
            "*** Add File: a\n*** End Patch",
        ] {
            assert!(calls(patch, "/w").is_err(), "{patch}");
        }
    }
}
