import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { multilingualCommands } from '../../../../infra/data-sets/formats/swe-bench/multilingual-commands.ts';
import { sweBenchCommands } from '../../../../infra/data-sets/formats/swe-bench/swe-bench-commands.ts';
import { sweGymCommands } from '../../../../infra/data-sets/formats/swe-bench/swe-gym-commands.ts';
import {
  createDataSetFixture,
  type DataSetFixture,
  failure,
  packed,
  sweRow,
  textIn,
} from '../../../helpers/tasks/data-set-fixture.ts';
import { createSweRepository } from '../../../helpers/tasks/swe-repository.ts';

const added = (path: string): string =>
  `diff --git a/${path} b/${path}\nnew file mode 100644\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+n\n`;

async function addressOf(fixture: DataSetFixture, row: Readonly<Record<string, unknown>>): Promise<string> {
  const file = await fixture.writeRows('rows.jsonl', [{ ...sweRow, test_patch: added('tests/test_a.py'), ...row }]);
  return `swe-bench:${file}#${sweRow.instance_id}`;
}

const runTests = './tests/runtests.py --verbosity 2';

it('runs the tests of a repository with the command of its version', async () => {
  await using fixture = await createDataSetFixture();
  const cases = [
    ['astropy/astropy', '1.3', "pytest -rA -vv -o console_output_style=classic --tb=no 'tests/test_a.py'"],
    ['astropy/astropy', '5.1', "pytest -rA 'tests/test_a.py'"],
    ['django/django', '1.9', `${runTests} 'test_a'`],
    ['django/django', '3.0', `${runTests} --settings=test_sqlite --parallel 1 'test_a'`],
    ['mwaskom/seaborn', '0.12', "pytest --no-header -rA 'tests/test_a.py'"],
  ] as const;
  for (const [repo, version, command] of cases) {
    const { tests } = await packed(fixture.tasks, await addressOf(fixture, { repo, version }));
    assert.equal(textIn(tests, 'test.sh'), `${command}\n`, `${repo} ${version}`);
  }
});

