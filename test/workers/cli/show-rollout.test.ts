import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { readRollout } from '../../../infra/report/read-rollout.ts';
import type { RolloutDetails } from '../../../infra/report/report-data.ts';
import {
  branchingText,
  doubtLines,
  hostTable,
  hostToolLines,
  stepTable,
} from '../../../workers/cli/commands/show/rollout.ts';
import { hasFailed, repeatedText, repeatedWork, shortRepeatedText } from '../../../workers/cli/follow/repeated-work.ts';
import type { Diff } from '../../../workflows/contracts/diff.ts';
import type { RolloutResult } from '../../../workflows/contracts/rollout.ts';
import type { Trace, TraceSummary } from '../../../workflows/contracts/trace.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import { createScriptedEngine } from '../../helpers/engine/scripted-engine.ts';
import { startTestGateway } from '../../helpers/gateway/gateway.ts';
import { createFileStore } from '../../helpers/store/file-store.ts';

/** Reads a conversation with a title call and a fork, sealed by a gateway, as `temper show` reads it. */
async function detailsOf(change: (trace: Trace) => object = (trace) => trace): Promise<RolloutDetails> {
  const engine = createScriptedEngine({ script: (_, index) => ({ kind: 'say', ids: [65 + index, 258] }) });
  await using gateway = await startTestGateway(engine);
  const secret = await gateway.open('a.1');
  const tools = [{ type: 'function', function: { name: 'bash' } }];
  const task = { role: 'user', content: 'Fix it.' };
  await gateway.chat(secret, { messages: [task], tools });
  await gateway.chat(secret, { messages: [{ role: 'system', content: 'Title.' }, task] });
  const rewritten = [task, { role: 'assistant', content: 'Rewritten.' }, { role: 'user', content: 'Continue.' }];
  await gateway.chat(secret, { messages: rewritten, tools });
  const again = [...rewritten, { role: 'assistant', content: ' C' }, { role: 'user', content: 'More.' }];
  await gateway.chat(secret, { messages: again, tools });
  const trace = await gateway.traceOf(await gateway.control.seal('a.1'));
  const dir = await mkdtemp(join(tmpdir(), 'temper-details-'));
  const store = createFileStore(dir);
  const sealed = { trace: await store.putJson(change(trace)) } as TraceSummary;
  const result = { trace: sealed, diff: null, verdict: null } as unknown as RolloutResult;
  return readRollout(store, result).finally(() => rm(dir, { recursive: true }));
}

describe('readRollout', () => {
  it('reads the end of the log of an agent that crashed or after which a command that collects failed', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'temper-details-'));
    const store = createFileStore(dir);
    const agentLog = await store.put(Buffer.from(`${'.'.repeat(5000)}\nthe image lacks tmux\n`), 'text/plain');
    const read = (stop: string, log: typeof agentLog | null) =>
      readRollout(store, { trace: null, diff: null, verdict: null, stop, agentLog: log } as unknown as RolloutResult);
    const { agentLogEnd } = await read('crashed', agentLog);
    assert.match(agentLogEnd ?? '', /^…\.+\nthe image lacks tmux\n$/);
    assert.equal(agentLogEnd?.length, 4001);
    assert.equal((await read('submitted', agentLog)).agentLogEnd, null);
    assert.equal((await read('crashed', null)).agentLogEnd, null);
    const noted = await store.put(
      Buffer.from('done\n\nverifier.collect: "dump" ended with exit code 3\n'),
      'text/plain',
    );
    assert.match((await read('submitted', noted)).agentLogEnd ?? '', /"dump" ended with exit code 3/);
    await rm(dir, { recursive: true });
  });

  it('reads such an end of each step, also of a step whose evaluation failed', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'temper-details-'));
    const store = createFileStore(dir);
    const put = (text: string) => store.put(Buffer.from(text), 'text/plain');
    const [noted, quiet, crashed] = await Promise.all([
      put('done\n\nverifier.collect: "dump" ended with exit code 3\n'),
      put('done\n'),
      put('no tmux\n'),
    ]);
    const rows = [
      { name: 'one', stop: 'submitted', agentLog: noted },
      { name: 'two', stop: 'submitted', agentLog: quiet },
    ];
    const read = async (steps: readonly object[], agentLog: typeof quiet) => {
      const result = { trace: null, diff: null, verdict: null, stop: 'crashed', agentLog, steps };
      return (await readRollout(store, result as unknown as RolloutResult)).agentLogEnd;
    };
    const first = 'step one:\ndone\n\nverifier.collect: "dump" ended with exit code 3\n';
    assert.equal(await read(rows, crashed), `${first}\nno tmux\n`);
    const last = { name: 'three', stop: 'crashed', agentLog: crashed };
    assert.equal(await read([...rows, last], crashed), `${first}\nstep three:\nno tmux\n`);
    await rm(dir, { recursive: true });
  });
});

