import assert from 'node:assert/strict';
import { it } from 'node:test';
import { splitEvalScript } from '../../../../infra/data-sets/swe/eval-script.ts';

it('splits a published script at its markers, without its cleanup and the line that saves the status', () => {
  const script = [
    '#!/bin/bash',
    'set -uxo pipefail',
    'cd /testbed',
    ": '>>>>> Start Test Output'",
    'pytest -rA tests/test_a.py',
    'SWEBENCH_TEST_EXIT_CODE=$?',
    ": '>>>>> End Test Output'",
    'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
    'git checkout abc tests/test_a.py',
    '',
  ].join('\n');
  assert.deepEqual(splitEvalScript(script), {
    prepare: '#!/bin/bash\nset -uxo pipefail\ncd /testbed\n',
    command: 'pytest -rA tests/test_a.py\n',
  });
});

it('treats a script without both markers in order as the tests alone', () => {
  const start = 'echo ">>>>> Start Test Output"';
  const end = 'echo ">>>>> End Test Output"';
  for (const script of ['make test\n', `${start}\nmake test\n`, `${end}\nmake test\n${start}\n`]) {
    assert.deepEqual(splitEvalScript(script), { prepare: '', command: script });
  }
});
