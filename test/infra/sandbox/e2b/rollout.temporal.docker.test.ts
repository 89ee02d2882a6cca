import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createRuntime } from '../../../../infra/agents/runtime.ts';
import { createE2bProvider } from '../../../../infra/sandbox/e2b/provider.ts';
import { templateNameOf } from '../../../../infra/sandbox/e2b/templates.ts';
import { startE2bServer } from '../../../helpers/e2b/server.ts';
import { e2bSettings } from '../../../helpers/e2b/settings.ts';
import { agentCases, taskToFix } from '../../../helpers/rollouts/agent-cases.ts';
import { startAgentRollouts } from '../../../helpers/rollouts/agent-rollouts.ts';

it('an agent works in an E2B sandbox that lives for an hour at most, over a stream that is cut in a turn, and another grades it', async () => {
  const [{ agent, calls }] = agentCases as [(typeof agentCases)[number]];
  const home = mkdtempSync(join(tmpdir(), 'e2b-home-'));
  const image = 'temper-tasks:bookworm';
  const programs = [await createRuntime({ cacheDir: join(home, 'cache') }).prepare()];
  const template = { image, cpuCount: 2, memoryMB: 8_192, programs };
  const server = await startE2bServer({ maxHours: 1, templates: { [templateNameOf(image)]: template } });
  const provider = createE2bProvider({ stack: 'test-stack', ...e2bSettings(server, home), longestMs: 3_600_000 });
  let sampled = 0;
  const rollouts = await startAgentRollouts(
    async (_, { model: { tokens } }) => {
      const call = calls[sampled];
      sampled += 1;
      if (sampled === 1) server.cutStreams();
      return tokens.encode(`<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`);
    },
    { channel: 'stream', providerIn: () => provider },
  );
  try {
    const { result, evidence } = await rollouts.roll({ task: taskToFix, agent });
    assert.deepEqual([result.outcome, result.reward, result.stop], ['scored', 1, 'submitted'], evidence);
    assert.equal(sampled, calls.length, 'expected each turn to be sampled once');
    assert.equal(server.creations.length, 2);
    assert.deepEqual(await provider.list('test-stack'), []);
  } finally {
    await rollouts.close();
    await provider.close();
    await server.close();
    rmSync(home, { recursive: true });
  }
});
