import assert from 'node:assert/strict';
import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, rm, symlink, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { createProxy } from '../../../../infra/agents/relay/proxy.ts';
import { createSocketRoute } from '../../../../infra/agents/relay/socket-route.ts';
import { loadJournal, newJournal } from '../../../../infra/gateway/sessions/journal.ts';
import { createSessionFiles } from '../../../../infra/gateway/sessions/session-files.ts';
import { createScriptedEngine } from '../../../helpers/engine/scripted-engine.ts';
import { createSingleEngine } from '../../../helpers/engine/single-engine.ts';
import { chunksOf, sendTo, startTestGateway, type TestGateway } from '../../../helpers/gateway/gateway.ts';
import { type GatewayProcessSettings, sampleByPrompt } from '../../../helpers/gateway/gateway-process.ts';
import { converse, referenceRun, startProcess, user, withoutTimes } from '../../../helpers/gateway/reference-run.ts';
import { until } from '../../../helpers/until.ts';

describe('a gateway that is killed', () => {
  const cases: readonly (readonly [string, Partial<GatewayProcessSettings>])[] = [
    ['between the journal and the reply', { dieAfterTurn: 2 }],
    ['in the middle of a generation', { dieInGeneration: 2 }],
  ];
  for (const [moment, changes] of cases) {
    it(`${moment} loses nothing: the client's retry leads to the trace of an undisturbed run`, async () => {
      const expected = await referenceRun('a.1');
      await using gateway: TestGateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
      await gateway.stop();
      const options = {
        ...gateway.options,
        policies: createSingleEngine(createScriptedEngine({ script: sampleByPrompt }), 1_000),
        log: () => {},
      };
      let child = await startProcess(options, changes);
      let kills = 0;
      try {
        const secret = await gateway.open('a.1');
        const said = await converse(async (body) => {
          try {
            return await gateway.chat(secret, body);
          } catch {
            kills += 1;
            if (child.signalCode === null) await once(child, 'exit');
            child = await startProcess(options, {});
            return gateway.chat(secret, body);
          }
        });
        assert.equal(kills, 1);
        assert.deepEqual(said, expected.replies);
        const summary = await gateway.control.seal('a.1');
        assert.deepEqual(withoutTimes(await gateway.traceOf(summary)), expected.trace);
        assert.deepEqual(await gateway.control.seal('a.1'), summary);
      } finally {
        child.kill('SIGKILL');
        if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
      }
    });
  }
});

describe('behind the relay of a sandbox', () => {
  for (const delivery of ['whole', 'stream'] as const) {
    it(`an agent that reads replies as a ${delivery} does not notice that the gateway was killed twice`, async () => {
      const expected = await referenceRun('a.1');
      await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
      await gateway.stop();
      const options = {
        ...gateway.options,
        policies: createSingleEngine(createScriptedEngine({ script: sampleByPrompt }), 1_000),
        log: () => {},
      };
      const relay = createProxy(createSocketRoute({ directory: options.sockets.agents, retryMs: 60_000 }));
      const relaySocket = join(dirname(options.journalDir), 'relay.sock');
      await new Promise<void>((resolve) => relay.listen(relaySocket, resolve));
      let child = await startProcess(options, { dieInGeneration: 1 });
      let deaths = 0;
      const revive = async (next: Partial<GatewayProcessSettings>): Promise<void> => {
        await once(child, 'exit');
        deaths += 1;
        child = await startProcess(options, next);
      };
      const reviving = revive({ dieAfterTurn: 2 }).then(() => revive({}));
      try {
        const secret = await gateway.open('a.1');
        const headers = { authorization: `Bearer ${secret}` };
        const post = { method: 'POST', path: '/v1/chat/completions', headers };
        const said = await converse(async (body) => {
          const stream = delivery === 'stream';
          const reply = await sendTo(relaySocket, { ...post, body: JSON.stringify({ ...body, stream }) });
          if (!stream) return reply;
          assert.ok(reply.text.endsWith('data: [DONE]\n\n'), reply.text);
          const content = chunksOf(reply).map((chunk) => chunk.choices[0]?.delta.content ?? '');
          return { ...reply, json: { choices: [{ message: { content: content.join('') } }] } };
        });
        await reviving;
        assert.deepEqual([deaths, said], [2, expected.replies]);
        const summary = await gateway.control.seal('a.1');
        assert.deepEqual(withoutTimes(await gateway.traceOf(summary)), expected.trace);
      } finally {
        relay.closeAllConnections();
        relay.close();
        child.kill('SIGKILL');
        if (child.signalCode === null && child.exitCode === null) await once(child, 'exit');
      }
    });
  }
});

