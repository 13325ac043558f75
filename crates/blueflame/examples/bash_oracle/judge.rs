//! The policy as the judge, on real files.

use std::path::Path;

use blueflame::ground::RealGround;
use blueflame_core::config;
use blueflame_core::ids::Role;
use blueflame_core::policy::{Policy, PolicyRules, Scope, ToolCall, judge_for_sh};
use blueflame_testkit::oracle::Judge;
use serde_json::{Value, json};

pub struct RealJudge {
    policy: Policy,
    ground: RealGround,
}

impl RealJudge {
    /// The default rules for a worker, with everything in scope.
    pub fn new(workspace: &Path) -> RealJudge {
        let config = config::read(b"schema_version: 2\n").config.expect("a configuration");
        let rules = PolicyRules::of(&config, Role::Worker, &[]);
        let rules = PolicyRules { scope: Scope::Everything, ..rules };
        RealJudge {
            policy: Policy::new(rules).expect("good rules"),
            ground: RealGround::new(workspace).expect("a workspace"),
        }
    }

    fn rule(&self, tool: &str, input: Value, cwd: &Path) -> Option<String> {
        let cwd = cwd.to_string_lossy().into_owned();
        let verdict =
            self.policy.judge(&ToolCall { tool: tool.to_owned(), input, cwd }, &self.ground);
        (!verdict.is_allowed()).then_some(verdict.rule)
    }
}

impl Judge for RealJudge {
    fn refuses(&self, line: &str, cwd: &Path) -> Option<String> {
        self.rule("Bash", json!({ "command": line }), cwd)
    }

    fn refuses_for_sh(&self, line: &str) -> Option<String> {
        let verdict = judge_for_sh(&self.policy, line, &self.ground);
        (!verdict.is_allowed()).then_some(verdict.rule)
    }

    fn refuses_write(&self, path: &Path) -> Option<String> {
        let input = json!({ "file_path": path.to_string_lossy(), "content": "" });
        self.rule("Write", input, path.parent().unwrap_or(path))
    }
}
