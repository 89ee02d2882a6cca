import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { type DataSetPlace, dataSetPlace, failure, packed, sweRow, textIn } from '../../helpers/tasks/data-set.ts';
import { sweRepository } from '../../helpers/tasks/swe-repository.ts';

const added = (path: string): string =>
  `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+n\n`;

async function addressOf(place: DataSetPlace, row: Readonly<Record<string, unknown>>): Promise<string> {
  const file = await place.writeRows('rows.jsonl', [{ ...sweRow, test_patch: added('tests/test_a.py'), ...row }]);
  return `swe-bench:${file}#${sweRow.instance_id}`;
}

const runTests = './tests/runtests.py --verbosity 2';

it('the tests of a repository are run as its version has them run', async () => {
  await using place = await dataSetPlace();
  const cases = [
    ['astropy/astropy', '1.3', "pytest -rA -vv -o console_output_style=classic --tb=no 'tests/test_a.py'"],
    ['astropy/astropy', '5.1', "pytest -rA 'tests/test_a.py'"],
    ['django/django', '1.9', `${runTests} 'test_a'`],
    ['django/django', '3.0', `${runTests} --settings=test_sqlite --parallel 1 'test_a'`],
    ['mwaskom/seaborn', '0.12', "pytest --no-header -rA 'tests/test_a.py'"],
  ] as const;
  for (const [repo, version, command] of cases) {
    const { tests } = await packed(place.tasks, await addressOf(place, { repo, version }));
    assert.equal(textIn(tests, 'test.sh'), `${command}\n`, `${repo} ${version}`);
  }
});

it('what is installed anew before each evaluation gives way to the workspace; Python gets its encoding', async () => {
  await using place = await dataSetPlace();
  const before = async (row: Readonly<Record<string, unknown>>): Promise<readonly boolean[]> => {
    const { tests } = await packed(place.tasks, await addressOf(place, row));
    const prepare = textIn(tests, 'prepare.sh');
    return [prepare.includes('workspace.pth'), prepare.includes('export LANG LC_ALL=')];
  };
  assert.deepEqual(await before({ repo: 'django/django', version: '1.6' }), [true, false]);
  assert.deepEqual(await before({ repo: 'django/django', version: '2.2' }), [true, true]);
  assert.deepEqual(await before({ repo: 'django/django', version: '3.2' }), [false, true]);
  assert.deepEqual(await before({ repo: 'django/django', version: '4.2' }), [false, false]);
  assert.deepEqual(await before({ repo: 'psf/requests', version: '2.3' }), [true, false]);
  const eval_script = ": '>>>>> Start Test Output'\npytest -rA\n: '>>>>> End Test Output'\n";
  assert.deepEqual(await before({ repo: 'psf/requests', version: '2.3', eval_script }), [true, false]);
  // Nobody is asked for what a row says of a version that nobody knows.
  assert.deepEqual(await before({ repo: 'psf/requests', version: '9.9', eval_script }), [false, false]);
});

it('a version whose tests nobody knows is refused by name, unless the row says how they are run', async () => {
  await using place = await dataSetPlace();
  const refused = (got: string) =>
    failure('UnsupportedTask', new RegExp(`row 1: version: expected one of .*2\\.2.*, got ${got}$`));
  await assert.rejects(place.tasks.resolve(await addressOf(place, { version: '9.9' })), refused('"9.9"'));
  await assert.rejects(
    place.tasks.resolve(await addressOf(place, { repo: 'django/django', version: null })),
    refused('null'),
  );
  const { tests } = await packed(place.tasks, await addressOf(place, { version: '9.9', test_cmd: 'make test' }));
  assert.equal(textIn(tests, 'test.sh'), 'make test\n');
  // All versions of flask are run alike.
  await place.tasks.resolve(await addressOf(place, { version: null }));
});

it('a solution that would have to be compiled is refused by name, unless the row says how tests are run', async () => {
  await using place = await dataSetPlace();
  const row = { repo: 'scikit-learn/scikit-learn', version: '1.3', patch: added('sklearn/tree/_tree.pyx.tp') };
  await assert.rejects(
    place.tasks.resolve(await addressOf(place, row)),
    failure('UnsupportedTask', /row 1: patch: expected a solution in Python alone, .* sklearn\/tree\/_tree\.pyx\.tp/),
  );
  await place.tasks.resolve(await addressOf(place, { ...row, test_cmd: 'make && pytest -rA' }));
  await place.tasks.resolve(await addressOf(place, { ...row, patch: sweRow.patch }));
  // Nothing of flask is compiled: a header is data there.
  await place.tasks.resolve(await addressOf(place, { patch: row.patch }));
});

it('labels of Django are modules: what a test patch brings beside them is none', async () => {
  await using place = await dataSetPlace();
  const files = ['tests/forms/templates/a.html', 'tests/forms/tests.py', 'django/test/client.py', 'js_tests/a.js'];
  const row = { repo: 'django/django', version: '4.2', test_patch: files.map(added).join('') };
  const { tests } = await packed(place.tasks, await addressOf(place, row));
  assert.match(textIn(tests, 'test.sh'), / --parallel 1 'forms\.tests' 'django\.test\.client'\n$/);
});

it('a repository from a mirror is made to name its passing tests, as the published images are', async () => {
  await using place = await dataSetPlace();
  const files = { 'tox.ini': 'commands =\n    pytest {posargs}\n' };
  const { commit: base_commit } = await sweRepository(`${place.root}/mirrors`, 'sphinx-doc/sphinx', files);
  const address = await addressOf(place, { repo: 'sphinx-doc/sphinx', version: '7.2', base_commit, setup: ['true'] });
  assert.deepEqual((await packed(place.tasks, address)).setup, ['true']);
  const mirrored = address.replace('#', `?image=python&repositories=${place.root}/mirrors#`);
  const { setup } = await packed(place.tasks, mirrored);
  assert.equal(setup.at(-1), 'true');
  const cwd = join(place.root, 'mirrors/sphinx-doc/sphinx');
  // Set-up is done again where a worker died over it.
  for (const command of [...setup, ...setup]) execFileSync('bash', ['-c', command], { cwd });
  assert.equal(await readFile(join(cwd, 'tox.ini'), 'utf8'), 'commands =\n    pytest -rA {posargs}\n');
});
