// The plugin by which opencode asks Blue Flame about every tool call.
//
// It decides nothing: the hook that is named above this text asks the attempt
// process. Only a hook that ends well, within its time, is a yes; whatever else
// comes of it is thrown, and what is thrown here is a call that is not made.

import { spawn } from "node:child_process";

// Well above the time that the hook takes at most by itself.
const PATIENCE = 60_000;
const DENIED = "Blue Flame denied this call: ";

function ask(event) {
  return new Promise((resolve, reject) => {
    const deny = (why) => reject(new Error(DENIED + why));
    const [program, ...words] = HOOK;
    const hook = spawn(program, words, { env: {}, stdio: ["pipe", "pipe", "ignore"] });
    const late = setTimeout(() => {
      hook.kill("SIGKILL");
      deny("its hook did not answer in time");
    }, PATIENCE);
    let said = "";
    hook.stdout.setEncoding("utf8");
    hook.stdout.on("data", (text) => (said += text));
    hook.on("error", (error) => {
      clearTimeout(late);
      deny(`its hook could not be run: ${error.message}`);
    });
    hook.on("close", (code, signal) => {
      clearTimeout(late);
      if (code === 0 && signal === null) resolve();
      else deny(reason(said) ?? `its hook failed: ${signal ?? `exit code ${code}`}`);
    });
    // A hook that leaves early says why, if it can.
    hook.stdin.on("error", () => {});
    hook.stdin.end(JSON.stringify(event));
  });
}

function reason(said) {
  try {
    return JSON.parse(said).hookSpecificOutput.permissionDecisionReason;
  } catch {
    return undefined;
  }
}

export const BlueFlame = async ({ directory }) => {
  // By now it is in the settings; commands need not have it.
  delete process.env[TOKEN];
  await ask({ hook_event_name: "SessionStart" });
  return {
    "tool.execute.before": async ({ tool, callID }, { args }) => {
      await ask({
        hook_event_name: "PreToolUse",
        tool_use_id: callID,
        tool_name: tool,
        tool_input: args,
        cwd: directory,
      });
    },
    // Some providers refuse requests that name the longest answer in this way.
    "chat.params": async (_, params) => {
      params.maxOutputTokens = undefined;
    },
  };
};
