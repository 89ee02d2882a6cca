import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { readHarborTask } from '../../../../infra/harbor/harbor-task.ts';
import { type Bug, bugAt, operators, type Split, sourceOf } from '../../../../infra/tasks/generated/bug.ts';
import { generateTask, instructionOf } from '../../../../infra/tasks/generated/generate.ts';

const many = (split: Split) =>
  Array.from({ length: 4000 }, (_, index) => bugAt(split, index % 40, Math.floor(index / 40)));
const training = many('train');
const heldOut = many('test');

it('forms held-out combinations of names, files and repairs that never occur in training', () => {
  const repair = (bug: Bug): string => `${bug.wrong.word}>${bug.goal.word} of ${bug.parameters.join()}`;
  const seen = new Set(training.flatMap((bug) => [`${bug.file}/${bug.name}`, repair(bug)]));
  for (const bug of heldOut) {
    assert.ok(!seen.has(`${bug.file}/${bug.name}`));
    assert.ok(!seen.has(repair(bug)));
  }
});

it('uses every word of the held-out split in training too, and each goal equally often', () => {
  for (const part of ['file', 'name', 'form'] as const) {
    const known = new Set<string>(training.map((bug) => bug[part]));
    for (const bug of heldOut) assert.ok(known.has(bug[part]), bug[part]);
  }
  for (const bugs of [training, heldOut]) {
    const counts = operators.map((operator) => bugs.filter((bug) => bug.goal === operator).length);
    assert.ok(Math.max(...counts) - Math.min(...counts) <= 80, counts.join());
  }
});

it('names neither the right nor the wrong operator in the instruction', () => {
  for (const bug of [...training, ...heldOut]) {
    assert.doesNotMatch(instructionOf(bug), /[-+*/%]/);
  }
});

it('accepts only the right operator', () => {
  for (const bug of training.slice(0, 300)) {
    const right = operators.filter(({ apply }) => bug.cases.every(({ a, b, expected }) => apply(a, b) === expected));
    assert.deepEqual(right, [bug.goal]);
    for (const other of operators) {
      if (other !== bug.goal) assert.ok(bug.cases.every(({ a, b, expected }) => other.apply(a, b) !== expected));
    }
  }
});

it('generates equal files for equal arguments, and different tasks for others', () => {
  assert.deepEqual(generateTask('train', 1, 2), generateTask('train', 1, 2));
  assert.notDeepEqual(generateTask('train', 1, 2), generateTask('train', 2, 2));
  assert.equal(new Set(training.map((bug) => instructionOf(bug) + sourceOf(bug, bug.wrong.symbol))).size > 2000, true);
});

/** Runs the tests as a sandbox does, with its absolute paths below a temporary directory, and returns the reward. */
async function grade(split: Split, index: number, replace: (source: string) => string): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'temper-generated-'));
  try {
    const task = readHarborTask(generateTask(split, 1, index));
    for (const [part, files] of Object.entries({ workspace: task.workspace, tests: task.tests })) {
      for (const [path, { bytes, mode }] of files) {
        const at = join(root, part, path);
        await mkdir(dirname(at), { recursive: true });
        const text = new TextDecoder().decode(bytes).replaceAll(/\/(workspace|logs)\b/g, `${root}/$1`);
        await writeFile(at, part === 'workspace' && path !== 'index.js' ? replace(text) : text, { mode });
      }
    }
    await promisify(execFile)('bash', [join(root, 'tests/test.sh')], { env: plainEnvironment() }).catch(
      () => undefined,
    );
    return (await readFile(join(root, 'logs/verifier/reward.txt'), 'utf8')).trim();
  } finally {
    await rm(root, { recursive: true });
  }
}

/** An environment without the variables that make a nested `node --test` report to this one. */
const plainEnvironment = () => ({ PATH: process.env.PATH });

it('scores the untouched workspace 0 and the solution 1, in both splits', async () => {
  for (const split of ['train', 'test'] as const) {
    const bug = bugAt(split, 1, 3);
    assert.equal(await grade(split, 3, (source) => source), '0');
    assert.equal(
      await grade(split, 3, (source) => source.replace(` ${bug.wrong.symbol}= `, ` ${bug.goal.symbol}= `)),
      '1',
    );
  }
});

it('scores a file 0 that ends the process, forges the report, hangs or does not parse', async () => {
  const hostile = [
    "export const f = 1; this.constructor.constructor('return process')().exit(0);",
    'process.exit(0);',
    'console.log("1..1\\nok 1"); process.exit(0)',
    'for (;;) ;',
    'export function {',
    '',
  ];
  for (const text of hostile) {
    assert.equal(await grade('train', 0, (source) => (source.includes('private') ? source : text)), '0', text);
  }
});
