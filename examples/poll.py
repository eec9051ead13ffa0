# Starts a session over MCP and polls it until it is done, with nothing but Python 3.
#
#   python3 examples/poll.py "Add a test for the parser" path/to/project [command to start the server]
#
# It uses your own Claude Code login. When Claude asks for permission, answer y or n.
import json
import os
import subprocess
import sys
import time

prompt = sys.argv[1] if len(sys.argv) > 1 else "Say hello."
cwd = sys.argv[2] if len(sys.argv) > 2 else os.getcwd()
command = sys.argv[3:] or ["claude-code-mcp"]

server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
last_id = 0


def send(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def request(method, params):
    global last_id
    last_id += 1
    send({"id": last_id, "method": method, "params": params})
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == last_id and "method" not in answer:
            if "error" in answer:
                sys.exit(answer["error"]["message"])
            return answer["result"]
    sys.exit("The server has exited.")


def call(tool, **arguments):
    return request("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]


client = {"name": "poll", "version": "1.0.0"}
request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
send({"method": "notifications/initialized"})

started = call("claude_code", prompt=prompt, cwd=cwd)
if started.get("isError"):
    sys.exit(started["error"])
session = started["sessionId"]
position = {}
while True:
    answer = call("claude_code_check", action="poll", sessionId=session, **position)
    for event in answer.get("events", []):
        if event["type"] == "output" and event["data"].get("text"):
            print(event["data"]["text"], flush=True)
    for action in answer.get("actions", []):
        print(f"Claude wants to use {action['toolName']}: {json.dumps(action['input'])}", file=sys.stderr)
        print("Allow? [y/n] ", end="", file=sys.stderr, flush=True)
        decision = "allow" if sys.stdin.readline().strip() == "y" else "deny"
        call("claude_code_check", action="respond_permission", sessionId=session, requestId=action["requestId"], decision=decision)
    if "result" in answer:
        result = answer["result"]
        print(f"{answer['status']}: {result['result']}")
        break
    if answer.get("isError"):
        sys.exit(answer["error"])
    position = {"cursor": answer["nextCursor"]}
    time.sleep(answer.get("pollInterval", 1000) / 1000)

server.stdin.close()  # Ends the session, too.
server.wait()
sys.exit(1 if result["isError"] else 0)
