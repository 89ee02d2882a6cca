import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { missingPrograms } from '../../../../infra/grading/evidence/missing-programs.ts';

const absent = 'temper-has-no-such-program';

/** Returns what a command of this machine really prints. */
function printed(...argv: readonly [string, ...string[]]): string {
  const [command, ...args] = argv;
  const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return stdout + stderr;
}

describe('the programs that a log reports as missing', () => {
  const real: Readonly<Record<string, readonly [string, ...string[]]>> = {
    bash: ['bash', '-c', absent],
    sh: ['sh', '-c', absent],
    env: ['env', absent, '--version'],
    node: ['node', '-e', `require('child_process').spawn('${absent}')`],
  };
  for (const [name, argv] of Object.entries(real)) {
    it(`are found in what ${name} prints on this machine`, () => {
      assert.deepEqual(missingPrograms(printed(...argv)), [absent]);
    });
  }

  const lines: Readonly<Record<string, readonly string[]>> = {
    '/tests/test.sh: line 3: bats: command not found': ['bats'],
    'sh: 1: go: not found': ['go'],
    "env: 'bats': No such file or directory": ['bats'],
    'bash: ./run.bats: /usr/bin/bats: bad interpreter: No such file or directory': ['/usr/bin/bats'],
    'test.sh: line 2: /opt/conda/bin/python: No such file or directory': ['/opt/conda/bin/python'],
    'make: bats: No such file or directory': ['bats'],
    'make: *** cargo: Command not found': ['cargo'],
    "FileNotFoundError: [Errno 2] No such file or directory: 'pytest'": ['pytest'],
    'exec: "gcc": executable file not found in $PATH': ['gcc'],
    '/usr/bin/python3: No module named pytest': ['the Python module pytest'],
    'a: bats: command not found\nb: bats: command not found\nb: go: command not found': ['bats', 'go'],
  };
  for (const [line, names] of Object.entries(lines)) {
    it(`are found in ${JSON.stringify(line)}`, () => assert.deepEqual(missingPrograms(line), names));
  }

  it('are not looked for in other lines about things that are missing', () => {
    const log = [
      'bash: ./hello.sh: No such file or directory',
      'cat: answer.txt: No such file or directory',
      "ModuleNotFoundError: No module named 'app'",
      'HTTP 404: page not found: /index',
      'the user was not found',
    ];
    for (const line of log) assert.deepEqual(missingPrograms(line), [], line);
  });

  it('are looked for in a long line without a pause, and are at most 20', () => {
    assert.deepEqual(missingPrograms(`${'a'.repeat(2_000_000)}: not found`), []);
    const many = Array.from({ length: 50 }, (_, index) => `sh: 1: p${index}: not found`).join('\n');
    assert.equal(missingPrograms(many).length, 20);
  });
});
