import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';
import { createPipeline, type Pipeline, type ScriptedAgent } from './pipeline.ts';

/** A test runner that no host has. */
const absent = 'temper-has-no-such-runner';
const bug = 'echo $(($1 - $2))\n';
const repair = 'echo $(($1 + $2))\n';

function taskOf(files: Readonly<Record<string, string>>, solve: string | null): HarborTask {
  const tree = {
    'task.toml': '[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\n',
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

/** A task whose tests need a program that this host lacks. */
const unsolvable = taskOf({ 'tests/test.sh': writeReward(`${absent} /tests/sum.bats`) }, solution);
/** A task with a script that is started by that program. */
const byFirstLine = taskOf(
  {
    'tests/test.sh': `chmod +x /tests/run && /tests/run && echo 1 >/logs/verifier/reward.txt\n`,
    'tests/run': `#!/usr/bin/env ${absent}\n`,
  },
  solution,
);
/** A task with such tests that is judged by their log. */
const byLog = taskOf(
  {
    'tests/test.sh': `${absent} "$TEMPER_TESTS/sum.bats"\n`,
    'grading.json': JSON.stringify({ failToPass: ['adds'], passToPass: [], logParser: 'bats' }),
  },
  solution,
);
const solvable = taskOf({ 'tests/test.sh': writeReward('[ "$(bash sum.sh 2 3)" = 5 ]') }, solution);
/** A task whose tests run a program of the workspace by its name. */
const withProgram = taskOf(
  {
    'environment/workspace/bin/add': `#!/bin/sh\n${bug}`,
    'tests/test.sh': `chmod +x bin/*; PATH=$PWD/bin:$PATH; ${writeReward('[ "$(add 2 3)" = 5 ]')}`,
  },
  `printf '%s' '#!/bin/sh\n${repair}' >bin/add\n`,
);
/** A task that asks for a program of a given name. */
const asksForProgram = taskOf(
  { 'tests/test.sh': `PATH=$PWD/bin:$PATH; ${writeReward('[ "$(add 2 3)" = 5 ]')}` },
  `mkdir bin && printf '%s' '#!/bin/sh\n${repair}' >bin/add && chmod +x bin/add\n`,
);

interface Fake {
  readonly name: string;
  readonly task: HarborTask;
  readonly agent: ScriptedAgent;
}

const fakes: readonly Fake[] = [
  {
    name: 'ends its code by 127',
    task: solvable,
    agent: { files: { 'sum.sh': 'exit 127\n' } },
  },
  {
    name: 'prints that a program is missing',
    task: solvable,
    agent: { files: { 'sum.sh': 'echo "test.sh: line 1: bash: command not found" >&2; exit 127\n' } },
  },
  {
    name: 'calls a program that no host has',
    task: solvable,
    agent: { files: { 'sum.sh': `${absent} "$@"\n` } },
  },
  { name: 'deletes the program that the tests run', task: withProgram, agent: { script: 'rm -r bin' } },
  {
    name: 'starts its program by an interpreter that no host has',
    task: withProgram,
    agent: { files: { 'bin/add': `#!/usr/bin/env ${absent}\n` } },
  },
  { name: 'does not make the program that it was asked for', task: asksForProgram, agent: {} },
  {
    name: 'calls a program that no host has, at a task without a reference solution',
    task: taskOf({ 'tests/test.sh': writeReward('[ "$(bash sum.sh 2 3)" = 5 ]') }, null),
    agent: { files: { 'sum.sh': `${absent} "$@"\n` } },
  },
];

const isMissingProgram = (error: unknown): boolean =>
  error instanceof TemperFailure && error.type === 'MissingProgram' && error.message.includes(absent);

describe('tests that report a missing program', () => {
  let pipeline: Pipeline;
  before(async () => {
    pipeline = await createPipeline('local');
  });
  after(() => pipeline?.[Symbol.asyncDispose]());

  for (const { name, task, agent } of fakes) {
    it(`are scored for an agent that ${name}`, async () => {
      const { kind, value } = await pipeline.evaluate(task, agent);
      assert.deepEqual([kind, value ?? 0], ['graded', 0]);
    });
  }

  for (const [how, task] of Object.entries({ 'a command': unsolvable, 'a first line': byFirstLine, 'a log': byLog })) {
    it(`are no score where this host lacks it (${how}), whatever the agent did`, async () => {
      await assert.rejects(pipeline.evaluate(task, { files: { 'sum.sh': repair } }), isMissingProgram);
      await assert.rejects(pipeline.evaluate(task, {}), isMissingProgram);
    });
  }

  it('are scored where the work has the full reward all the same', async () => {
    const noise = taskOf({ 'tests/test.sh': `${absent}; ${writeReward('[ "$(bash sum.sh 2 3)" = 5 ]')}` }, solution);
    assert.equal((await pipeline.evaluate(noise, { files: { 'sum.sh': repair } })).value, 1);
    assert.equal((await pipeline.evaluate(noise, {})).value, 0);
  });
});
