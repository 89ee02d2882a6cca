"""Plays episodes with the official client of OpenEnv and prints what it saw as JSON."""

import asyncio
import json
import sys

from openenv.cli._validation import validate_running_environment
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

url = sys.argv[1]


async def refusal(call):
    try:
        await call
    except RuntimeError as error:
        return str(error)
    return None


def shown(result):
    return {"observation": result.observation, "reward": result.reward, "done": result.done}


async def play():
    seen = {"valid": validate_running_environment(url)}
    client = lambda: GenericEnvClient(base_url=url, message_timeout_s=120)
    async with client() as right, client() as wrong:
        # Two episodes at once.
        first, second = await asyncio.gather(right.reset(task_id="easy", episode_id="mine"), wrong.reset(seed=1))
        seen["reset"] = [shown(first), shown(second)]
        seen["capacity"] = await refusal(client().reset())
        seen["bad"] = [
            await refusal(right.step({"cmd": "ls"})),
            await refusal(right.reset(task_id="none")),
            await refusal(right.reset(tasks="easy")),
        ]
        seen["steps"] = [
            shown(await right.step({"command": "cat name.txt; exit 3"})),
            shown(await right.step({"type": "call_tool", "tool_name": "edit", "arguments": {"path": "new.txt", "old": "", "new": "x"}})),
            shown(await right.step({"type": "call_tool", "tool_name": "none", "arguments": {}})),
            shown(await right.step({"command": "echo right > answer.txt"})),
        ]
        seen["state"] = await right.state()
        ends = await asyncio.gather(right.step({"submit": True}), wrong.step({"submit": True}))
        seen["ends"] = [shown(end) for end in ends]
        seen["over"] = await refusal(right.step({"command": "ls"}))
        seen["again"] = shown(await right.reset(task_id="hard"))
        await right.step({"command": "true"})
    vanishing = MCPToolClient(base_url=url, message_timeout_s=120)
    await vanishing.connect()
    seen["tools"] = [tool.name for tool in await vanishing.list_tools()]
    reset = await vanishing.reset()
    seen["mcp"] = [reset.observation.metadata["instruction"], await vanishing.call_tool("bash", command="echo from mcp")]
    seen["vanished"] = reset.observation.metadata["rollout"]
    print(json.dumps(seen), flush=True)
    # The process ends without closing its connection.
    import os

    os._exit(0)


asyncio.run(play())
