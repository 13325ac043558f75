#!/usr/bin/env node
// A small agent for Blue Flame, to show what an executor of your own has to do.
// docs/executors.md describes the contract; the tests of Blue Flame run this file.

import { spawnSync } from "node:child_process";
import fs from "node:fs";

const { BLUEFLAME_GATEWAY, BLUEFLAME_TOKEN, BLUEFLAME_HOOK, BLUEFLAME_MODEL } = process.env;
const system = fs.readFileSync(process.env.BLUEFLAME_SYSTEM, "utf8");
const prompt = fs.readFileSync(0, "utf8");
// Commands need not know it.
delete process.env.BLUEFLAME_TOKEN;

const text = { type: "string" };
const TOOLS = {
  Bash: { command: text },
  Write: { file_path: text, content: text },
};
const offered = process.env.BLUEFLAME_TOOLS.split(",").filter((name) => name in TOOLS);

// Asks the policy. It is a no unless the hook ends well.
function objection(event) {
  const hook = spawnSync("/bin/sh", ["-c", BLUEFLAME_HOOK], { input: JSON.stringify(event) });
  if (hook.status === 0) return undefined;
  return hook.stderr?.toString().trim() || "the hook failed";
}

function use(call) {
  const input = JSON.parse(call.arguments);
  const objected = objection({
    hook_event_name: "PreToolUse",
    tool_use_id: call.id,
    tool_name: call.name,
    tool_input: input,
    cwd: process.cwd(),
  });
  // A denial has to begin with these words.
  if (objected !== undefined) return `denied by Blue Flame: ${objected}`;
  if (call.name === "Write") {
    fs.writeFileSync(input.file_path, input.content);
    return "written";
  }
  const ran = spawnSync("/bin/bash", ["-c", input.command]);
  return `${ran.stdout}${ran.stderr}exit code ${ran.status}`;
}

// One answer of the model, put together from its stream.
async function answer(messages) {
  const tools = offered.map((name) => {
    const parameters = { type: "object", properties: TOOLS[name], required: Object.keys(TOOLS[name]) };
    return { type: "function", function: { name, parameters } };
  });
  const response = await fetch(`${BLUEFLAME_GATEWAY}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${BLUEFLAME_TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ model: BLUEFLAME_MODEL, stream: true, tools, messages }),
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}`);
  const said = { content: "", calls: [], finished: false };
  for (const line of (await response.text()).split("\n")) {
    if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
    for (const { delta, finish_reason } of JSON.parse(line.slice(6)).choices) {
      said.content += delta.content ?? "";
      said.finished ||= finish_reason !== null;
      for (const piece of delta.tool_calls ?? []) {
        const call = (said.calls[piece.index] ??= { id: piece.id, name: "", arguments: "" });
        call.name += piece.function.name ?? "";
        call.arguments += piece.function.arguments ?? "";
      }
    }
  }
  if (!said.finished) throw new Error("the answer broke off");
  return said;
}

// Before the first request the hook has to show that it is alive.
const broken = objection({ hook_event_name: "SessionStart" });
if (broken !== undefined) throw new Error(broken);
const messages = [
  { role: "system", content: system },
  { role: "user", content: prompt },
];
for (;;) {
  const { content, calls } = await answer(messages);
  if (calls.length === 0) {
    // The last message is the result, and nothing else is on standard output.
    process.stdout.write(content);
    break;
  }
  const tool_calls = calls.map(({ id, name, arguments: given }) => {
    return { id, type: "function", function: { name, arguments: given } };
  });
  messages.push({ role: "assistant", content, tool_calls });
  for (const call of calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: use(call) });
  }
}