describe('a journal', () => {
  it('loses only its last line when that was cut short', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
    const secret = await gateway.open('a.1');
    await gateway.chat(secret, { messages: [user('x')] });
    await gateway.stop();
    await appendFile(join(gateway.options.journalDir, 'a.1.jsonl'), '{"sum":"00000000","record":{"kind":"tu');
    await gateway.restart();
    await gateway.chat(secret, { messages: [user('y')] });
    await gateway.restart();
    assert.equal((await gateway.control.status('a.1'))?.turns, 2);
  });

  it('is not continued when it is damaged in the middle', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
    await gateway.open('a.1');
    await gateway.stop();
    await appendFile(join(gateway.options.journalDir, 'a.1.jsonl'), 'garbage\n{"sum":"00000000"}\n');
    await gateway.restart();
    await assert.rejects(gateway.control.seal('a.1'), { type: 'StoreUnavailable', message: /damaged/ });
  });

  it('is removed once its session is sealed', async () => {
    await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }));
    const secret = await gateway.open('a.1', { group: 'run/1' });
    await gateway.chat(secret, { messages: [user('x')] });
    await gateway.control.seal('a.1');
    const left = await readdir(gateway.options.journalDir);
    assert.deepEqual(
      left.filter((name) => name.startsWith('a.1')),
      ['a.1.sealed.json'],
    );
  });

  it('fails with DiskFull when there is no space', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'temper-journal-'));
    const path = join(dir, 'a.jsonl');
    await symlink('/dev/full', path);
    const opened = { kind: 'close', at: 0 } as const;
    await assert.rejects(newJournal(path, opened), { type: 'DiskFull' });
    await rm(path);
    const made = await newJournal(path, opened);
    assert.equal(await loadJournal(path), 'locked-elsewhere');
    assert.ok(made !== 'locked-elsewhere');
    await made.journal.close();
    const loaded = await loadJournal(path);
    assert.ok(loaded !== null && loaded !== 'locked-elsewhere');
    assert.deepEqual(loaded.records, [opened]);
    await loaded.journal.close();
    await rm(dir, { recursive: true });
  });
});

describe('an unloaded session', () => {
  const resting = { idleMs: 300, cleanUpMs: 20 };
  /** Waits until the gateway has unloaded the session, so that its journal can be locked. */
  const untilAtRest = (gateway: TestGateway, id: string) =>
    until(async () => {
      const loaded = await loadJournal(join(gateway.options.journalDir, `${id}.jsonl`));
      if (loaded === 'locked-elsewhere' || loaded === null) return false;
      await loaded.journal.close();
      return true;
    });

  it('is loaded when its agent continues, and its trace equals that of a session that stayed loaded', async () => {
    const expected = await referenceRun('a.1');
    await using gateway = await startTestGateway(createScriptedEngine({ script: sampleByPrompt }), resting);
    const secret = await gateway.open('a.1');
    const said = await converse(async (body) => {
      await untilAtRest(gateway, 'a.1');
      return gateway.chat(secret, body);
    });
    assert.deepEqual(said, expected.replies);
    await untilAtRest(gateway, 'a.1');
    assert.deepEqual(withoutTimes(await gateway.traceOf(await gateway.control.seal('a.1'))), expected.trace);
  });

  it('answers a retried request from the journal, and counts it', async () => {
    const engine = createScriptedEngine({ script: sampleByPrompt });
    await using gateway = await startTestGateway(engine, resting);
    const secret = await gateway.open('a.1');
    const first = await gateway.chat(secret, { messages: [user('Begin.')] });
    for (let again = 0; again < 2; again += 1) {
      await untilAtRest(gateway, 'a.1');
      assert.equal((await gateway.chatAgain(secret, { messages: [user('Begin.')] })).text, first.text);
    }
    await untilAtRest(gateway, 'a.1');
    const { turns, retries } = await gateway.control.seal('a.1');
    assert.deepEqual([turns, retries], [1, 2]);
  });

  it('is not unloaded while a turn is running', async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    const engine = createScriptedEngine({
      async script(request) {
        asked.resolve();
        await answer.promise;
        return sampleByPrompt(request);
      },
    });
    await using gateway = await startTestGateway(engine, resting);
    const secret = await gateway.open('a.1');
    const reply = gateway.chat(secret, { messages: [user('Begin.')] });
    await asked.promise;
    // This session is opened later: once it is unloaded, the other one has been skipped.
    await gateway.open('b.1');
    await untilAtRest(gateway, 'b.1');
    answer.resolve();
    assert.equal((await reply).status, 200);
  });
});

it('the clean-up removes files that were not written for a long time, and keeps the others', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'temper-journals-'));
  const names = ['old.1.jsonl', 'old.2.sealed.json', 'old.group', 'old.1.holder', 'kept.1.jsonl', 'new.1.jsonl'];
  const beforeMs = Date.now() - 60_000;
  for (const name of names) await appendFile(join(dir, name), 'x');
  for (const name of names.slice(0, 5)) await utimes(join(dir, name), 1_000, 1_000);
  await createSessionFiles({ dir, shared: null, name: 'gateway' }).cleanUp(beforeMs, (id) => id === 'kept.1');
  assert.deepEqual((await readdir(dir)).toSorted(), ['kept.1.jsonl', 'new.1.jsonl']);
  await rm(dir, { recursive: true });
});
