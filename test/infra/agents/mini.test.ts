import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { exits } from '../../../infra/agents/mini/exits.ts';
import { instructionFile, main, variables } from '../../../infra/agents/mini/main.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';
import { startRelay } from '../../helpers/gateway/relay.ts';

it('mini hides the secret of its session from its commands', async () => {
  const calls = [
    { name: 'bash', arguments: { command: 'env' } },
    { name: 'submit', arguments: {} },
  ];
  const engine = createScriptedEngine({
    script: (_, index) => ({
      kind: 'say',
      ids: gateway.model.tokens.encode(`<tool_call>\n${JSON.stringify(calls[index])}\n</tool_call><|im_end|>`),
    }),
  });
  await using gateway = await startTestGateway(engine);
  const home = await mkdtemp(join(tmpdir(), 'temper-mini-'));
  await using relay = await startRelay(gateway);
  try {
    const secret = await gateway.open('a.1');
    await writeFile(join(home, instructionFile), 'Fix it.');
    const code = await main({
      HOME: home,
      PATH: process.env.PATH,
      [variables.baseUrl]: relay.url,
      [variables.secret]: secret,
      [variables.workdir]: home,
      [variables.maxTurns]: '5',
      [variables.tools]: 'bash,submit',
    });
    assert.equal(code, exits.submitted);
    const seen = gateway.model.tokens.decode(engine.requests[1]?.tokenIds ?? []);
    assert.ok(seen.includes(`${variables.workdir}=${home}`), 'expected the output to show the environment');
    assert.ok(!seen.includes(secret) && !seen.includes(`${variables.secret}=`));
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
