import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createSlotTable } from '../../../../infra/engine/replicas/slots.ts';
import { createReplicas } from '../../../../infra/engine/replicas.ts';
import { createScriptedReplica, type ScriptedReplica } from '../../../helpers/engine/replica.ts';
import type { Step } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';
import { readJournalText } from '../../../helpers/gateway/journal-text.ts';
import { until } from '../../../helpers/until.ts';

const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const done = { kind: 'say', ids: [65, 258] } as const;
const hanging = { kind: 'hang', ids: [65] } as const;

/** A gateway before one replica, which plays the steps in order. */
async function gatewayOf(t: TestContext, steps: readonly Step[], requestsAtOnce: number | null = null, probeMs = 20) {
  const replica = createScriptedReplica('http://one', (_, index) => steps[index] ?? done);
  const slots = createSlotTable({ requestsAtOnce });
  const replicas = createReplicas([replica], { slots, probeMs });
  const gateway = await startTestGateway(replicas, { cleanUpMs: 50 });
  t.after(async () => {
    await gateway[Symbol.asyncDispose]();
    await replicas.close();
  });
  return { gateway, replica };
}

const waitedMs = async ({ control }: TestGateway, session: string): Promise<number> =>
  (await control.status(session))?.waitedMs ?? Number.NaN;

/** Sends a request without a wait for its reply. */
function send(gateway: TestGateway, secret: string, text: string): AbortController {
  const leave = new AbortController();
  gateway.chat(secret, ask(text), leave.signal).catch(() => undefined);
  return leave;
}

const begun = (replica: ScriptedReplica, requests: number) => until(() => replica.requests.length === requests);

describe('a session waits for its engine', () => {
  it('while others have its slots, and no longer once it is sampled', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [hanging], 1);
    const other = send(gateway, await gateway.open('other.1'), 'x');
    await begun(replica, 1);
    const reply = gateway.chat(await gateway.open('a.1'), ask('y'));
    await until(async () => (await waitedMs(gateway, 'a.1')) > 200);
    assert.equal(await waitedMs(gateway, 'other.1'), 0);
    other.abort();
    assert.equal((await reply).status, 200);
    const { waitedSeconds, engineSeconds } = await gateway.control.seal('a.1');
    assert.ok(waitedSeconds > 0.2 && waitedSeconds <= engineSeconds + 0.01, `${waitedSeconds} of ${engineSeconds} s`);
    assert.equal(await waitedMs(gateway, 'a.1'), waitedSeconds * 1000);
  });

  it('but not while another turn of its own has the slot', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [hanging], 1);
    const secret = await gateway.open('a.1');
    send(gateway, secret, 'x');
    await begun(replica, 1);
    const second = send(gateway, secret, 'y');
    await until(async () => (await gateway.control.status('a.1'))?.inFlight === 2);
    assert.equal(await waitedMs(gateway, 'a.1'), 0);
    second.abort();
    await until(async () => (await gateway.control.status('a.1'))?.inFlight === 1);
    assert.equal((await gateway.control.close('a.1'))?.waitedSeconds, 0);
  });

  it('while it is paused, also for a gateway that is started again', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [hanging]);
    send(gateway, await gateway.open('a.1'), 'x');
    await begun(replica, 1);
    replica.paused = true;
    await until(async () => (await waitedMs(gateway, 'a.1')) > 200);
    const journal = join(gateway.options.journalDir, 'a.1.jsonl');
    // It is written while the turn waits, since a killed gateway writes nothing.
    await until(async () => (await readJournalText(journal)).includes('"kind":"waited"'));
    const beforeMs = await waitedMs(gateway, 'a.1');
    await gateway.restart();
    assert.ok((await waitedMs(gateway, 'a.1')) >= beforeMs);
    const { waitedSeconds = 0 } = (await gateway.control.close('a.1')) ?? {};
    assert.ok(waitedSeconds * 1000 >= beforeMs, `${waitedSeconds} s`);
  });

  it('while it is paused for less time than two probes are apart', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [hanging, hanging], null, 3_600_000);
    const secret = await gateway.open('a.1');
    send(gateway, secret, 'x');
    await until(() => replica.hanging === 1);
    replica.paused = true;
    await until(async () => (await waitedMs(gateway, 'a.1')) > 600);
    replica.paused = false;
    // One that is sampled holds none, and was asked for no longer.
    const { probes } = replica;
    send(gateway, secret, 'y');
    await until(() => replica.hanging === 2);
    const before = await waitedMs(gateway, 'a.1');
    await until(() => replica.probes > probes);
    assert.equal(await waitedMs(gateway, 'a.1'), before);
  });

  it('and works for it as long as a clock says that does not jump', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [hanging]);
    send(gateway, await gateway.open('a.1'), 'x');
    await until(() => replica.hanging === 1);
    const { now } = Date;
    t.after(() => {
      Date.now = now;
    });
    Date.now = () => now() + 3_600_000;
    const { engineSeconds = Number.NaN } = (await gateway.control.close('a.1')) ?? {};
    assert.ok(engineSeconds > 0 && engineSeconds < 600, `${engineSeconds} s`);
  });

  it('from the abort for a weight update on, until it samples again', async (t) => {
    const { gateway, replica } = await gatewayOf(t, [
      { kind: 'say', ids: [65], cut: 'abort' },
      { kind: 'hang', ids: [] },
    ]);
    send(gateway, await gateway.open('a.1'), 'x');
    await begun(replica, 2);
    await until(async () => (await waitedMs(gateway, 'a.1')) > 200);
  });
});
