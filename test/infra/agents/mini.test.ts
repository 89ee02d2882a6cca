import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { exits } from '../../../infra/agents/mini/exits.ts';
import { instructionFile, main, variables } from '../../../infra/agents/mini/main.ts';
import { createProxy } from '../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../infra/agents/relay/socket-route.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';

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
  const relay = createProxy(createSocketRoute({ directory: gateway.options.sockets.agents, retryMs: 1_000 }));
  try {
    relay.listen(0, '127.0.0.1');
    await once(relay, 'listening');
    const { port } = relay.address() as AddressInfo;
    const secret = await gateway.open('a.1');
    await writeFile(join(home, instructionFile), 'Fix it.');
    const code = await main({
      HOME: home,
      PATH: process.env.PATH,
      [variables.baseUrl]: `http://127.0.0.1:${port}`,
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
    relay.closeAllConnections();
    relay.close();
    await rm(home, { recursive: true, force: true });
  }
});
