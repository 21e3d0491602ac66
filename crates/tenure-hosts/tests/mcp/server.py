"""A tool server that behaves as its first argument says. Its second is a folder for what it leaves.

It speaks JSON-RPC in lines, by the protocol of 2025 and, if it is told to, by that of 2026.
"""

import json
import os
import signal
import subprocess
import sys
import time

MODE, DIR = sys.argv[1], sys.argv[2]
MODERN = "2026-07-28"

tools = ["echo", "pid", "variable", "die", "hang", "huge", "ask", "visit", "steps", "add_tool",
         "cancelled", "fail", "structured", "later"]
pending = {}
cancelled = []
failing_lists = 0
next_id = 1000
subscription = None


def leave(name, text):
    with open(os.path.join(DIR, name), "a") as file:
        file.write(text + "\n")


def send(message):
    if MODE == "garbage":
        sys.stdout.write("Loading plugins...\n{ not json\n[]\n\n")
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def result(id, value):
    if MODE.startswith("modern"):
        value = {"resultType": "complete", **value}
    send({"id": id, "result": value})


def error(id, code, message):
    send({"id": id, "error": {"code": code, "message": message}})


def text(id, words, **more):
    result(id, {"content": [{"type": "text", "text": words}], **more})


def notify(method, params=None):
    params = params or {}
    if subscription is not None:
        params["_meta"] = {"io.modelcontextprotocol/subscriptionId": subscription}
    send({"method": method, "params": params})


def request(method, params, call):
    global next_id
    next_id += 1
    pending[next_id] = call
    send({"id": next_id, "method": method, "params": params})


def described(name):
    annotations = {"readOnlyHint": name in ("echo", "pid")}
    return {"name": name, "description": "The tool " + name, "annotations": annotations,
            "inputSchema": {"type": "object", "properties": {}}}


def list_tools(id, params):
    global failing_lists
    if MODE == "list-fails-once" and not os.path.exists(os.path.join(DIR, "failed")):
        leave("failed", "once")
        return error(id, -32603, "the list is locked")
    if failing_lists > 0:
        failing_lists -= 1
        return error(id, -32603, "the list is locked")
    more = {"ttlMs": 0, "cacheScope": "private"} if MODE.startswith("modern") else {}
    if MODE == "circles":
        return result(id, {"tools": [described("echo")], "nextCursor": "again"})
    if MODE == "paged":
        start = int(params.get("cursor", "0"))
        more["nextCursor"] = str(start + 2)
        if start + 2 >= len(tools):
            del more["nextCursor"]
        return result(id, {"tools": [described(name) for name in tools[start:start + 2]], **more})
    result(id, {"tools": [described(name) for name in tools], **more})


FORM = {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "minLength": 2}}}


def call_tool(id, params):
    global failing_lists
    name, given = params["name"], params.get("arguments", {})
    if name == "echo" and "meta" in given:
        text(id, params["_meta"][given["meta"]])
    elif name == "echo":
        text(id, given.get("text", ""))
    elif name == "pid":
        text(id, str(os.getpid()))
    elif name == "variable":
        text(id, os.environ.get(given["name"], "<unset>"))
    elif name == "die":
        sys.stderr.write("the disk is on fire\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "hang":
        leave("hanging", str(id))
    elif name == "huge":
        text(id, "x" * given["size"])
    elif name == "steps":
        token = params["_meta"]["progressToken"]
        for step in range(1, 4):
            notify("notifications/progress", {"progressToken": token, "progress": step,
                                              "total": 3, "message": "step %d" % step})
        text(id, "done")
    elif name == "ask" and MODE.startswith("modern"):
        answers = params.get("inputResponses")
        if answers is None:
            ask = {"mode": "form", "message": given["question"], "requestedSchema": FORM}
            ask = {"method": "elicitation/create", "params": ask}
            send({"id": id, "result": {"resultType": "input_required", "requestState": "state-7",
                                       "inputRequests": {"who": ask}}})
        else:
            said = answers["who"]
            text(id, "%s %s %s" % (params["requestState"], said["action"],
                                   said.get("content", {}).get("name")))
    elif name == "ask":
        form = FORM
        if "default" in given:
            field = {**FORM["properties"]["name"], "default": given["default"]}
            form = {**FORM, "properties": {"name": field}}
        request("elicitation/create", {"mode": "form", "message": given["question"],
                                       "requestedSchema": form}, id)
    elif name == "later":
        text(id, "later")
        request("elicitation/create", {"mode": "form", "message": "Still there?",
                                       "requestedSchema": FORM}, "later")
    elif name == "visit":
        request("elicitation/create", {"mode": "url", "message": "Log in there.", "url": given["url"],
                                       "elicitationId": "e-1"}, id)
    elif name == "add_tool":
        tools.append("added")
        failing_lists = given.get("failing", 0)
        notify("notifications/tools/list_changed")
        text(id, "added")
    elif name == "cancelled":
        text(id, json.dumps(cancelled))
    elif name == "fail":
        text(id, "there is no such city", isError=True)
    elif name == "structured":
        result(id, {"content": [], "structuredContent": {"sum": 3}})
    else:
        error(id, -32602, "there is no tool " + name)


def handle(message):
    global subscription
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method is None:
        call = pending.pop(id, None)
        answer = message.get("result", {})
        if call == "later":
            leave("later", answer.get("action"))
        elif call is not None:
            said = answer.get("content") or {}
            text(call, "%s %s" % (answer.get("action"), said.get("name")))
    elif method == "server/discover":
        leave("eras", "discover")
        if MODE.startswith("modern"):
            result(id, {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private",
                        "capabilities": {"tools": {"listChanged": True}}})
        elif MODE == "touchy":
            sys.stderr.write("expected initialize\n")
            sys.exit(1)
        elif MODE != "mute":
            error(id, -32601, "Method not found")
    elif method == "initialize":
        leave("eras", "initialize")
        if MODE.startswith("modern"):
            return error(id, -32601, "Method not found")
        result(id, {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                    "capabilities": {"tools": {"listChanged": True}}})
    elif method == "subscriptions/listen":
        subscription = id
        notify("notifications/subscriptions/acknowledged",
               {"notifications": {"toolsListChanged": True}})
    elif method == "tools/list":
        list_tools(id, params)
        if MODE == "brief":
            os._exit(4)
    elif method == "tools/call":
        call_tool(id, params)
    elif method == "notifications/cancelled":
        cancelled.append(params.get("requestId"))
        leave("cancelled", str(params.get("requestId")))
    elif id is not None:
        error(id, -32601, "Method not found")


leave("starts", str(os.getpid()))
sys.stderr.write("ready in mode %s\n" % MODE)
sys.stderr.flush()
if MODE == "dead":
    sys.stderr.write("cannot reach the database\n")
    sys.exit(3)
if MODE == "silent":
    time.sleep(600)
if MODE == "modern-slow":
    time.sleep(4)
if MODE == "stubborn":
    signal.signal(signal.SIGTERM, lambda *_: leave("asked", "to end"))
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    leave("grandchild", str(child.pid))
for line in sys.stdin:
    if line.strip():
        handle(json.loads(line))
leave("ends", str(os.getpid()))
while MODE == "stubborn":
    time.sleep(1)
