import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import type { FileTree } from '../../../../infra/sandbox/files.ts';
import {
  createDataSetFixture,
  type DataSetFixture,
  failure,
  packed,
  sweRow,
  textIn,
} from '../../../helpers/tasks/data-set-fixture.ts';

const metadata = {
  instance_id: 'a',
  image: 'scale:1',
  workdir: '/srv',
  problem_statement: 'Fix it.',
  pre_commands: 'git checkout -f x',
};

/** Runs a task's tests with `/tests` and `/logs` replaced by temporary directories, and returns the reward. */
async function rewardOf(fixture: DataSetFixture, tests: FileTree): Promise<string> {
  const at = join(fixture.root, 'run');
  const here = (text: string) => text.replaceAll('/tests/', `${at}/tests/`).replaceAll('/logs/', `${at}/logs/`);
  for (const path of tests.keys()) {
    await mkdir(dirname(join(at, 'tests', path)), { recursive: true });
    await writeFile(join(at, 'tests', path), here(textIn(tests, path)));
  }
  execFileSync('bash', [join(at, 'tests/test.sh')], { stdio: 'ignore' });
  return (await readFile(join(at, 'logs/verifier/reward.txt'), 'utf8')).trim();
}

it('judges eval_cmd and f2p_script by their exit codes', async () => {
  await using fixture = await createDataSetFixture();
  const remote_env_info = {
    instance_id: 'c',
    image_url: 'remote:1',
    workdir: '/srv',
    f2p_script: 'import sys\nsys.exit(3)\n',
  };
  const file = await fixture.writeRows('rows.jsonl', [
    { prompt: 'unused', label: 'x', metadata: { ...metadata, eval_cmd: 'test -d / && true' } },
    { prompt: 'unused', metadata: { ...metadata, instance_id: 'b', eval_cmd: 'exit 4' } },
    {
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Asked so.' }] }],
      metadata: JSON.stringify({ remote_env_info }),
    },
  ]);
  const first = await packed(fixture.tasks, `slime:${file}#a`);
  assert.deepEqual([first.task.image, first.task.workdir, first.grading], ['scale:1', '/srv', null]);
  assert.deepEqual(first.setup, ['git checkout -f x']);
  assert.equal(await rewardOf(fixture, first.tests), '1');
  assert.equal(await rewardOf(fixture, (await packed(fixture.tasks, `slime:${file}#b`)).tests), '0');
  const last = await packed(fixture.tasks, `slime:${file}#row-3`);
  assert.equal(last.instruction, 'Asked so.\n');
  assert.equal(last.task.image, 'remote:1');
  assert.match(textIn(last.tests, 'test.sh'), /python \/tests\/f2p\.py\n/);
});

it('passes swepro when its parser reports every required test as passed', async () => {
  await using fixture = await createDataSetFixture();
  await fixture.write('scripts/run.sh', 'echo "$1"\n');
  await fixture.write(
    'scripts/parser.py',
    'import json, sys\nnames = open(sys.argv[1]).read().strip().split(",")\njson.dump({"tests": [{"name": n, "status": "PASSED"} for n in names]}, open(sys.argv[3], "w"))\n',
  );
  const swepro = {
    run_script_path: 'scripts/run.sh',
    parser_script_path: 'scripts/parser.py',
    selected_test_files: ['a', "it's b"],
    fail_to_pass: ['a'],
    pass_to_pass: '["it\'s b"]',
    before_repo_set_cmd: 'git reset --hard\ngit clean -fd \ngit checkout abc \ngit checkout def -- test/hidden.js',
  };
  const file = await fixture.writeRows('rows.jsonl', [
    { metadata: { ...metadata, swepro } },
    { metadata: { ...metadata, instance_id: 'b', swepro: { ...swepro, fail_to_pass: ['other'] } } },
    { metadata: { ...metadata, instance_id: 'out', swepro: { ...swepro, parser_script_path: '/etc/passwd' } } },
    { metadata: { ...metadata, instance_id: 'none' } },
  ]);
  const { tests, setup, hiddenTests, protection } = await packed(fixture.tasks, `slime:${file}#a`);
  assert.deepEqual(setup, ['git reset --hard\ngit clean -fd\ngit checkout abc', 'git checkout -f x']);
  assert.match(hiddenTests.join(), /git checkout -q 'def' -- 'test\/hidden\.js' &&/);
  assert.ok(protection.paths.includes('/test/hidden.js'));
  assert.equal(await rewardOf(fixture, tests), '1');
  assert.equal(await rewardOf(fixture, (await packed(fixture.tasks, `slime:${file}#b`)).tests), '0');
  await assert.rejects(
    fixture.tasks.resolve(`slime:${file}#out`),
    failure(
      'MalformedTask',
      /row 3: metadata\.swepro\.parser_script_path: expected a file below .*, got \/etc\/passwd/,
    ),
  );
  await assert.rejects(
    fixture.tasks.resolve(`slime:${file}#none`),
    failure('MalformedTask', /row 4: metadata: expected swepro, eval_cmd or remote_env_info\.f2p_script, got none/),
  );
});

it('fails swepro when a required test also failed, and when a failing run reports only passes', async () => {
  await using fixture = await createDataSetFixture();
  await fixture.write(
    'parser.py',
    'import json, sys\nlines = [line.split() for line in open(sys.argv[1])]\njson.dump({"tests": [{"name": n, "status": s} for s, n in lines]}, open(sys.argv[3], "w"))\n',
  );
  const runs: readonly (readonly [string, string])[] = [
    ['echo PASSED a', '1'],
    ['echo PASSED a; echo FAILED a', '0'],
    ['echo PASSED a; exit 1', '0'],
    ['echo PASSED a; echo FAILED other; exit 1', '1'],
  ];
  for (const [index, [run, reward]] of runs.entries()) {
    await fixture.write(`run-${index}.sh`, `${run}\n`);
    const paths = { run_script_path: `run-${index}.sh`, parser_script_path: 'parser.py' };
    const swepro = { ...paths, selected_test_files: ['a'], fail_to_pass: ['a'], pass_to_pass: [] };
    const file = await fixture.writeRows(`rows-${index}.jsonl`, [{ metadata: { ...metadata, swepro } }]);
    assert.equal(await rewardOf(fixture, (await packed(fixture.tasks, `slime:${file}#a`)).tests), reward, run);
  }
});

it('makes the same task from slime’s rows of SWE-bench as from SWE-bench’s', async () => {
  await using fixture = await createDataSetFixture();
  const inner = { ...sweRow, image: 'own:1' };
  const wrapped = await fixture.writeRows('wrapped.jsonl', [{ prompt: 'p', metadata: { remote_env_info: inner } }]);
  const plain = await fixture.writeRows('plain.jsonl', [inner]);
  const [a, b] = await Promise.all([
    fixture.tasks.resolve(`slime-swe-bench:${wrapped}#${sweRow.instance_id}`),
    fixture.tasks.resolve(`swe-bench:${plain}#${sweRow.instance_id}`),
  ]);
  assert.equal(a.image, 'own:1');
  assert.equal(a.bundle.digest, b.bundle.digest);
});
