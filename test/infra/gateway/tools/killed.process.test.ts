import assert from 'node:assert/strict';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../../infra/agents/relay/socket-route.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { createSingleEngine } from '../../../helpers/engine/single-engine.ts';
import { startTestGateway } from '../../../helpers/gateway/gateway.ts';
import { sampleByPrompt } from '../../../helpers/gateway/gateway-process.ts';
import { connectMcp } from '../../../helpers/gateway/mcp-client.ts';
import { startProcess } from '../../../helpers/gateway/reference-run.ts';

const calls = 24;
/** The calls during which the gateway is killed, and how many milliseconds after they were sent. */
const kills = new Map([
  [3, 0],
  [9, 1],
  [15, 2],
  [20, 4],
]);

it('each call of a host tool is recorded once behind the relay, wherever the gateway is killed', async () => {
  const engine = createScriptedEngine({ script: sampleByPrompt });
  await using gateway = await startTestGateway(engine);
  await gateway.stop();
  const options = { ...gateway.options, policies: createSingleEngine(engine, 1_000), log: () => {} };
  let child = await startProcess(options, {});
  const relay = createProxy(createSocketRoute({ directory: options.sockets.agents, retryMs: 60_000 }));
  const relaySocket = join(dirname(options.journalDir), 'relay.sock');
  await once(relay.listen(relaySocket), 'listening');
  const killAfter = async (ms: number): Promise<void> => {
    await sleep(ms);
    child.kill('SIGKILL');
    await once(child, 'exit');
    child = await startProcess(options, {});
  };
  try {
    const secret = await gateway.open('a.1', { hostTools: ['answer', 'submit'] });
    await using agent = await connectMcp(relaySocket, secret);
    for (let index = 0; index < calls; index += 1) {
      const ms = kills.get(index);
      const killed = ms === undefined ? null : killAfter(ms);
      assert.equal(await agent.call('answer', { answer: `answer ${index}` }), 'The answer is recorded.');
      await killed;
    }
    const summary = await gateway.control.seal('a.1');
    const { hostCalls = [] } = await gateway.traceOf(summary);
    assert.deepEqual(
      hostCalls.map((call) => JSON.parse(call.arguments).answer),
      Array.from({ length: calls }, (_, index) => `answer ${index}`),
    );
    assert.equal(summary.submitted, undefined);
  } finally {
    relay.closeAllConnections();
    relay.close();
    child.kill('SIGKILL');
    if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
  }
});
