#!/usr/bin/env -S python3 -I -S
"""Stands in for `bd`: checks what it is given, and keeps its own issues.

The real program was not run. This knows the part of its command line that is
used, refuses everything else, and fails where `mode.json` beside it says so.
"""
import json
import os
import sys
import time

PLACE = os.path.dirname(os.path.abspath(__file__))
TYPES = ["bug", "feature", "task", "epic", "chore", "decision", "spike", "story", "milestone"]


def path(name):
    return os.path.join(PLACE, name)


def read(name, otherwise):
    try:
        with open(path(name)) as file:
            return json.load(file)
    except FileNotFoundError:
        return otherwise


def write(name, value):
    with open(path(name + ".new"), "w") as file:
        json.dump(value, file)
    os.rename(path(name + ".new"), path(name))


MODE = read("mode.json", {})


def say(value):
    if MODE.get("shape") == "bare":
        print(json.dumps(value))
    elif MODE.get("shape") == "items":
        print(json.dumps({"schema_version": 1, "items": value}))
    elif os.environ.get("BD_JSON_ENVELOPE") == "1":
        print(json.dumps({"schema_version": 1, "data": value}))
    else:
        print(json.dumps(value))


def fail(text):
    stream = sys.stdout if MODE.get("errors") == "stdout" else sys.stderr
    print(json.dumps({"error": text, "schema_version": 1}), file=stream)
    sys.exit(1)


def check(condition, text):
    """What a careful reader of the contract would refuse."""
    if not condition:
        with open(path("refused"), "a") as file:
            file.write(text + "\n")
        fail(text)


def flags(words, known):
    found, rest = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            rest.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in known:
            print("Error: unknown flag: " + name, file=sys.stderr)
            sys.exit(1)
        if not equals and known[name]:
            value = words.pop(0)
        found[name] = value
    return found, rest


def content(found):
    check(0 < len(found["--title"]) <= 500, "title is too long or empty")
    check(len(found["--description"].encode()) <= 100_000, "description is too long")
    check(found["--type"] in TYPES, "no such type: " + found["--type"])
    check(found["--priority"] in "01234", "no such priority")
    json.loads(found["--metadata"])
    return {
        "title": found["--title"],
        "description": found["--description"],
        "issue_type": found["--type"],
        "priority": int(found["--priority"]),
        "metadata": json.loads(found["--metadata"]),
    }


def labels(text):
    found = text.split(",")
    for label in found:
        fine = all(c.isalnum() or c in "_:-" for c in label)
        check(fine and 0 < len(label) <= 50, "bad label: " + label)
    return found


def main(words):
    verb, words = words[0], words[1:]
    version = {"version": "1.0.5", "build": "stand-in", "schema_version": 1}
    if verb == "version":
        if MODE.get("stranger"):
            print(MODE["stranger"])
            sys.exit(0)
        if "--json" in words:
            say(version)
        else:
            print("bd version 1.0.5 (stand-in)")
        return
    beads = os.environ.get("BEADS_DIR", "")
    check(os.path.isabs(beads), "BEADS_DIR is not absolute")
    if verb == "init":
        found, rest = flags(
            [word for word in words if word != "-q"],
            {"--stealth": False, "--skip-hooks": False, "--skip-agents": False,
             "--non-interactive": False},
        )
        check(len(found) == 4 and "-q" in words and not rest, "init would do too much")
        os.mkdir(beads)
        if not MODE.get("half"):
            os.mkdir(os.path.join(beads, "embeddeddolt"))
        return
    check(os.path.isdir(beads), "no beads database found")
    issues = read("issues.json", {})
    if verb == "list":
        known = {"--all": False, "--limit": True, "--label": True, "--json": False}
        if not MODE.get("old"):
            known["--flat"] = False
        found, _ = flags(words, known)
        check(found.get("--limit") == "0" and "--all" in found, "the list would be cut")
        label = found["--label"]
        ours = [it for it in issues.values() if label in it["labels"]]
        # Somebody else may use the same label.
        say([{"id": "x-0", "title": "t", "external_ref": None, "labels": [label]}] + ours)
    elif verb == "create":
        known = ["--title", "--description", "--type", "--priority", "--metadata", "--labels",
                 "--external-ref"]
        found, rest = flags(words, {**{name: True for name in known}, "--json": False})
        check(not rest, "a word too many")
        ref = found["--external-ref"]
        check(0 < len(ref) <= 255, "bad external_ref")
        check(all(it["external_ref"] != ref for it in issues.values()), "created twice: " + ref)
        issue = {"id": "x-%d" % (len(issues) + 1), "status": "open", "external_ref": ref,
                 "labels": labels(found["--labels"]), **content(found)}
        issues[issue["id"]] = issue
        write("issues.json", issues)
        say(issue)
    elif verb == "update":
        known = ["--title", "--description", "--type", "--priority", "--metadata", "--set-labels"]
        found, rest = flags(words, {**{name: True for name in known}, "--json": False})
        check(rest[0] in issues, "no issue " + rest[0])
        fields = content(found)
        # What is not named stays.
        fields["metadata"] = {**issues[rest[0]]["metadata"], **fields["metadata"]}
        issues[rest[0]].update(fields)
        issues[rest[0]]["labels"] = labels(found["--set-labels"])
        write("issues.json", issues)
        say([issues[rest[0]]])
    elif verb == "close":
        found, rest = flags(words, {"--reason": True, "--json": False})
        check(rest[0] in issues, "no issue " + rest[0])
        check(issues[rest[0]]["status"] != "closed", "closed already")
        issues[rest[0]]["status"] = "closed"
        write("issues.json", issues)
        say([issues[rest[0]]])
    else:
        print('Error: unknown command "%s" for "bd"' % verb, file=sys.stderr)
        sys.exit(1)


def misbehave(how):
    if how == "hang":
        if os.fork() == 0:
            # One that leaves the group, as servers do.
            os.setsid()
        time.sleep(600)
    elif how == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe{[ not json\n" * 1000)
        sys.exit(0)
    elif how == "silent":
        print("another process holds the exclusive lock", file=sys.stderr)
        sys.exit(0)
    elif how == "killed":
        os.kill(os.getpid(), 9)
    else:
        fail("out of order")


def strange_environment():
    ours = {"BEADS_DIR", "BEADS_ACTOR", "BD_JSON_ENVELOPE", "BD_NON_INTERACTIVE",
            "BLUEFLAME_RUN"}
    prefixes = ("BEADS_", "BD_", "CLAUDE", "ANTHROPIC", "BLUEFLAME")
    return [name for name in os.environ if name.startswith(prefixes) and name not in ours]


words = sys.argv[1:]
with open(path("calls"), "a") as file:
    file.write(words[0] + "\n")
with open(path("calls")) as file:
    number = len(file.readlines())
check(not strange_environment(), "strange environment: " + ", ".join(strange_environment()))
check(sys.stdin.read() == "", "there is something to read")
broken = number == MODE.get("at", 0) or MODE.get("always")
if broken and MODE.get("when") != "after":
    misbehave(MODE.get("how"))
main(words)
if broken:
    sys.stdout.flush()
    misbehave(MODE.get("how"))