describe('hostTable', () => {
  it('lists the hosts of agent and tests, flagged ones first, and as many as fit', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'temper-details-'));
    const store = createFileStore(dir);
    const row = { port: 443, phase: 'agent', decision: 'allowed', requests: 1, bytesIn: 10, bytesOut: 5 };
    const many = Array.from({ length: 21 }, (_, index) => ({ ...row, host: `h${index}.test`, requests: 50 - index }));
    const use = async (rows: readonly object[], evidence: string) => ({
      requests: 1,
      refused: 0,
      bytesIn: 0,
      bytesOut: 0,
      flags: [{ trick: 'solution-host', evidence }],
      log: await store.putJson(rows),
    });
    const solved = { ...row, host: 'github.com', bytesIn: 2_000 };
    const refused = { ...row, phase: 'tests', host: '', decision: 'bad-request', requests: 99 };
    const result = {
      trace: null,
      diff: null,
      stop: null,
      agentLog: null,
      network: await use([...many, solved], '2000 bytes from github.com in 1 request'),
      verdict: { network: await use([refused], 'none'), log: await store.put(Buffer.from(''), 'text/plain') },
    };
    const { networkHosts } = await readRollout(store, result as unknown as RolloutResult);
    assert.equal(networkHosts.length, 23);
    const lines = hostTable(networkHosts).split('\n');
    assert.match(lines[2] ?? '', /^agent +github\.com:443 +1 +2\.0 KB +5 B +allowed, flagged$/);
    assert.match(lines[3] ?? '', /^tests +others +99 +10 B +5 B +bad-request$/);
    assert.match(lines[4] ?? '', /^agent +h0\.test:443 +50 /);
    assert.deepEqual([lines.length, lines.at(-1)], [23, 'and 3 more, which --json lists']);
    await rm(dir, { recursive: true });
  });
});

describe('repeatedWork', () => {
  const found = (...pendingActivities: readonly object[]) =>
    ({ description: { raw: { pendingActivities } } }) as unknown as Parameters<typeof repeatedWork>[0];
  const evaluate = { activityType: { name: 'evaluate' }, attempt: 3, state: 1 };

  it('says which stage is tried again, how often, and why', () => {
    const lastFailure = {
      message: 'the tests could not reach a.test',
      applicationFailureInfo: { type: 'NetworkUnavailable' },
    };
    const [work, ...others] = repeatedWork(found({ ...evaluate, lastFailure }, { ...evaluate, attempt: 1 }));
    assert.ok(work !== undefined && others.length === 0);
    assert.equal(hasFailed(work), true);
    assert.equal(
      repeatedText(work),
      'evaluate waits for attempt 3 after NetworkUnavailable: the tests could not reach a.test',
    );
    assert.equal(shortRepeatedText({ ...work, waits: false }), 'evaluate, attempt 3 after NetworkUnavailable');
  });

  it('tells a failure from a wait for a slot', () => {
    const of = (lastFailure: object) => repeatedWork(found({ ...evaluate, lastFailure })).map(hasFailed);
    assert.deepEqual(of({ message: 'full', applicationFailureInfo: { type: 'NoFreeSlot' } }), [false]);
    assert.deepEqual(of({ message: 'later', applicationFailureInfo: { type: 'Throttled' } }), [false]);
    assert.deepEqual(of({ message: 'activity Heartbeat timeout', timeoutFailureInfo: {} }), [true]);
  });
});

describe('branchingText', () => {
  it('lists each branch with its kind and what of it is trained', async () => {
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
        'sampled tokens that are not trained: 2',
        'replies echoed in another form: text 1',
      ],
    );
    const replies = messages.filter(({ turn }) => turn !== null);
    assert.deepEqual(
      replies.map(({ text, turn }) => [turn?.index, text]),
      [
        [0, 'A'],
        [1, 'B'],
        [2, 'C'],
        [3, 'D'],
      ],
    );
    assert.ok(messages.some(({ role, turn }) => role === 'assistant' && turn === null));
  });
});

const blob = { digest: 'a'.repeat(64), size: 1, mediaType: 'text/plain' };
const diff: Diff = { patch: blob, baseCommit: 'b', files: 1, dropped: 1, tooLarge: false };
const verdict: Verdict = {
  kind: 'graded',
  value: 1,
  exitCode: 0,
  passed: 0,
  failed: 0,
  log: blob,
  subject: '',
  grader: 'v1',
};

describe('doubtLines', () => {
  it('names each flag of the diff and the verdict once, and how close the code could get to its grader', () => {
    const result = {
      diff: { ...diff, flags: [{ trick: 'link' as const, evidence: 't → /tests' }] },
      verdict: {
        ...verdict,
        exposure: 'in-process' as const,
        flags: [
          { trick: 'exit' as const, evidence: 'a.py: os._exit(0)' },
          { trick: 'link' as const, evidence: 'tests/a' },
        ],
      },
    };
    assert.deepEqual(doubtLines(result), [
      'flag link: t → /tests',
      'flag exit: a.py: os._exit(0)',
      'the code under test ran in the process of its tests (in-process)',
    ]);
  });

  it('is empty for a rollout without flags', () => {
    assert.deepEqual(doubtLines({ diff, verdict }), []);
    assert.deepEqual(doubtLines({ diff: null, verdict: null }), []);
  });
});

describe('hostToolLines', () => {
  it('counts the calls, and names the answer', () => {
    const trace = { hostCalls: 1 } as TraceSummary;
    assert.deepEqual(hostToolLines({ trace, answer: blob }), [
      'host tools: 1 call, in the trace',
      `answer in blob ${blob.digest}`,
    ]);
    assert.deepEqual(hostToolLines({ trace: null }), []);
  });
});

describe('stepTable', () => {
  it('lists the steps of a task with their rewards, also one that could not begin', () => {
    const shown = stepTable([
      { name: 'one', reward: 0.5, stop: 'submitted', agentLog: blob, verdict: 'graded', log: blob },
      { name: 'two', reward: 0, stop: null, agentLog: null },
    ]);
    assert.match(shown, /one\s+0\.5\s+submitted\s+graded\s+two\s+0\s+could not begin/);
  });
});
