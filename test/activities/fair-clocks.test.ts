import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitInTime } from '../../activities/host/agent-time.ts';
import { createSlotTable } from '../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../infra/engine/replicas.ts';
import type { ProcessStatus, Sandbox } from '../../infra/sandbox/sandbox.ts';
import { startTestGateway, type TestGateway } from '../helpers/gateway/gateway.ts';
import { modelDir, startTestPolicy } from '../infra/kits/embedded-policy/server/policy-server.ts';

const agents = 48;
const turns = 4;
const slots = 2;
const sampling = { temperature: 1, topP: 1, topK: -1, maxTokensPerTurn: 300 } as const;
const never = new AbortController().signal;

/** The end of an agent: whether its time was over, its time by the wall, and the part of that in which it waited. */
interface Fared {
  readonly state: ProcessStatus['state'];
  readonly elapsedMs: number;
  readonly waitedMs: number;
}

/** An agent whose session is open. */
interface Opened {
  readonly session: string;
  readonly secret: string;
}

async function open(gateway: TestGateway, session: string): Promise<Opened> {
  return { session, secret: await gateway.open(session, { sampling }) };
}

/** Lets an agent make its model calls within its time, as the host counts it. */
async function work(gateway: TestGateway, { session, secret }: Opened, timeoutMs: number): Promise<Fared> {
  const beganMs = performance.now();
  const calls = (async () => {
    for (let turn = 0; turn < turns; turn += 1) {
      const reply = await gateway.chat(secret, { messages: [{ role: 'user', content: `${session}: part ${turn}` }] });
      assert.equal(reply.status, 200, reply.text);
    }
  })();
  const elapsedMs = (): number => performance.now() - beganMs;
  const waitedMs = async (): Promise<number> => (await gateway.control.status(session))?.waitedMs ?? 0;
  const sandbox = {
    wait: (_key: string, options: { readonly timeoutMs: number }): Promise<ProcessStatus> =>
      Promise.race([
        calls.then(() => ({ state: 'exited', exitCode: 0 }) as const),
        sleep(options.timeoutMs, { state: 'running' } as const, { ref: false }),
      ]),
  } satisfies Partial<Sandbox> as unknown as Sandbox;
  const timed = { sandbox, key: 'agent', diskBeforeMb: 0, timeoutMs, waitingMs: 600_000, elapsedMs, waitedMs };
  const { status } = await waitInTime(timed, never);
  const fared = { state: status.state, elapsedMs: elapsedMs(), waitedMs: await waitedMs() };
  await calls;
  const { waitedSeconds } = await gateway.control.seal(session);
  assert.ok(waitedSeconds * 1000 >= fared.waitedMs - 1, 'expected the result to hold the wait');
  return fared;
}

it('no agent runs out of time because many others and weight syncs keep it from the few slots of an engine', async () => {
  const policy = await startTestPolicy();
  const trainer = policy.trainer();
  const replicas = createReplicas([policy.engine()], { slots: createSlotTable({ requestsAtOnce: slots }) });
  let published = 0;
  const modelId = await trainer.createModel({ loraRank: 1, seed: 0 });
  const publish = async (): Promise<void> => {
    published += 1;
    const name = `v${published}`;
    const path = await trainer.saveForSampler(modelId, name, published);
    await replicas.publish({ version: published, name, path, method: 'reload' });
  };

  /** Lets all agents work in parallel. Returns what is wrong with the times that they were given; null if nothing is. */
  async function faultOf(gateway: TestGateway, round: number): Promise<string | null> {
    const before = published;
    const alone = await work(gateway, await open(gateway, `alone-${round}.1`), 600_000);
    // As many share the engine as it has slots for, a publication pauses it, and all agents share this process.
    const timeoutMs = 12 * alone.elapsedMs;
    const names = Array.from({ length: agents }, (_, at) => `agent-${round}-${at}.1`);
    const opened = await Promise.all(names.map((name) => open(gateway, name)));
    const working = Promise.all(opened.map((agent) => work(gateway, agent, timeoutMs)));
    let ended = false;
    const over = working.finally(() => {
      ended = true;
    });
    while (!ended) {
      await publish();
      await Promise.race([over, sleep(alone.elapsedMs)]);
    }
    const fared = await over;
    const told = JSON.stringify({ alone, timeoutMs, published, fared });
    if (!fared.every(({ state }) => state === 'exited')) return `expected all to end in their time: ${told}`;
    const slow = fared.filter(({ elapsedMs }) => elapsedMs > timeoutMs);
    if (slow.length < agents / 4) return `expected agents that took longer than their time: ${told}`;
    if (!slow.every(({ elapsedMs, waitedMs }) => elapsedMs - waitedMs <= timeoutMs)) return told;
    return published >= before + 4 ? null : `expected four publications: ${told}`;
  }

  try {
    await publish();
    await using gateway = await startTestGateway(replicas, { modelDir });
    // A clock that counted waits would be wrong each time. Another process may slow this one down for a while.
    let fault = await faultOf(gateway, 1);
    for (let round = 2; fault !== null && round <= 4; round += 1) fault = await faultOf(gateway, round);
    assert.equal(fault, null);
  } finally {
    await replicas.close();
    trainer.close();
    await policy.close();
  }
});
