import assert from 'node:assert/strict';
import { it } from 'node:test';
import { exits } from '../../../../infra/agents/mini/exits.ts';
import { ModelError } from '../../../../infra/agents/mini/model.ts';
import type { Tool } from '../../../../infra/agents/mini/tools.ts';
import { work } from '../../../../infra/agents/terminal/loop.ts';
import { createTools } from '../../../../infra/agents/terminal/tools.ts';

/** Plays replies at a terminal that notes what is typed, and for how long was waited. */
async function play(replies: readonly (string | Error)[], submit: Tool | null = null) {
  const typed: (readonly [string, number])[] = [];
  let turn = 0;
  const terminal = {
    type: async (text: string, waitMs: number) => void typed.push([text, waitMs]),
    show: () => '$',
    close: () => {},
  };
  const { desk, tools } = createTools({ terminal, longestWaitSec: 60, submit });
  const code = await work({
    instruction: 'Fix it.',
    model: {
      async reply() {
        const content = replies[turn] ?? assert.fail('expected no further turn');
        turn += 1;
        if (content instanceof Error) throw content;
        return { role: 'assistant', content };
      },
    },
    tools,
    desk,
    asText: true,
    maxTurns: 20,
    log: () => {},
  });
  return { code, turns: turn, typed };
}

const done = '{"task_complete": true}';

it('the agent terminal ends when the context is full, at the limits of the gateway, and fails otherwise', async () => {
  const ended = async (code: string) => (await play([new ModelError(code, 'no more')])).code;
  assert.equal(await ended('context_length_exceeded'), exits.contextOverflow);
  assert.equal(await ended('turn_limit'), exits.turnLimit);
  assert.equal(await ended('token_budget'), exits.tokenBudget);
  await assert.rejects(ended('403'), /no more/);
});

it('the agent terminal asks again whether the task is complete after each work between', async () => {
  const { code, turns, typed } = await play([
    done,
    '{"commands": [{"keystrokes": "ls\\n", "duration": 900}]}',
    '{"commands": [{"keystrokes": "C-d", "duration": 0}], "task_complete": true}',
    'What?',
    done,
  ]);
  assert.deepEqual([code, turns], [exits.submitted, 5]);
  assert.deepEqual(typed, [
    ['ls\r', 60_000],
    ['\x04', 0],
  ]);
});

it('the agent terminal hands its work in by the host tool, if there is one', async () => {
  let calls = 0;
  const submit: Tool = {
    name: 'submit',
    description: '',
    schema: {},
    run: async () => {
      calls += 1;
      return null;
    },
  };
  const { code } = await play([done, done], submit);
  assert.deepEqual([code, calls], [exits.submitted, 1]);
});
