// The plugin by which opencode asks Blue Flame about every tool call.
//
// It decides nothing: the hook that is named above this text asks the attempt
// process. Only a hook that ends well, within its time, is a yes; whatever else
// comes of it is thrown, and what is thrown here is a call that is not made.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

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

// opencode itself is started elsewhere, because it runs what it finds in a
// directory called `.opencode` where it is started. So what a call says about
// places is made to mean what it would mean in the workspace: that is also how it
// was judged.
function place(tool, args) {
  const from = (given) => path.resolve(WORKSPACE, given);
  const key = { bash: "workdir", glob: "path", grep: "path", list: "path" }[tool];
  if (key) args[key] = from(args[key] || ".");
  else if (typeof args.filePath === "string") args.filePath = from(args.filePath);
  else if (typeof args.patchText === "string") {
    const named = /^(\*\*\* (?:Add File|Update File|Delete File|Move to): )(.*)$/gm;
    args.patchText = args.patchText.replace(named, (_, mark, file) => mark + from(file.trim()));
  }
}

// opencode leaves without waiting until what it wrote is read, so it is made to
// wait when it writes.
function writeAtOnce() {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  process.stdout.write = (text) => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) {
      try {
        at += fs.writeSync(1, bytes, at);
      } catch (error) {
        if (error.code !== "EAGAIN") throw error;
        Atomics.wait(pause, 0, 0, 5);
      }
    }
    return true;
  };
}

export const BlueFlame = async ({ directory }) => {
  writeAtOnce();
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
        cwd: WORKSPACE,
      });
      place(tool, args);
    },
    // The one that opencode was told is for opencode alone, and cannot be written.
    "shell.env": async (_, { env }) => {
      env.XDG_CONFIG_HOME = path.join(process.env.HOME, ".config");
    },
    // Some providers refuse requests that name the longest answer in this way.
    "chat.params": async (_, params) => {
      params.maxOutputTokens = undefined;
    },
    "experimental.chat.system.transform": async (_, { system }) => {
      const places = [
        [`Working directory: ${directory}`, `Working directory: ${WORKSPACE}`],
        [/Workspace root folder: .*/, `Workspace root folder: ${WORKSPACE}`],
        ["Is directory a git repo: no", "Is directory a git repo: yes"],
      ];
      for (const [at, text] of system.entries()) {
        system[at] = places.reduce((text, [from, to]) => text.replace(from, () => to), text);
      }
    },
  };
};
