"""A far side that is none: it greets as Laneway does, or not even that, and misbehaves. `hostile.py HOW`."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

HELLO = {"protocol": 1, "version": "9", "home": "home-1", "repositories": ["site"], "free": {"read": 8}}
JOB = "job-0123456789abcdef"


def say(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def requests() -> Any:
    return (json.loads(line) for line in sys.stdin)


def answer(request: Any, result: Any) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def endless() -> None:
    while True:
        os.write(1, b"x" * 65536)


def main(how: str) -> None:
    match how:
        case "dies":
            print("Permission denied (publickey).", file=sys.stderr)
            sys.exit(255)
        case "says nothing":
            time.sleep(1000)
        case "talks for ever":
            endless()
        case "says goodbye":
            return
        case "banner":
            print("Welcome to gpu1!\n{not json\n[]\n", flush=True)
    for request in requests():
        if request["method"] == "hello":
            match how:
                case "greets in words":
                    answer(request, "hello")
                    continue
                case "other protocol":
                    answer(request, HELLO | {"protocol": 2})
                    continue
                case "refuses":
                    fault = {"code": -32000, "message": "no"}
                    say({"jsonrpc": "2.0", "id": request["id"], "error": fault})
                    continue
            answer(request, HELLO)
            continue
        match how:
            case "garbage":
                print("Segmentation fault", flush=True)
            case "binary":
                os.write(1, os.urandom(4096) + b"\n")
            case "endless line":
                endless()
            case "wrong ids":
                for number in (0, -1, 10**9, "x", None):
                    say({"jsonrpc": "2.0", "id": number, "result": {"jobs": []}})
            case "silence":
                pass
            case "dies later":
                os._exit(3)
            case "asks":
                say({"jsonrpc": "2.0", "id": 7, "method": "spawn", "params": {}})
                for _ in range(1000):
                    say({"jsonrpc": "2.0", "method": "flood", "params": {}})
                reply = json.loads(sys.stdin.readline())
                answer(request, {"refused": reply["error"]["code"]})
            case "half an answer":
                sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {}})[:-5])
                sys.stdout.flush()
                os._exit(0)
            case "wrong shape":
                answer(request, {"jobs": "all of them"})
            case "another job":
                answer(request, {"home": "home-1", "jobs": [{"jobId": JOB, "status": "succeeded"}]})
            case "accepts" if request["method"] in ("spawn", "watch"):
                params = request["params"]
                ids = [params["jobId"]] if "jobId" in params else list(params["jobs"])
                running = [{"jobId": job_id, "status": "running", "startedAgoS": 1} for job_id in ids]
                answer(request, {"home": "home-1", "jobs": running})
            case _:
                answer(request, {"method": request["method"]})


if __name__ == "__main__":
    main(sys.argv[1])
