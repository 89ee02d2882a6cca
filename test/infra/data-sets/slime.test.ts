import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import type { FileTree } from '../../../infra/sandbox/files.ts';
import { type DataSetPlace, dataSetPlace, failure, packed, sweRow, textIn } from '../../helpers/tasks/data-set.ts';

const metadata = {
  instance_id: 'a',
  image: 'scale:1',
  workdir: '/',
  problem_statement: 'Fix it.',
  pre_commands: 'git checkout -f x',
};

/** Runs a task's tests here, with `/tests` and `/logs` in a directory of the test's own. */
async function rewardOf(place: DataSetPlace, tests: FileTree): Promise<string> {
  const at = join(place.root, 'run');
  const here = (text: string) => text.replaceAll('/tests/', `${at}/tests/`).replaceAll('/logs/', `${at}/logs/`);
  for (const path of tests.keys()) {
    await mkdir(dirname(join(at, 'tests', path)), { recursive: true });
    await writeFile(join(at, 'tests', path), here(textIn(tests, path)));
  }
  execFileSync('bash', [join(at, 'tests/test.sh')], { stdio: 'ignore' });
  return (await readFile(join(at, 'logs/verifier/reward.txt'), 'utf8')).trim();
}

it('eval_cmd and f2p_script are judged by their exit codes', async () => {
  await using place = await dataSetPlace();
  const remote_env_info = {
    instance_id: 'c',
    image_url: 'remote:1',
    workdir: '/',
    f2p_script: 'import sys\nsys.exit(3)\n',
  };
  const file = await place.writeRows('rows.jsonl', [
    { prompt: 'unused', label: 'x', metadata: { ...metadata, eval_cmd: 'test -d / && true' } },
    { prompt: 'unused', metadata: { ...metadata, instance_id: 'b', eval_cmd: 'exit 4' } },
    {
      prompt: [{ role: 'user', content: [{ type: 'text', text: 'Asked so.' }] }],
      metadata: JSON.stringify({ remote_env_info }),
    },
  ]);
  const first = await packed(place.tasks, `slime:${file}#a`);
  assert.deepEqual([first.task.image, first.task.workdir, first.grading], ['scale:1', '/', null]);
  assert.deepEqual(first.setup, ['git checkout -f x']);
  assert.equal(await rewardOf(place, first.tests), '1');
  assert.equal(await rewardOf(place, (await packed(place.tasks, `slime:${file}#b`)).tests), '0');
  const last = await packed(place.tasks, `slime:${file}#row-3`);
  assert.equal(last.instruction, 'Asked so.\n');
  assert.equal(last.task.image, 'remote:1');
  assert.match(textIn(last.tests, 'test.sh'), /python \/tests\/f2p\.py\n/);
});

it('swepro passes when its parser names every required test as passed', async () => {
  await using place = await dataSetPlace();
  await place.write('scripts/run.sh', 'echo "$1"\n');
  await place.write(
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
  const file = await place.writeRows('rows.jsonl', [
    { metadata: { ...metadata, swepro } },
    { metadata: { ...metadata, instance_id: 'b', swepro: { ...swepro, fail_to_pass: ['other'] } } },
    { metadata: { ...metadata, instance_id: 'out', swepro: { ...swepro, parser_script_path: '/etc/passwd' } } },
    { metadata: { ...metadata, instance_id: 'none' } },
  ]);
  const { tests, setup, hiddenTests, protection } = await packed(place.tasks, `slime:${file}#a`);
  assert.deepEqual(setup, ['git reset --hard\ngit clean -fd\ngit checkout abc', 'git checkout -f x']);
  assert.match(hiddenTests.join(), /git checkout -q 'def' -- 'test\/hidden\.js' &&/);
  assert.ok(protection.paths.includes('/test/hidden.js'));
  assert.equal(await rewardOf(place, tests), '1');
  assert.equal(await rewardOf(place, (await packed(place.tasks, `slime:${file}#b`)).tests), '0');
  await assert.rejects(
    place.tasks.resolve(`slime:${file}#out`),
    failure(
      'MalformedTask',
      /row 3: metadata\.swepro\.parser_script_path: expected a file below .*, got \/etc\/passwd/,
    ),
  );
  await assert.rejects(
    place.tasks.resolve(`slime:${file}#none`),
    failure('MalformedTask', /row 4: metadata: expected swepro, eval_cmd or remote_env_info\.f2p_script, got none/),
  );
});

it('swepro fails where a required test failed too, and where a failing run reports passes alone', async () => {
  await using place = await dataSetPlace();
  await place.write(
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
    await place.write(`run-${index}.sh`, `${run}\n`);
    const paths = { run_script_path: `run-${index}.sh`, parser_script_path: 'parser.py' };
    const swepro = { ...paths, selected_test_files: ['a'], fail_to_pass: ['a'], pass_to_pass: [] };
    const file = await place.writeRows(`rows-${index}.jsonl`, [{ metadata: { ...metadata, swepro } }]);
    assert.equal(await rewardOf(place, (await packed(place.tasks, `slime:${file}#a`)).tests), reward, run);
  }
});

it('slime’s rows of SWE-bench are those of SWE-bench', async () => {
  await using place = await dataSetPlace();
  const inner = { ...sweRow, image: 'own:1' };
  const wrapped = await place.writeRows('wrapped.jsonl', [{ prompt: 'p', metadata: { remote_env_info: inner } }]);
  const plain = await place.writeRows('plain.jsonl', [inner]);
  const [a, b] = await Promise.all([
    place.tasks.resolve(`slime-swe-bench:${wrapped}#${sweRow.instance_id}`),
    place.tasks.resolve(`swe-bench:${plain}#${sweRow.instance_id}`),
  ]);
  assert.equal(a.image, 'own:1');
  assert.equal(a.bundle.digest, b.bundle.digest);
});
