import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { channelVariable, holdVariable } from '../../../infra/agents/relay/protocol.ts';
import { createChannels } from '../../../infra/gateway/channel/index.ts';
import { freePort } from '../../../infra/temporal/ports.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { createBridgeSandbox } from '../../helpers/gateway/bridge-sandbox.ts';
import { startTestGateway, type TestGateway } from '../../helpers/gateway/gateway.ts';
import { sampleByPrompt } from '../../helpers/gateway/gateway-process.ts';
import { until } from '../../helpers/until.ts';

const program = join(import.meta.dirname, '../../../infra/agents/relay/main.ts');
const servedSec = '300';

/** Starts the relay's own program as in a sandbox, with this hold, and the agent's and the host's end of it. */
async function startRelay(gateway: TestGateway, session: string, holdMs: number) {
  const home = await mkdtemp(join(tmpdir(), 'temper-hold-'));
  const secret = await gateway.open(session);
  const address = `127.0.0.1:${await freePort()}`;
  const env = { PATH: process.env.PATH, HOME: home, [channelVariable]: 'stream', [holdVariable]: String(holdMs) };
  const child = spawn(process.execPath, [program, address, home, 'serve', servedSec], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const fails = once(child, 'exit').then(([code]) => assert.fail(`the relay ended with ${code}`));
  await Promise.race([once(child.stdout, 'data'), fails]);
  fails.catch(() => undefined);
  const held = new Set<{ close(): void }>();
  return {
    /** Asks for a turn as the agent does, and returns the answer with the time that it took. */
    async ask(text: string) {
      const beganMs = performance.now();
      const reply = await fetch(`http://${address}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ messages: [{ role: 'user', content: text }] }),
      });
      return { status: reply.status, body: JSON.parse(await reply.text()), tookMs: performance.now() - beganMs };
    },
    /** Has the host carry the relay's calls, until it goes away. */
    hostComes() {
      const channel = createChannels(gateway.options.sockets).stream.hold(createBridgeSandbox(home), {
        session,
        onOutage: () => undefined,
      });
      held.add(channel);
      return () => channel.close();
    },
    async [Symbol.asyncDispose]() {
      for (const channel of held) channel.close();
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await rm(home, { recursive: true, force: true });
    },
  };
}

it('a call waits for a host for the configured time and no longer, after which the agent may call again', async () => {
  const engine = createScriptedEngine({ script: sampleByPrompt });
  await using gateway = await startTestGateway(engine);
  const shortMs = 2_000;
  await using short = await startRelay(gateway, 'short.1', shortMs);
  await using long = await startRelay(gateway, 'long.1', 120_000);
  const hostLeaves = long.hostComes();
  assert.equal((await long.ask('while it is there')).status, 200);
  hostLeaves();

  let answered = false;
  const waiting = long.ask('while it is away').finally(() => {
    answered = true;
  });
  const refused = await short.ask('while it is away');
  assert.deepEqual([refused.status, refused.body.error?.code], [503, 'gateway_unavailable']);
  assert.ok(refused.tookMs >= shortMs && refused.tookMs < 60_000, `refused after ${refused.tookMs} ms`);
  assert.equal(answered, false);

  long.hostComes();
  short.hostComes();
  const { status, tookMs } = await waiting;
  assert.deepEqual([status, tookMs >= shortMs], [200, true]);
  // Its host may take longer to connect than it holds a call.
  await until(async () => (await short.ask('when it is back')).status === 200);
  assert.equal((await gateway.control.seal('long.1')).turns, 2);
});
