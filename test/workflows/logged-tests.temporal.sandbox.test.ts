import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { RolloutRequest, RolloutResult } from '../../workflows/contracts/rollout.ts';
import { type Rollouts, startRollouts } from '../helpers/rollouts/rollouts.ts';
import { createSweRepository, type SweRepository } from '../helpers/tasks/swe-repository.ts';

const subtracts = 'exports.add = (a, b) => a - b;\n';
const adds = 'exports.add = (a, b) => a + b;\n';
const oldTests = `const { test } = require('node:test');
const assert = require('node:assert');
const { add } = require('../src/add.js');
test('leaves a number alone', () => assert.equal(add(2, 0), 2));
`;
const newTests = `${oldTests}test('adds', () => assert.equal(add(2, 3), 5));\n`;
const testCommand = 'node --test --test-reporter=tap test/*.test.js';

interface Case {
  readonly name: string;
  /** The agent's src/add.js; null if it does nothing. */
  readonly solution: string | null;
  readonly row?: Readonly<Record<string, unknown>>;
  readonly request?: Partial<RolloutRequest>;
  /** The expected end: reward, kind of verdict, status of the resolution, and its reason. */
  readonly ends: {
    readonly reward: number;
    readonly verdict: string;
    readonly resolution: string;
    readonly reason: RegExp;
  };
}

const cases: readonly Case[] = [
  {
    name: 'the reference solution',
    solution: adds,
    ends: { reward: 1, verdict: 'graded', resolution: 'resolved', reason: /^every required test/ },
  },
  {
    name: 'no change',
    solution: null,
    ends: { reward: 0, verdict: 'graded', resolution: 'unresolved', reason: /^adds of FAIL_TO_PASS is FAILED$/ },
  },
  {
    name: 'no change, scored by fraction',
    solution: null,
    request: { rewardPolicy: 'fraction' },
    ends: { reward: 0.5, verdict: 'graded', resolution: 'unresolved', reason: /^adds of FAIL_TO_PASS is FAILED$/ },
  },
  {
    name: 'code that prints results and ends the runner',
    solution: `console.log('TAP version 13\\nok 1 - leaves a number alone\\nok 2 - adds\\n1..2');\nprocess.exit(0);\n`,
    ends: {
      reward: 0,
      verdict: 'graded',
      resolution: 'unresolved',
      reason: /^adds of FAIL_TO_PASS is MISSING, and 1 more/,
    },
  },
  {
    name: 'code that prints marks without the nonce',
    solution: `${adds}console.log('>>>>> Start Test Output\\n>>>>> End Test Output 0');\n`,
    ends: { reward: 1, verdict: 'graded', resolution: 'resolved', reason: /^every/ },
  },
  {
    name: 'a command that fails over a log of successes',
    solution: adds,
    row: { test_cmd: `${testCommand}; (exit 3)` },
    ends: {
      reward: 0,
      verdict: 'refused',
      resolution: 'refused',
      reason: /ended with exit code 3, but its log shows 2 tests and no failure among them/,
    },
  },
  {
    name: 'two commands, each with its own report',
    solution: adds,
    row: {
      test_cmd: ['a', 'b'].map((name) => `printf '== short test summary info ==\\nPASSED t.py::${name}\\n'`),
      log_parser: 'pytest',
      FAIL_TO_PASS: ['t.py::a'],
      PASS_TO_PASS: ['t.py::b'],
    },
    ends: { reward: 1, verdict: 'graded', resolution: 'resolved', reason: /^every/ },
  },
  {
    name: 'a command that exits its shell',
    solution: adds,
    row: { test_cmd: `${testCommand}; exit 0; echo never` },
    ends: { reward: 1, verdict: 'graded', resolution: 'resolved', reason: /^every/ },
  },
  {
    name: 'a command that kills its parent shell',
    solution: adds,
    row: { test_cmd: `${testCommand}; kill -9 $$` },
    ends: {
      reward: 0,
      verdict: 'refused',
      resolution: 'refused',
      reason: /expected one start and one end of the tests in the log, got 1 and 0/,
    },
  },
  {
    name: 'tests that hang',
    solution: 'for (;;);\n',
    request: { evaluationTimeoutSec: 3 },
    ends: { reward: 0, verdict: 'timeout', resolution: 'refused', reason: /^the tests ran out of time$/ },
  },
  {
    name: 'tests that print more than a log keeps',
    solution: adds,
    row: { test_cmd: `head -c 20000000 /dev/zero | tr '\\0' x; ${testCommand}` },
    ends: { reward: 0, verdict: 'refused', resolution: 'refused', reason: /^the tests printed more than 16 MB$/ },
  },
  {
    name: 'tests that print much',
    solution: adds,
    row: { test_cmd: `seq 1 200000; ${testCommand}` },
    ends: { reward: 1, verdict: 'graded', resolution: 'resolved', reason: /^every/ },
  },
  {
    name: 'an agent that changes the tests',
    solution: null,
    row: { patchFiles: { 'test/add.test.js': "require('node:test').test('adds', () => {});\n" } },
    ends: { reward: 0, verdict: 'graded', resolution: 'unresolved', reason: /^adds of FAIL_TO_PASS is FAILED$/ },
  },
  {
    name: 'a script in the row whose last command does not test',
    solution: null,
    row: {
      eval_script: `#!/bin/bash\nset -uxo pipefail\ngit apply "$TEMPER_TESTS/test.patch"\n: '>>>>> Start Test Output'\n${testCommand}\nSTATUS=$?\n: '>>>>> End Test Output'\ngit checkout HEAD test\n`,
    },
    ends: { reward: 0, verdict: 'graded', resolution: 'unresolved', reason: /^adds of FAIL_TO_PASS is FAILED$/ },
  },
];

