import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readRollout } from '../../../infra/report/read-rollout.ts';
import type { RolloutDetails } from '../../../infra/report/report-data.ts';
import { createFileStore } from '../../../infra/store/files.ts';
import { branchingText } from '../../../workers/cli/commands/show/branching.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import type { Trace, TraceSummary } from '../../../workflows/contracts/trace.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';

/** A conversation with a title call and a fork, sealed by a gateway and read as `temper show` reads it. */
async function detailsOf(change: (trace: Trace) => object = (trace) => trace): Promise<RolloutDetails> {
  const engine = createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: [65 + index, 258] }) });
  await using gateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  const tools = [{ type: 'function', function: { name: 'bash' } }];
  const task = { role: 'user', content: 'Fix it.' };
  await gateway.chat(secret, { messages: [task], tools });
  await gateway.chat(secret, { messages: [{ role: 'system', content: 'Title.' }, task] });
  const told = [task, { role: 'assistant', content: 'Told anew.' }, { role: 'user', content: 'Go on.' }];
  await gateway.chat(secret, { messages: told, tools });
  const again = [...told, { role: 'assistant', content: ' C' }, { role: 'user', content: 'More.' }];
  await gateway.chat(secret, { messages: again, tools });
  const trace = await gateway.traceOf(await gateway.control.seal('a.1'));
  const dir = await mkdtemp(join(tmpdir(), 'temper-details-'));
  const store = createFileStore(dir);
  const sealed = { trace: await store.putJson(change(trace)) } as TraceSummary;
  const result = { trace: sealed, diff: null, verdict: null } as unknown as RolloutResult;
  return readRollout(store, result).finally(() => rm(dir, { recursive: true }));
}

describe('the branches that temper show prints', () => {
  it('say what each is, what of it is trained, and what was tolerated', async () => {
    const { branching, messages } = await detailsOf();
    assert.ok(branching !== null);
    const [head, , ...lines] = branchingText(branching).split('\n');
    assert.match(head ?? '', /^branch +kind +turns +tokens +finish +aborts +trained$/);
    const tokens = branching.branches.map(({ tokens }) => tokens);
    assert.deepEqual(
      lines.map((line) => line.replaceAll(/ +/g, ' ').trim()),
      [
        `1 main 1 (1–1) ${tokens[0]} stop 0 segment 1`,
        `2 side 1 (2–2) ${tokens[1]} stop 0 no, rule`,
        `3 fork 2 (3–4) ${tokens[2]} stop 0 segment 2`,
        'forks: 2',
        'sampled tokens left out: 2',
        'echoes in another form: text 1',
      ],
    );
    const said = messages.filter(({ turn }) => turn !== null);
    assert.deepEqual(
      said.map(({ text, turn }) => [turn?.index, text]),
      [
        [0, 'A'],
        [1, 'B'],
        [2, 'C'],
        [3, 'D'],
      ],
    );
    assert.ok(messages.some(({ role, turn }) => role === 'assistant' && turn === null));
  });

  it('are left out for an older trace, which can still be shown', async () => {
    const { branching, messages } = await detailsOf(({ branches: _, counts: __, transcript, ...trace }) => ({
      ...trace,
      transcript: transcript.slice(0, 2).map(({ role, text }) => ({ role, text })),
    }));
    assert.equal(branching, null);
    assert.deepEqual(
      messages.map(({ turn }) => turn?.index ?? null),
      [null, 0],
    );
  });
});
