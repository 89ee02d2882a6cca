import assert from 'node:assert/strict';
import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { relayRetryMs } from '../../../../infra/agents/relay/protocol.ts';
import { createPresence } from '../../../../infra/gateway/sessions/presence.ts';
import type { TraceSummary } from '../../../../workflows/contracts/trace.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';

const ask = (text: string) => ({ messages: [{ role: 'user', content: text }] });
const fileOf = (dir: string): string => join(dir, '.presence');

/** Sets the last confirmation to that long ago. */
async function age(dir: string, ms: number): Promise<number> {
  const then = new Date(Date.now() - ms);
  await utimes(fileOf(dir), then, then);
  return then.getTime();
}

async function withDirectory(use: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'temper-presence-'));
  try {
    await use(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

describe('the presence of gateways', () => {
  it('begins with the first gateway, and a quick restart is no absence', () =>
    withDirectory(async (dir) => {
      await createPresence(dir, Date.now());
      await age(dir, relayRetryMs / 2);
      const next = await createPresence(dir, Date.now());
      assert.deepEqual(await next.absences(), []);
      await next.confirm();
      assert.deepEqual(await next.absences(), []);
    }));

  it('has no absence where a gateway has just confirmed, whatever the wall clock shows since', () =>
    withDirectory(async (dir) => {
      const presence = await createPresence(dir, Date.now() - 2 * relayRetryMs);
      await presence.confirm();
      await age(dir, relayRetryMs + 10_000);
      assert.deepEqual(await presence.absences(), []);
    }));

  it('has an absence from the last confirmation to the start of the next gateway, known at once and for good', () =>
    withDirectory(async (dir) => {
      await createPresence(dir, Date.now());
      const from = await age(dir, relayRetryMs + 10_000);
      const to = Date.now();
      const next = await createPresence(dir, to);
      const expected = [{ from, to }];
      assert.deepEqual(await next.absences(), expected);
      await next.confirm();
      assert.deepEqual(await next.absences(), expected, 'once, when it is written');
      assert.deepEqual(await (await createPresence(dir, Date.now())).absences(), expected, 'also for the one after it');
    }));

  it('extends an absence over gateways that start but never confirm', () =>
    withDirectory(async (dir) => {
      await createPresence(dir, Date.now());
      const from = await age(dir, relayRetryMs + 10_000);
      await createPresence(dir, from + 5_000);
      const to = from + relayRetryMs + 5_000;
      assert.deepEqual(await (await createPresence(dir, to)).absences(), [{ from, to }]);
    }));

  it('has an absence when a running gateway stood still', () =>
    withDirectory(async (dir) => {
      const gateway = await createPresence(dir, Date.now() - 10 * relayRetryMs);
      const from = await age(dir, relayRetryMs + 10_000);
      await gateway.confirm();
      const [absence] = await gateway.absences();
      assert.equal(absence?.from, from);
      assert.ok(absence.to >= from + relayRetryMs);
    }));

  it('fails with StoreUnavailable when its file cannot be kept', () =>
    withDirectory(async (dir) => {
      await assert.rejects(createPresence(join(dir, 'gone'), Date.now()), { type: 'StoreUnavailable' });
    }));
});

/** Seals a session whose gateway was away that long, where `before` and `after` are its turns. */
async function sealedAfterAbsence(ms: number, { before = ['x'], after = [] as string[] }): Promise<TraceSummary> {
  const engine = createScriptedEngine({ script: () => ({ kind: 'say', ids: [...Buffer.from('Good')] }) });
  await using gateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  await say(gateway, secret, before);
  await gateway.stop();
  await age(gateway.options.journalDir, ms);
  await gateway.restart();
  await say(gateway, secret, after);
  return gateway.control.seal('a.1');
}

async function say(gateway: TestGateway, secret: string, texts: readonly string[]): Promise<void> {
  for (const text of texts) assert.equal((await gateway.chat(secret, ask(text))).status, 200);
}

describe('a session whose gateways were all away for longer than relays retry', () => {
  const away = relayRetryMs + 10_000;

  it('has a gateway failure that cut it off', async () => {
    const { gatewayFailures, cutOff, turns } = await sealedAfterAbsence(away, {});
    assert.deepEqual([gatewayFailures, cutOff, turns], [1, true, 1]);
    const silent = await sealedAfterAbsence(away, { before: [] });
    assert.deepEqual([silent.gatewayFailures, silent.cutOff], [1, true]);
  });

  it('has none when a turn followed, or when they were away for less', async () => {
    const wasFollowed = await sealedAfterAbsence(away, { after: ['y'] });
    assert.deepEqual([wasFollowed.gatewayFailures, wasFollowed.cutOff, wasFollowed.turns], [undefined, undefined, 2]);
    assert.equal((await sealedAfterAbsence(relayRetryMs / 2, {})).gatewayFailures, undefined);
  });

  it('has none when it was opened later', async () => {
    const engine = createScriptedEngine({ script: () => assert.fail('no request is expected') });
    await using gateway = await startTestGateway(engine);
    await gateway.stop();
    await age(gateway.options.journalDir, away);
    await gateway.restart();
    await gateway.open('a.1');
    assert.equal((await gateway.control.seal('a.1')).gatewayFailures, undefined);
  });
});
