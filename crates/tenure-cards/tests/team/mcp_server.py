"""A tool server on standard streams, with nothing but the standard library."""

import json
import os
import sys

TOOLS = [
    {
        "name": "echo",
        "description": "Says it again",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    },
    {
        "name": "secret_of",
        "description": "Says what a variable holds",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
]


def note(line):
    with open(os.path.join(os.environ["TENURE_PROJECT"], "servers.txt"), "a") as file:
        file.write(line + "\n")


def result(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
    if method == "prompts/get":
        text = "Greet " + params["arguments"]["who"]
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "tools/call":
        given = params.get("arguments") or {}
        text = given["text"] if params["name"] == "echo" else os.environ.get(given["name"], "unset")
        return {"content": [{"type": "text", "text": "served: " + text}]}
    if method == "ping":
        return {}
    return None


note("start")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    found = result(message["method"], message.get("params") or {})
    if found is None:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    else:
        answer["result"] = found
    print(json.dumps(answer), flush=True)
note("end")
