import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createHelperSpawner } from '../../../infra/process/spawner/through-helper.ts';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import type { TestGateway } from '../../helpers/gateway/gateway.ts';
import { type AgentRollouts, startAgentRollouts } from '../../helpers/rollouts/agent-rollouts.ts';

/** A task that is judged by the agent's answer alone. */
const files = {
  'task.toml': '[environment]\ndocker_image = "temper-tasks:bookworm"\n[tools]\nhost = ["answer", "submit"]\n',
  'instruction.md': 'What is six times seven?',
  'environment/workspace/notes.txt': 'Seven times six is the same.\n',
  'tests/test.sh':
    '[ "$(cat /tests/answer.txt)" = 42 ] && echo 1 >/logs/verifier/reward.txt || echo 0 >/logs/verifier/reward.txt\n',
  'solution/answer.txt': '42',
} as const;

describe('a task that is judged by an answer', () => {
  let rollouts: AgentRollouts;
  let address = '';
  let calls: readonly { readonly name: string; readonly arguments: object }[] = [];

  before(async () => {
    rollouts = await startAgentRollouts(say, {
      providerIn: (home) =>
        createLocalProvider({ root: join(home, 'sandboxes'), stack: 'test-stack', spawner: createHelperSpawner() }),
      taskRoot: 'tasks',
    });
    const directory = join(rollouts.home, 'tasks', 'product');
    address = `harbor:${directory}`;
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), text);
    }
  });
  after(() => rollouts?.close());

  async function say(promptIds: readonly number[], { model: { tokens } }: TestGateway): Promise<readonly number[]> {
    const response = tokens.idOf('<tool_response>');
    const call = calls[promptIds.filter((id) => id === response).length];
    return tokens.encode(`${call ? `<tool_call>\n${JSON.stringify(call)}\n</tool_call>` : 'Done.'}<|im_end|>`);
  }

  const answering = (answer: string) => ({ name: 'answer', arguments: { answer } });
  const submit = { name: 'submit', arguments: {} };
  const look = { name: 'terminal', arguments: { keystrokes: 'cat notes.txt\n', duration: 30 } };
  const complete = { name: 'task_complete', arguments: {} };
  const cases = [
    { title: 'by its last answer', agent: 'mini', calls: [answering('41'), answering('42'), submit], reward: 1 },
    {
      title: 'by its answer, handed in when the task is complete',
      agent: 'terminal?commands=tools',
      calls: [look, answering('42'), complete, complete],
      reward: 1,
    },
    { title: 'as unsolved without one', agent: 'mini', calls: [submit], reward: 0 },
    { title: 'by that of the reference solution', agent: 'oracle', calls: [], reward: 1 },
  ] as const;
  for (const one of cases) {
    it(`judges ${one.agent} ${one.title}`, async () => {
      calls = one.calls;
      const { result, evidence } = await rollouts.roll({ task: address, agent: one.agent });
      assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', one.reward, 'submitted'], evidence);
      const answer = result.answer && String(await rollouts.store.get(result.answer.digest));
      assert.equal(answer, one.reward === 1 ? '42' : undefined);
    });
  }

  it('refuses an agent that takes no host tools, and settings that leave the tool out', async () => {
    const { result } = await rollouts.roll({ task: address, agent: 'mini', hostTools: ['submit'] });
    assert.deepEqual([result.outcome, result.failure?.type], ['invalid-task', 'UnsupportedTask']);
    assert.match(result.failure?.message ?? '', /asks for the host tool answer/);
  });
});
