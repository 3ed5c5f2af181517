"""The prompts that the official conformance suite wants to find on a server."""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.doors.mcp.server import Call
from laneway.wire.messages import INVALID_PARAMS

Result = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
CONTEXT = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "What is this about?",
        "requestedSchema": {
            "type": "object",
            "properties": {"context": {"type": "string"}},
            "required": ["context"],
        },
    },
}
ARGUMENTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


class ConformancePrompts:
    def prompts(self) -> list[Result]:
        return [
            {
                "name": name,
                "description": f"For the conformance suite: {name}",
                "arguments": [{"name": argument, "required": True} for argument in arguments],
            }
            for name, arguments in ARGUMENTS.items()
        ]

    async def prompt(self, call: Call, name: str, arguments: dict[str, str]) -> Result:
        match name:
            case "test_simple_prompt":
                return messages(text("This is a simple prompt for testing."))
            case "test_prompt_with_arguments":
                given = f"arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
                return messages(text(f"Prompt with arguments: {given}"))
            case "test_prompt_with_embedded_resource":
                resource = {"uri": arguments.get("resourceUri"), "mimeType": "text/plain", "text": "embedded"}
                return messages({"type": "resource", "resource": resource}, text("Please process it."))
            case "test_prompt_with_image":
                image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                return messages(image, text("Please look at it."))
            case "test_input_required_result_prompt":
                if call.params.get("inputResponses") is None:
                    return {"resultType": "input_required", "inputRequests": {"user_context": CONTEXT}}
                return messages(text(f"About {call.params['inputResponses']}"))
        raise RemoteError(INVALID_PARAMS, f"There is no prompt {name}")


def text(said: str) -> Result:
    return {"type": "text", "text": said}


def messages(*contents: Result) -> Result:
    return {"messages": [{"role": "user", "content": content} for content in contents]}
