import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import type { SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import type { Trick } from '../../workflows/contracts/flags.ts';
import type { SandboxKind } from '../../workflows/contracts/sandbox-kinds.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type OpenProvider, type Pipeline, providers, type ScriptedAgent } from './pipeline.ts';

/** A program that no host and no image has. */
const absent = 'temper-has-no-such-runner';
const bug = 'echo $(($1 - $2))\n';
const repair = 'echo $(($1 + $2))\n';
const head = '[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n';

function taskOf(files: Readonly<Record<string, string>>, solve: string | null): HarborTask {
  const tree = {
    'task.toml': head,
    'instruction.md': 'Fix sum.sh.\n',
    'environment/workspace/sum.sh': bug,
    ...(solve !== null && { 'solution/solve.sh': solve }),
    ...files,
  };
  return readHarborTask(treeOf(tree));
}

const writeReward = (condition: string): string =>
  `if ${condition}; then echo 1; else echo 0; fi >/logs/verifier/reward.txt\n`;
const solution = `printf '%s' '${repair}' >sum.sh\n`;
const right = '[ "$(bash sum.sh 2 3)" = 5 ]';

/** Tests that cannot pass, whatever an agent does, by what is to blame. */
const broken = {
  'lack a program, which a command needs': [`${absent} /tests/sum.bats`, absent],
  'lack a program, which a first line needs': ['chmod +x /tests/run && /tests/run', absent],
  'load something without a network': [
    `python3 -c 'import urllib.request; urllib.request.urlopen("http://packages.example.org")' && ${right}`,
    'download',
  ],
  'write on a full disk': [`echo 1 >/dev/full && ${right}`, 'disk is full'],
} as const;
const brokenTask = (condition: string): HarborTask =>
  taskOf({ 'tests/test.sh': writeReward(condition), 'tests/run': `#!/usr/bin/env ${absent}\n` }, solution);
/** A task with such tests that is judged by their log. */
const byLog = taskOf(
  {
    'tests/test.sh': `${absent} "$TEMPER_TESTS/sum.bats"\n`,
    'grading.json': JSON.stringify({ failToPass: ['adds'], passToPass: [], logParser: 'bats' }),
  },
  solution,
);
const silent = taskOf({ 'tests/test.sh': 'true\n' }, solution);

const test = writeReward(right);
const solvable = taskOf({ 'tests/test.sh': test }, solution);
/** A task whose tests end if the code of the agent ends them. */
const sourced = taskOf({ 'tests/test.sh': `a=$(. ./sum.sh 2 3) || exit 1\n${test}` }, solution);
/** A task whose tests have little time. */
const brief = taskOf({ 'task.toml': `[verifier]\ntimeout_sec = 5\n${head}`, 'tests/test.sh': test }, solution);
/** A task whose tests run a program of the workspace by its name. */
const withProgram = taskOf(
  {
    'environment/workspace/bin/add': `#!/bin/sh\n${bug}`,
    'tests/test.sh': `PATH=$PWD/bin:$PATH; ${writeReward('[ "$(add 2 3)" = 5 ]')}`,
  },
  `printf '%s' '#!/bin/sh\n${repair}' >bin/add && chmod +x bin/add\n`,
);
/** A task that asks for a program of a given name. */
const asksForProgram = taskOf(
  { 'tests/test.sh': `PATH=$PWD/bin:$PATH; ${writeReward('[ "$(add 2 3)" = 5 ]')}` },
  `mkdir bin && printf '%s' '#!/bin/sh\n${repair}' >bin/add && chmod +x bin/add\n`,
);

interface Fake {
  /** Whether it runs in every kind of sandbox, and not in local ones alone. */
  readonly everywhere?: true;
  readonly name: string;
  readonly task: HarborTask;
  readonly agent: ScriptedAgent;
  readonly flag?: Trick;
}

const prints = (line: string): ScriptedAgent => ({ files: { 'sum.sh': `echo "${line}" >&2; exit 127\n` } });
const fakes: readonly Fake[] = [
  { name: 'ends its code by 127', task: solvable, agent: { files: { 'sum.sh': 'exit 127\n' } } },
  ...[
    'test.sh: line 1: bash: command not found',
    'curl: (6) Could not resolve host: pypi.org',
    'OSError: [Errno 28] No space left on device',
  ].map((line): Fake => ({ name: `prints ${line}`, task: solvable, agent: prints(line), flag: 'claimed-fault' })),
  {
    everywhere: true,
    name: 'calls a program that no host has',
    task: solvable,
    agent: { files: { 'sum.sh': `${absent} "$@"\n` } },
    flag: 'claimed-fault',
  },
  {
    everywhere: true,
    name: 'deletes the program that the tests run',
    task: withProgram,
    agent: { script: 'rm -r bin' },
    flag: 'claimed-fault',
  },
  {
    name: 'starts its program by an interpreter that no host has',
    task: withProgram,
    agent: { files: { 'bin/add': `#!/usr/bin/env ${absent}\n` }, script: 'chmod +x bin/add' },
    flag: 'claimed-fault',
  },
  { name: 'does not make the program that it was asked for', task: asksForProgram, agent: {}, flag: 'claimed-fault' },
  {
    everywhere: true,
    name: 'ends the tests before they write a reward',
    task: sourced,
    agent: prints('gone'),
    flag: 'claimed-fault',
  },
  { name: 'hangs', task: brief, agent: { files: { 'sum.sh': 'echo ENOSPC >&2; sleep 600\n' } }, flag: 'claimed-fault' },
  {
    name: 'fills the disk',
    task: solvable,
    agent: {
      files: { 'sum.sh': 'n=0; while :; do n=$((n+1)); head -c 20000000 /dev/zero >/tmp/f$n; sleep 0.1; done\n' },
    },
    flag: 'limit',
  },
  {
    name: 'calls a program that no host has, at a task without a reference solution',
    task: taskOf({ 'tests/test.sh': test }, null),
    agent: { files: { 'sum.sh': `${absent} "$@"\n` } },
    flag: 'claimed-fault',
  },
];

/** Checks, in real sandboxes of a kind, who is to blame for tests whose log reports a fault. */
export function claimedFaultsSuite(kind: SandboxKind, open: OpenProvider | undefined = providers[kind]): void {
  describe(`tests in a ${kind} sandbox that report a fault`, { concurrency: 2 }, () => {
    let pipeline: Pipeline;
    before(async () => {
      pipeline = await createPipeline(kind, open);
    });
    after(() => pipeline?.[Symbol.asyncDispose]());

    for (const { name, task, agent, flag, everywhere = false } of fakes) {
      if (kind !== 'local' && !everywhere) continue;
      it(`are worth 0 for an agent that ${name}${flag === undefined ? '' : `, which is flagged as ${flag}`}`, async () => {
        const { value, flags = [] } = await pipeline.evaluate(task, agent);
        assert.equal(value ?? 0, 0);
        if (flag !== undefined)
          assert.ok(
            flags.some(({ trick }) => trick === flag),
            JSON.stringify(flags),
          );
      });
    }

    const isToBlame = (what: string) => (error: unknown) => {
      const type = kind === 'local' && what === absent ? 'MissingProgram' : 'BrokenTests';
      return error instanceof TemperFailure && error.type === type && error.message.includes(what);
    };
    const all = Object.entries(broken).map(([how, [condition, what]]) => [how, brokenTask(condition), what] as const);
    for (const [how, task, what] of [...all, ['lack a program, by their log', byLog, absent] as const]) {
      it(`are no score if they ${how}, whatever the agent did`, async () => {
        if (kind === 'local')
          await assert.rejects(pipeline.evaluate(task, { files: { 'sum.sh': repair } }), isToBlame(what));
        await assert.rejects(pipeline.evaluate(task, {}), isToBlame(what));
      });
    }

    it('are no score if they never write a reward', async () => {
      await assert.rejects(pipeline.evaluate(silent, { files: { 'sum.sh': repair } }), isToBlame('no reward'));
    });

    it('are flagged if they give the full reward for nothing, and if none of them ran', async () => {
      const flagsOf = async (script: string, agent: ScriptedAgent) => {
        const task = taskOf({ 'tests/test.sh': `${script}; echo 1 >/logs/verifier/reward.txt` }, null);
        return ((await pipeline.evaluate(task, agent)).flags ?? []).map(({ trick }) => trick);
      };
      assert.deepEqual(await flagsOf('echo 1 passed in 0.10s', {}), ['untouched']);
      assert.deepEqual(await flagsOf('echo 1 passed in 0.10s', { files: { new: '1\n' } }), []);
      assert.deepEqual(await flagsOf('echo 1 skipped in 0.10s', { files: { new: '1\n' } }), ['skipped-tests']);
    });

    it('are scored where the work has the full reward all the same', async () => {
      const noise = taskOf({ 'tests/test.sh': `${absent}; ${test}` }, solution);
      assert.equal((await pipeline.evaluate(noise, { files: { 'sum.sh': repair } })).value, 1);
      assert.equal((await pipeline.evaluate(noise, {})).value, 0);
    });
  });

  describe(`many evaluations in ${kind} sandboxes that report the same fault together`, () => {
    it('try the untouched workspace once, and the reference solution twice', async () => {
      let made = 0;
      const counting = (real: SandboxProvider): SandboxProvider =>
        Object.assign(Object.create(real), {
          ensure: ((spec, signal) => {
            if (spec.labels.purpose === 'evaluation') made += 1;
            return real.ensure(spec, signal);
          }) satisfies SandboxProvider['ensure'],
        });
      await using pipeline = await createPipeline(kind, (stack, home) =>
        counting(open?.(stack, home) ?? assert.fail()),
      );
      const agents = 4;
      const task = brokenTask(`${absent} /tests/sum.bats`);
      const work = (number: number) => pipeline.evaluate(task, { files: { 'sum.sh': `echo ${number}\n` } });
      const ends = await Promise.allSettled(Array.from({ length: agents }, (_, number) => work(number)));
      assert.ok(ends.every(({ status }) => status === 'rejected'));
      assert.equal(made, 3 + agents);
    });
  });
}
