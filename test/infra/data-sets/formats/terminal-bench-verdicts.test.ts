import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { it } from 'node:test';
import { createDataSetFixture, packed, textIn } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

const heading = '=========================== short test summary info ============================';
/** Prints a verdict between the marks of a parser. */
const marked = (marks: string, ...words: readonly string[]): string =>
  ['FAILED a.py', `${marks} starts here`, ...words, `${marks} ends here`].map((line) => `echo '${line}'`).join('; ');

/** Commands of a `run-tests.sh`, the reward that they lead to, and the parser if it is not pytest's. */
const verdicts: readonly (readonly [string, string, string, string?])[] = [
  ['passing tests', `echo '${heading}'; echo 'PASSED tests/test_outputs.py::test_one'`, '1\n'],
  [
    'passing tests and expected failures, in colour',
    `printf '\\e[36m%s\\e[0m\\n' '${heading}' 'PASSED a.py::one' 'XFAIL a.py::two' 'SKIPPED [1] a.py:7: no'`,
    '1\n',
  ],
  [
    'a failing test before a successful command',
    `echo '${heading}'; echo 'PASSED a.py::one'; echo 'FAILED a.py::two - assert 1 == 2'; echo 'Pytest end.'`,
    '0\n',
  ],
  [
    'a failing test in the first of two runs',
    `echo '${heading}'; echo 'FAILED a.py::two'; echo '${heading}'; echo 'PASSED b.py::one'`,
    '0\n',
  ],
  ['an error outside a test', `echo '${heading}'; echo 'ERROR a.py - ImportError'; echo 'PASSED b.py::one'`, '0\n'],
  ['only skipped tests', `echo '${heading}'; echo 'SKIPPED [1] a.py:7: no'`, '0\n'],
  ['no summary', "echo 'PASSED a.py::one'", '0\n'],
  ['passing tests and a failing exit code', `echo '${heading}'; echo 'PASSED a.py::one'; exit 3`, '0\n'],
  [
    'a background process that keeps the output open',
    `sleep 30 & echo $! >"$LEFT"; echo '${heading}'; echo 'PASSED a.py::one'`,
    '1\n',
  ],
  ['a passed verdict of SWE-bench', marked('SWEBench results', 'PASSED'), '1\n', 'swebench'],
  ['a failed verdict of SWE-bench', marked('SWEBench results', 'FAILED'), '0\n', 'swebench'],
  [
    'a verdict of SWE-bench before its own',
    `${marked('SWEBench results', 'PASSED')}; ${marked('SWEBench results', 'FAILED')}`,
    '0\n',
    'swebench',
  ],
  ['no verdict of SWE-bench', `echo 'PASSED a.py'`, '0\n', 'swebench'],
  ['a passed verdict of SWE-Perf', marked('SWE-Perf results', '', 'PASSED '), '1\n', 'sweperf'],
  ['a passed verdict of MLE-bench', marked('MLEBench results', 'ALL TESTS PASSED'), '1\n', 'mlebench'],
  ['another verdict of MLE-bench', marked('MLEBench results', 'PASSED'), '0\n', 'mlebench'],
  ['a success of SWE-Lancer', `echo 'a.py: SWE Lancer success'`, '1\n', 'swelancer'],
  ['both verdicts of SWE-Lancer', `echo 'a.py: swe lancer success'; echo 'swe lancer failure'`, '0\n', 'swelancer'],
];
for (const [what, commands, expected, parser = 'pytest'] of verdicts) {
  it(`gives terminal-bench tests with ${what} a reward of ${expected.trim()}`, async () => {
    await using fixture = await createDataSetFixture();
    for (const [path, text] of Object.entries(terminalBench)) await fixture.write(`tb/hello/${path}`, text);
    await fixture.write('tb/hello/task.yaml', `instruction: a\nparser_name: ${parser}\n`);
    await fixture.write('tb/hello/run-tests.sh', `[ "$TEST_DIR" = /tests ] || exit 9\n${commands}\n`);
    const { tests } = await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#hello`);
    const runTests = await fixture.write('run-tests.sh', textIn(tests, 'run-tests.sh'));
    const left = await fixture.write('left', '');
    const script = textIn(tests, 'test.sh')
      .replaceAll('/logs/verifier', `${fixture.root}/logs`)
      .replaceAll('/tests/run-tests.sh', runTests);
    const said = await open(`${fixture.root}/said`, 'w');
    execFileSync('bash', ['-c', script], {
      stdio: ['ignore', said.fd, 'inherit'],
      env: { ...process.env, LEFT: left },
    });
    await said.close();
    assert.equal(await readFile(`${fixture.root}/logs/reward.txt`, 'utf8'), expected);
    assert.match(await readFile(`${fixture.root}/said`, 'utf8'), /a\.py|test_outputs/);
    const pid = Number(await readFile(left, 'utf8'));
    if (pid > 0) process.kill(pid);
  });
}
