import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { WorkflowNotFoundError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { openSharedState } from '../../../infra/store/shared-state.ts';
import { shortKey } from '../../../workflows/contracts/ids.ts';
import { runStatusQuery } from '../../../workflows/contracts/messages.ts';
import { controlQueue } from '../../../workflows/contracts/queues.ts';
import { cliOn } from '../../helpers/cli.ts';
import { writeHarborTask } from '../../helpers/tasks/harbor-task.ts';
import { type ScriptedStack, startScriptedStack } from '../../helpers/temporal/scripted-stack.ts';
import { until } from '../../helpers/until.ts';

/** Options for two groups of two rollouts per step. */
const size = ['--tasks', 'generated:test/1', '--groups', '2', '--rollouts', '2', '--max-staleness', '0'];
/** A module with the task of a directory, which it yields once the command was interrupted; it writes a file before. */
const slowSet = (files: string, packing: string): string => `
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
const names = ['task.toml', 'instruction.md', 'tests/test.sh', 'solution/solve.sh', 'environment/workspace/answer.txt'];
const read = (name) => [name, { mode: 0o755, bytes: readFileSync('${files}/one/' + name) }];
export default {
  async *tasks() {
    const awake = setInterval(() => {}, 1000);
    const interrupted = once(process, 'SIGINT');
    writeFileSync('${packing}', '');
    await interrupted;
    clearInterval(awake);
    yield { id: 'one', files: async () => new Map(names.map(read)) };
  },
};
`;
const half = (id: string): number => (/-[0-9]*[02468]$/.test(id) ? 1 : 0);

describe('the commands on a run', () => {
  let stack: ScriptedStack;
  let temper: ReturnType<typeof cliOn>;
  const count = async (query: string): Promise<number> => (await stack.server.client.workflow.count(query)).count;
  const phaseOf = async (id: string): Promise<string> =>
    (await stack.server.client.workflow.getHandle(id).query(runStatusQuery)).phase;

  before(async () => {
    stack = await startScriptedStack({ script: { reward: half } });
    const prices = join(stack.home, 'prices.json');
    const pools = { default: { input: 1e6, output: 0 } };
    await writeFile(prices, JSON.stringify({ currency: 'EUR', pools, sandboxHour: { local: 0 }, evaluationHour: 0 }));
    temper = cliOn(stack.home, stack.server, { TEMPER_PRICES: prices });
  });
  after(() => stack?.close());

  it('train follows it to its end and prints each step, as JSON if asked', async () => {
    const followed = await temper.run('train', ...size, '--steps', '2', '--id', 'first');
    assert.equal(followed.code, 0, followed.stderr);
    assert.match(followed.stderr, /^step 1\/2 +reward 0\.50 /m);
    assert.match(followed.stderr, /^done: see `temper show first`/m);
    const json = await temper.run('train', ...size, '--steps', '1', '--id', 'second', '--json');
    const lines = json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual([lines.length, lines[0].result.step, lines[1].phase], [2, 1, 'done'], json.stdout);
  });

  it('status lists it with the totals, and show prints its steps', async () => {
    await until(async () => (await count('WorkflowType="rollout" AND TemperOutcome="scored"')) >= 12);
    assert.ok(JSON.parse((await temper.run('status', '--json')).stdout).counts.scored >= 12);
    const { stdout } = await temper.run('status');
    assert.match(stdout, /^first +trainingRun .*completed/m);
    const shown = await temper.run('show', 'first');
    assert.deepEqual([shown.code, /first/.test(shown.stdout)], [0, true], shown.stderr);
    assert.match(shown.stdout, /trained +4/);
    assert.match(shown.stdout, /^scored +8 +32 +16 +8\.0 s +local .* +32\.00$/m);
    assert.match(shown.stdout, /^total +8 .* ≥ 32\.00\nthe price table has no price for: the trainer$/m);
  });

  it('train, eval, rollout and schedule create refuse tasks that lack a network before anything starts', async () => {
    const root = join(stack.home, 'lacking');
    await writeHarborTask(root, 'downloads', { test: 'pip install pytest\npytest\n' });
    await writeHarborTask(root, 'plain', {});
    const offline = cliOn(stack.home, stack.server, { TEMPER_NETWORK: 'none' });
    const before = await count('');
    const commands = [
      ['train'],
      ['eval'],
      ['rollout', '--agent', 'oracle'],
      ['schedule', 'create', 'x', '--every', '1h'],
    ];
    const ends = await Promise.all(commands.map((words) => offline.run(...words, '--tasks', root)));
    for (const { code, stderr } of ends) {
      assert.equal(code, 2, stderr);
      assert.match(
        stderr,
        /--tasks: harbor:\S+(, packed as blob:\w{8})?: 1 of 2 tasks need a network that TEMPER_NETWORK does not allow, for example downloads/,
      );
      assert.match(
        stderr,
        /\(tests\/test\.sh:2: pip install pytest\), and this stack has TEMPER_NETWORK=none; set TEMPER_NETWORK=public .*, or leave the task out/,
      );
    }
    assert.equal(await count(''), before);
    const rest = await offline.run('rollout', '--agent', 'oracle', '--tasks', root, '--leave-out');
    assert.equal(rest.code, 0, rest.stderr);
    assert.match(rest.stdout, /^1 rollout: scored 1/m);
    assert.match(
      rest.stdout,
      /^left out, because they lack a network: 1 task\n {2}downloads: its tests need TEMPER_NETWORK=/m,
    );
    const all = await offline.run('rollout', '--agent', 'oracle', '--tasks', root, '--offline-tests');
    assert.match(all.stdout, /^2 rollouts: scored 2/m, all.stderr);
    assert.match(all.stdout, /^all tests ran without a network, also those that need one$/m);
    // Where only the workers know what is allowed, they decide.
    assert.match((await temper.run('rollout', '--agent', 'oracle', '--tasks', root)).stdout, /^2 rollouts: scored 2/m);
  });

  it('report writes an HTML page', async () => {
    const out = join(stack.home, 'report.html');
    const { code, stderr } = await temper.run('report', 'first', '--out', out);
    assert.equal(code, 0, stderr);
    assert.match(await readFile(out, 'utf8'), /first/);
  });

  it('pause pauses it, resume resumes it, and cancel ends it with its groups', async (t) => {
    let finishAgents: () => void = () => {};
    const agents = new Promise<void>((resolve) => {
      finishAgents = resolve;
    });
    t.after(() => finishAgents());
    stack.script = { reward: half, agent: () => agents };
    const { code, stdout } = await temper.run(
      'train',
      ...size,
      '--steps',
      '3',
      '--weight',
      '3',
      '--id',
      'third',
      '--detach',
    );
    assert.deepEqual([code, stdout.trim()], [0, 'third']);
    await until(
      async () => (await count('TemperRun="third" AND WorkflowType="rollout" AND TemperHost IS NOT NULL')) === 4,
    );
    const { hosts } = await openSharedState({ kind: 'directory', root: stack.home });
    const { runKey } = await stack.server.client.workflow.getHandle('third').query(runStatusQuery);
    const times = { generation: 1, machine: 'm', renewal: 'r', leaseMs: 60_000, renewedAt: new Date().toISOString() };
    const facts = { version: '1', capacity: 4, taken: 4, heldBy: { [shortKey(runKey)]: 3, another: 1 }, sandboxes: [] };
    await hosts.replace('busy', { ...facts, ...times, draining: null, lost: null }, null);
    const { runs } = JSON.parse((await temper.run('status', '--json')).stdout);
    const placed = runs.find((run: { id: string }) => run.id === 'third');
    assert.deepEqual(
      [placed.pool, placed.share],
      ['default', { weight: 3, share: 1, slots: 3, queued: 0, grading: 1 }],
    );
    assert.equal((await temper.run('pause', 'third', '--reason', 'new engine')).code, 0);
    await until(async () => (await phaseOf('third')) === 'paused');
    assert.match((await temper.run('show', 'third')).stdout, /new engine/);
    const refused = await temper.run('resume', 'third', '--skip-step');
    assert.deepEqual([refused.code, /without a failed step/.test(refused.stderr)], [1, true], refused.stderr);
    const resumed = await temper.run('resume', 'third', '--json');
    assert.deepEqual(JSON.parse(resumed.stdout), { id: 'third', kind: 'trainingRun', paused: false }, resumed.stderr);
    await until(async () => (await phaseOf('third')) !== 'paused');
    const ended = await temper.run('cancel', 'third');
    assert.deepEqual([ended.code, ended.stdout.trim()], [0, 'third has ended (cancelled)'], ended.stderr);
    await until(
      async () => (await count('WorkflowType IN ("group", "rollout") AND ExecutionStatus = "Running"')) === 0,
    );
  });

  it('resume leaves out a step that failed with --skip-step, and show and report say so', async () => {
    const update = async (): Promise<void> => {
      throw ApplicationFailure.nonRetryable('out of memory', 'TrainerRefused');
    };
    stack.script = { reward: half, update };
    assert.equal((await temper.run('train', ...size, '--steps', '1', '--id', 'poisoned', '--detach')).code, 0);
    await until(async () => (await phaseOf('poisoned')) === 'paused');
    const resumed = await temper.run('resume', 'poisoned', '--skip-step');
    assert.match(resumed.stdout, /^resumed poisoned; temper will skip step 1 with its \d+ groups?/, resumed.stderr);
    await until(async () => (await phaseOf('poisoned')) === 'done');
    const { stdout } = await temper.run('show', 'poisoned');
    assert.match(stdout, /skipped steps: 1\n/);
    assert.match(stdout, /step 1\/1 .* \d skipped/);
    const reported = await temper.run('report', 'poisoned', '--json', '--out', join(stack.home, 'poisoned.html'));
    assert.ok(JSON.parse(reported.stdout).fates.skipped > 0, reported.stdout + reported.stderr);
  });

  it('budget shows what a run has used, and raises the limit that paused it', async () => {
    stack.script = { reward: half };
    const limits = ['--steps', '1', '--budget', 'rollouts=3,tokens=2M'];
    const { code, stderr } = await temper.run('train', ...size, ...limits, '--id', 'fourth', '--detach');
    assert.equal(code, 0, stderr);
    await until(async () => (await phaseOf('fourth')) === 'paused');
    const shown = await temper.run('budget', 'fourth');
    assert.match(shown.stdout, /^rollouts +2 +3\ntokens +[0-9]+ +2000000\nsandbox-hours +0.* no limit$/m, shown.stderr);
    const raised = await temper.run('budget', 'fourth', 'rollouts=none');
    assert.match(raised.stdout, /^rollouts +[0-9]+ +no limit$/m, raised.stderr);
    await stack.server.client.workflow.getHandle('fourth').result();
  });

  it('show names the reason of a run that was refused or failed', async () => {
    const { client } = stack.server;
    const start = (workflowId: string, request: object) =>
      client.workflow.start('trainingRun', { taskQueue: controlQueue, workflowId, args: [request] });
    await assert.rejects((await start('refused', { steps: 'many' })).result());
    const refused = await temper.run('show', 'refused');
    assert.equal(refused.code, 0, refused.stderr);
    assert.match(refused.stdout, /^refused: .*steps: expected a whole number .* got "many"$/m);
    assert.equal(JSON.parse((await temper.run('show', 'refused', '--json')).stdout).kind, 'refused');
    const unreported = await temper.run('report', 'refused', '--out', join(stack.home, 'none.html'));
    assert.equal(unreported.code, 1);
    assert.match(unreported.stderr, /refused has no report: its input was refused.*steps: expected a whole number/);

    const why = 'nothing to prepare it with';
    const prepare = () => Promise.reject(ApplicationFailure.nonRetryable(why, 'UnknownTask'));
    stack.script = { reward: half, prepare };
    await assert.rejects((await start('failed', { tasks: 'set', steps: 1 })).result());
    const failed = await temper.run('show', 'failed');
    assert.match(failed.stdout, new RegExp(`^failed \\(failed\\)\nfailed: ${why}$`, 'm'), failed.stderr);
    assert.equal(JSON.parse((await temper.run('show', 'failed', '--json')).stdout).end.message, why);
  });

  it('train that is interrupted stops following, and the run continues', async (t) => {
    const agents = Promise.withResolvers<void>();
    t.after(() => agents.resolve());
    stack.script = { reward: half, agent: () => agents.promise };
    const training = temper.start('train', ...size, '--steps', '1', '--id', 'left');
    await until(async () => (await count('WorkflowId="left" AND ExecutionStatus="Running"')) === 1);
    training.process.kill('SIGINT');
    const { code, stderr } = await training.ended;
    assert.equal(code, 130, stderr);
    assert.match(stderr, /^no longer following; the run continues/m);
    assert.match(stderr, /^temper: interrupted: left continues; see `temper show left`/m);
    agents.resolve();
    assert.equal((await stack.server.client.workflow.getHandle('left').result()).phase, 'done');
  });

  it('train and eval that are interrupted while tasks are packed start nothing', async () => {
    const packing = join(stack.home, 'packing');
    const set = join(stack.home, 'set.mjs');
    const files = join(stack.home, 'files');
    await writeHarborTask(files, 'one', {});
    await writeFile(set, slowSet(files, packing));
    for (const word of ['train', 'eval']) {
      const command = temper.start(word, '--tasks', `module:${set}`, '--id', `never-${word}`);
      await until(() => existsSync(packing));
      command.process.kill('SIGINT');
      const { code, stderr } = await command.ended;
      assert.equal(code, 130, stderr);
      assert.match(stderr, /^ending; no (run|sweep) starts/m);
      const handle = stack.server.client.workflow.getHandle(`never-${word}`);
      await assert.rejects(handle.describe(), WorkflowNotFoundError);
      await rm(packing);
    }
  });

  it('train and eval refuse a pool and a policy that do not exist, before anything starts', async () => {
    const pool = await temper.run('train', ...size, '--pool', 'nope', '--id', 'poolless');
    assert.equal(pool.code, 2, pool.stderr);
    assert.match(pool.stderr, /pool: expected one of default, got nope; add it to .*engines\.json/);
    const policy = await temper.run('eval', '--tasks', 'generated:test/1', '--policy', 'nope', '--id', 'policyless');
    assert.equal(policy.code, 2, policy.stderr);
    assert.match(policy.stderr, /policy: expected the workflow id of a run, got nope, which the server does not have/);
    for (const id of ['poolless', 'policyless']) {
      await assert.rejects(stack.server.client.workflow.getHandle(id).describe(), WorkflowNotFoundError);
    }
  });

  it('drain and resume say of a lost host that it is lost', async () => {
    const { hosts } = await openSharedState({ kind: 'directory', root: stack.home });
    const lost = { since: new Date().toISOString(), reason: 'its disk burnt' };
    const facts = { version: '1', capacity: 1, taken: 0, sandboxes: [] };
    const record = {
      ...facts,
      generation: 1,
      machine: 'm',
      renewal: 'r',
      leaseMs: 1,
      draining: null,
      renewedAt: lost.since,
      lost,
    };
    await hosts.replace('gone', record, null);
    for (const word of ['drain', 'resume']) {
      const { code, stderr } = await temper.run('host', word, 'gone');
      assert.equal(code, 1, stderr);
      assert.match(stderr, /gone was declared lost: its disk burnt .* until its processes are started again/);
    }
  });

  it('each command refuses an id that the server does not know', async () => {
    for (const word of ['pause', 'resume', 'cancel', 'show', 'report']) {
      const { code, stderr } = await temper.run(word, 'nothing');
      assert.deepEqual([word, code === 0, /nothing/.test(stderr)], [word, false, true], stderr);
    }
  });
});