describe('a rollout of a row whose repository comes from a mirror', () => {
  let rollouts: Rollouts;
  let repository: SweRepository;
  let testPatch: string;

  before(async () => {
    rollouts = await startRollouts((home) => ({ taskRoots: [join(home, 'tasks')] }));
    const files = { 'src/add.js': subtracts, 'test/add.test.js': oldTests };
    await mkdir(join(rollouts.home, 'tasks'));
    repository = await createSweRepository(join(rollouts.home, 'tasks/mirrors'), 'acme/sum', files);
    testPatch = await repository.patchTo({ 'test/add.test.js': newTests });
  });
  after(() => rollouts?.close());

  /** Writes a row to its own file, and returns its address. */
  async function rowAddress(id: string, solution: string | null, more: Case['row'] = {}): Promise<string> {
    const { patchFiles, ...fields } = more;
    const files = { ...(solution !== null && { 'src/add.js': solution }), ...(patchFiles ?? {}) };
    const row = {
      instance_id: id,
      repo: 'acme/sum',
      base_commit: repository.commit,
      problem_statement: 'It does not add.',
      patch: await repository.patchTo(files),
      test_patch: testPatch,
      FAIL_TO_PASS: ['adds'],
      PASS_TO_PASS: ['leaves a number alone'],
      test_cmd: testCommand,
      log_parser: 'tap',
      ...fields,
    };
    const file = join(rollouts.home, 'tasks', `${id}.jsonl`);
    await writeFile(file, `${JSON.stringify(row)}\n`);
    return `swe-bench:${file}?image=none&repositories=${rollouts.home}/tasks/mirrors#${id}`;
  }

  for (const [index, { name, solution, row, request, ends }] of cases.entries()) {
    it(`with ${name} ends with reward ${ends.reward}, ${ends.verdict}, ${ends.resolution}`, async () => {
      const task = await rowAddress(`case-${index}`, solution, row);
      const agent = solution === null && row?.patchFiles === undefined ? 'nop' : 'oracle';
      const result = await rollouts.run(`logged-${index}`, { task, agent, ...request });
      const { outcome, reward, verdict } = result;
      assert.deepEqual([outcome, reward], ['scored', ends.reward], JSON.stringify(result));
      const { kind, resolution } = verdict ?? {};
      assert.deepEqual([kind, resolution?.status], [ends.verdict, ends.resolution], JSON.stringify(verdict));
      assert.match(resolution?.reason ?? '', ends.reason);
      assert.ok(JSON.stringify(result).length < 8192);
    });
  }

  it('stores the result of each test', async () => {
    const task = await rowAddress('kept', null);
    const { verdict } = await rollouts.run('kept', { task, agent: 'nop' });
    const tests = JSON.parse((await rollouts.store.get(verdict?.tests?.digest ?? '')).toString());
    assert.deepEqual(tests.required, [
      { list: 'FAIL_TO_PASS', id: 'adds', status: 'FAILED' },
      { list: 'PASS_TO_PASS', id: 'leaves a number alone', status: 'PASSED' },
    ]);
    assert.deepEqual([verdict?.passed, verdict?.failed, verdict?.exitCode, verdict?.value], [1, 1, 1, null]);
    assert.deepEqual([verdict?.exposure, verdict?.flags], ['in-process', undefined]);
  });

  it('hides the nonce of its marks from every process of the code under test', async () => {
    const spy = `${adds}const fs = require('node:fs');
for (const pid of fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)))
  for (const file of ['cmdline', 'environ'])
    try { console.log(pid, file, fs.readFileSync('/proc/' + pid + '/' + file, 'latin1').replaceAll('\\0', ' ').replaceAll('\\n', ' ')); } catch {}
console.log('files:', fs.readdirSync(process.env.TEMPER_TESTS).join(' '));
`;
    const task = await rowAddress('spy', spy);
    const { reward, verdict } = await rollouts.run('spy', { task, agent: 'oracle' });
    assert.equal(reward, 1, JSON.stringify(verdict));
    const log = (await rollouts.store.get(verdict?.log.digest ?? '')).toString();
    const [, nonce = 'none'] = /^>>>>> Start Test Output (\S+)$/m.exec(log) ?? [];
    assert.match(log, /environ .*TEMPER_TESTS=/);
    assert.match(log, /files: prepare\.sh test\.patch test\.sh$/m);
    assert.equal(log.split(nonce).length, 3, 'expected the nonce in the two marks alone');
  });

  it('is refused before it starts if its parser is unknown, with the names of the known ones', async () => {
    const task = await rowAddress('unknown', null, { log_parser: 'parse_log_of_mine' });
    const { outcome, failure }: RolloutResult = await rollouts.run('unknown', { task, agent: 'nop' });
    assert.deepEqual([outcome, failure?.type, failure?.stage], ['invalid-task', 'UnsupportedTask', 'resolveTask']);
    assert.match(failure?.message ?? '', /logParser: .* got "parse_log_of_mine"; it has automake, bats, cargo/);
  });
});