it('runs the tests that SWE-bench Multilingual names for the pull request of a row', async () => {
  await using fixture = await createDataSetFixture();
  const unstable = 'RUSTFLAGS="--cfg tokio_unstable" cargo test';
  const cases = [
    ['astral-sh/ruff', '15309', "cargo test --package ruff_linter 'f52'", 'cargo'],
    ['tokio-rs/tokio', '7139', `${unstable} --test fs_file --no-fail-fast`, 'cargo'],
    ['nushell/nushell', '13605', 'cargo test -p nu-command --no-fail-fast ls::', 'cargo'],
    [
      'briannesbitt/carbon',
      '2665',
      'vendor/bin/phpunit --testdox --colors=never tests/Carbon/RoundTest.php',
      'phpunit',
    ],
    ['mrdoob/three.js', '27395', 'npx qunit test/unit/src/math/Sphere.tests.js', 'tap'],
    ['fmtlib/fmt', '3729', 'ctest --test-dir build -V -R std-test', 'googletest'],
  ] as const;
  for (const [repo, version, command, parser] of cases) {
    const { tests, grading } = await packed(fixture.tasks, await addressOf(fixture, { repo, version }));
    assert.equal(textIn(tests, 'test.sh'), `${command}\n`, `${repo} ${version}`);
    assert.equal(grading?.logParser, `parse_log_${parser}`);
    const builds = /^(?:cargo build|cmake --build build .* --target std-test)$/m.test(textIn(tests, 'prepare.sh'));
    assert.equal(builds, ['nushell/nushell', 'fmtlib/fmt'].includes(repo));
  }
  const unknown = await addressOf(fixture, { repo: 'axios/axios', version: '5316' });
  const message = /version: expected a version of axios\/axios whose test command is known \(4731, .*, or test_cmd/;
  await assert.rejects(fixture.tasks.resolve(unknown), failure('UnsupportedTask', message));
});

it('puts the workspace before an installed copy on Python’s path, and sets Python’s encoding', async () => {
  await using fixture = await createDataSetFixture();
  const before = async (row: Readonly<Record<string, unknown>>): Promise<readonly boolean[]> => {
    const { tests } = await packed(fixture.tasks, await addressOf(fixture, row));
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
  // An eval_script makes the version's command unnecessary, so the version need not be known.
  assert.deepEqual(await before({ repo: 'psf/requests', version: '9.9', eval_script }), [false, false]);
});

it('rejects a version without a known test command, unless the row contains one', async () => {
  await using fixture = await createDataSetFixture();
  const refused = (got: string) =>
    failure('UnsupportedTask', new RegExp(`row 1: version: expected a version of .*2\\.2.*, got ${got}$`));
  await assert.rejects(fixture.tasks.resolve(await addressOf(fixture, { version: '9.9' })), refused('"9.9"'));
  await assert.rejects(
    fixture.tasks.resolve(await addressOf(fixture, { repo: 'django/django', version: null })),
    refused('null'),
  );
  const { tests } = await packed(fixture.tasks, await addressOf(fixture, { version: '9.9', test_cmd: 'make test' }));
  assert.equal(textIn(tests, 'test.sh'), 'make test\n');
  // All versions of flask have the same command.
  await fixture.tasks.resolve(await addressOf(fixture, { version: null }));
});

it('rejects a solution that needs compiling, unless the row contains a test command', async () => {
  await using fixture = await createDataSetFixture();
  const row = { repo: 'scikit-learn/scikit-learn', version: '1.3', patch: added('sklearn/tree/_tree.pyx.tp') };
  await assert.rejects(
    fixture.tasks.resolve(await addressOf(fixture, row)),
    failure('UnsupportedTask', /row 1: patch: expected a solution in Python alone, .* sklearn\/tree\/_tree\.pyx\.tp/),
  );
  await fixture.tasks.resolve(await addressOf(fixture, { ...row, test_cmd: 'make && pytest -rA' }));
  await fixture.tasks.resolve(await addressOf(fixture, { ...row, patch: sweRow.patch }));
  // No part of flask is compiled: a header is data there.
  await fixture.tasks.resolve(await addressOf(fixture, { patch: row.patch }));
});

it('selects Django’s tests by module and ignores the other files of a test patch', async () => {
  await using fixture = await createDataSetFixture();
  const files = ['tests/forms/templates/a.html', 'tests/forms/tests.py', 'django/test/client.py', 'js_tests/a.js'];
  const row = { repo: 'django/django', version: '4.2', test_patch: files.map(added).join('') };
  const { tests } = await packed(fixture.tasks, await addressOf(fixture, row));
  assert.match(textIn(tests, 'test.sh'), / --parallel 1 'forms\.tests' 'django\.test\.client'\n$/);
});

it('patches a repository from a mirror so that it names its passing tests, as in the published images', async () => {
  await using fixture = await createDataSetFixture();
  const files = { 'tox.ini': 'commands =\n    pytest {posargs}\n' };
  const { commit: base_commit } = await createSweRepository(`${fixture.root}/mirrors`, 'sphinx-doc/sphinx', files);
  const address = await addressOf(fixture, { repo: 'sphinx-doc/sphinx', version: '7.2', base_commit, setup: ['true'] });
  assert.deepEqual((await packed(fixture.tasks, address)).setup, ['true']);
  const mirrored = address.replace('#', `?image=python&repositories=${fixture.root}/mirrors#`);
  const { setup } = await packed(fixture.tasks, mirrored);
  assert.equal(setup.at(-1), 'true');
  const cwd = join(fixture.root, 'mirrors/sphinx-doc/sphinx');
  // Set-up runs again after a worker died during it.
  for (const command of [...setup, ...setup]) execFileSync('bash', ['-c', command], { cwd });
  assert.equal(await readFile(join(cwd, 'tox.ini'), 'utf8'), 'commands =\n    pytest -rA {posargs}\n');
});

it('knows no repository and no version by a name that every object has', () => {
  for (const commands of [sweBenchCommands, sweGymCommands, multilingualCommands]) {
    assert.deepEqual([commands.find('constructor', '1'), commands.parser('constructor')], [null, null]);
    assert.deepEqual(commands.versions('constructor'), []);
    for (const repository of commands.repositories) {
      const command = commands.find(repository, 'constructor')?.command ?? '';
      assert.doesNotMatch(command, /native code/, repository);
    }
  }
});
