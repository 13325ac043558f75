//! The Superpowers plugin, as claude has it installed.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::executor::Version;

const PLUGIN: &str = "superpowers";

/// Of files that tell about plugins.
const MOST_BYTES: u64 = 1 << 20;

/// An installed plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// In words.
    pub name: String,
    pub path: PathBuf,
}

/// The plugin, unless it is not there or switched off.
pub fn find(claude: &Path) -> Option<Installed> {
    let listed = json(&claude.join("plugins/installed_plugins.json")).unwrap_or_default();
    let settings = json(&claude.join("settings.json")).unwrap_or_default();
    let off = |key: &str| settings["enabledPlugins"][key] == Value::Bool(false);
    let plugins = listed["plugins"].as_object();
    let mut ours = plugins.into_iter().flatten().filter(|(key, _)| is_ours(key));
    if let Some((_, about)) = ours.find(|(key, _)| !off(key)) {
        // Some versions list one entry, some a list of them.
        let entries = about.as_array().map_or(std::slice::from_ref(about), Vec::as_slice);
        let found = entries.iter().find_map(|entry| {
            let path = PathBuf::from(entry["installPath"].as_str()?);
            let version = entry["version"].as_str().unwrap_or_default();
            path.join("skills").is_dir().then(|| installed(version, path))
        });
        if found.is_some() {
            return found;
        }
    }
    let known_off = settings["enabledPlugins"]
        .as_object()
        .is_some_and(|all| all.keys().any(|key| is_ours(key) && off(key)));
    if known_off { None } else { newest_in_cache(&claude.join("plugins/cache")) }
}

/// Whether `superpowers@some-marketplace` is meant.
fn is_ours(key: &str) -> bool {
    key.split('@').next() == Some(PLUGIN)
}

/// `<marketplace>/superpowers/<version>`, the highest version.
fn newest_in_cache(cache: &Path) -> Option<Installed> {
    let versions = names(cache).into_iter().flat_map(|marketplace| {
        let plugin = cache.join(marketplace).join(PLUGIN);
        let all = names(&plugin);
        all.into_iter().map(move |version| (plugin.join(&version), version))
    });
    let usable = versions.filter(|(path, _)| path.join("skills").is_dir());
    let newest = usable.max_by_key(|(_, version)| (Version::find(version), version.clone()))?;
    Some(installed(&newest.1, newest.0))
}

fn installed(version: &str, path: PathBuf) -> Installed {
    Installed { name: format!("Superpowers {version}").trim_end().to_owned(), path }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(1_000);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn json(path: &Path) -> Option<Value> {
    if !path.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn write(path: &Path, value: &Value) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }

    #[test]
    fn the_plugin_is_found_as_listed_or_in_the_cache_and_not_when_it_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let claude = dir.path();
        assert_eq!(find(claude), None);
        for version in ["5.9.0", "6.10.0", "6.2.0"] {
            let place = format!("plugins/cache/market/superpowers/{version}/skills");
            fs::create_dir_all(claude.join(place)).unwrap();
        }
        fs::create_dir_all(claude.join("plugins/cache/market/superpowers/7.0.0")).unwrap();
        assert_eq!(find(claude).unwrap().name, "Superpowers 6.10.0");
        let path = claude.join("plugins/cache/market/superpowers/6.2.0");
        let entry = json!({"installPath": path, "version": "6.2.0"});
        let list = claude.join("plugins/installed_plugins.json");
        for listed in [json!([entry]), entry.clone()] {
            write(&list, &json!({"version": 2, "plugins": {"superpowers@market": listed}}));
            let expected = Installed { name: "Superpowers 6.2.0".into(), path: path.clone() };
            assert_eq!(find(claude), Some(expected));
        }
        let settings = claude.join("settings.json");
        write(&settings, &json!({"enabledPlugins": {"superpowers@market": true}}));
        assert!(find(claude).is_some());
        write(&settings, &json!({"enabledPlugins": {"superpowers@market": false}}));
        assert_eq!(find(claude), None);
        fs::write(&settings, "{broken").unwrap();
        fs::write(&list, "[]").unwrap();
        assert_eq!(find(claude).unwrap().name, "Superpowers 6.10.0");
    }
}
