import { splitEvalScript } from '../../infra/data-sets/swe/eval-script.ts';
import type { GradingFile } from '../../infra/harbor/grading-file.ts';
import { type HarborTask, readHarborTask } from '../../infra/harbor/harbor-task.ts';
import { bugAt } from '../../infra/tasks/generated/bug.ts';
import { generateTask } from '../../infra/tasks/generated/generate.ts';
import { treeOf } from '../helpers/sandbox/workspaces.ts';

/* Small tasks, one for each way of grading. Each has a bug: `add` subtracts. Doing nothing is worth 0 in all of them. */

type Files = Readonly<Record<string, string>>;

interface Victim {
  readonly workspace: Files;
  readonly tests: Files;
  readonly setup?: readonly string[];
  /** The criteria for its log, with its tests in the repository; omitted if its script writes a reward. */
  readonly grading?: GradingFile;
  /** Set if its tests run the code by `/as-agent/run`. */
  readonly codeAsAgent?: true;
}

function victim({ workspace, tests, setup = [], grading, codeAsAgent }: Victim): HarborTask {
  const below = (folder: string, files: Files) =>
    Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text] as const);
  const toml = `version = "1.0"\n[environment]\ndocker_image = "temper-tasks:bookworm"\nstorage_mb = 256\nsetup = ${JSON.stringify(setup)}\n`;
  const inRepository = grading === undefined || codeAsAgent ? '' : '[grading]\ntests_in_repository = true\n';
  const asAgent = codeAsAgent ? '[grading]\ncode_as_agent = true\n' : '';
  const tree = Object.fromEntries([
    ...below('environment/workspace', workspace),
    ...below('tests', tests),
    ['task.toml', toml + inRepository + asAgent],
    ['instruction.md', 'Fix add.\n'],
    ...(grading === undefined ? [] : [['grading.json', JSON.stringify(grading)] as const]),
  ]);
  return readHarborTask(treeOf(tree));
}

/** The bug, and its repair. */
export const python = { bug: 'def add(a, b):\n    return a - b\n', repair: 'def add(a, b):\n    return a + b\n' };
export const shell = { bug: 'echo $(($1 - $2))\n', repair: 'echo $(($1 + $2))\n' };
export const javascript = { bug: 'exports.add = (a, b) => a - b;\n', repair: 'exports.add = (a, b) => a + b;\n' };

const keepsZero = `import unittest
from sums import add


class Sums(unittest.TestCase):
    def test_zero(self):
        self.assertEqual(add(2, 0), 2)
`;
const hidden = `${keepsZero}
    def test_sum(self):
        self.assertEqual(add(2, 3), 5)
`;
const pythonWorkspace = { 'sums.py': python.bug, 'tests/__init__.py': '', 'tests/test_sums.py': keepsZero };
const pythonTests = { 'test_sums.py': hidden, 'prepare.sh': 'cp "$TEMPER_TESTS/test_sums.py" tests/test_sums.py\n' };

/** Runs the tests with the workspace on the path, as many projects do: Python also looks there for its own hooks. */
const runUnittest = 'PYTHONPATH=. python3 -m unittest -v tests.test_sums\n';
const byUnittest: GradingFile = {
  failToPass: ['tests.test_sums.Sums.test_sum'],
  passToPass: ['tests.test_sums.Sums.test_zero'],
  logParser: 'unittest',
};

/** A task whose tests are all in the repository from the start: only protection keeps them unchanged. */
export const visibleTests = victim({
  workspace: { ...pythonWorkspace, 'tests/test_sums.py': hidden },
  tests: { 'test.sh': runUnittest },
  grading: byUnittest,
});

export const unittests = victim({
  workspace: pythonWorkspace,
  tests: { ...pythonTests, 'test.sh': runUnittest },
  grading: byUnittest,
});

/** A script in the style of SWE-bench's harness: it prints its own marks, in a form that no reader of a data set knows. */
const evalScript = splitEvalScript(`#!/bin/bash
set -uxo pipefail
cp "$TEMPER_TESTS/test_sums.py" tests/test_sums.py
run() {
  echo ">>>>> Start Test Output"
  ${runUnittest.trim()}
  local status=$?
  echo ">>>>> End Test Output" | cat
  return $status
}
run
`);
export const marked = victim({
  workspace: pythonWorkspace,
  tests: { 'test_sums.py': hidden, 'prepare.sh': evalScript.prepare, 'test.sh': evalScript.command },
  grading: byUnittest,
});

export const pytests = victim({
  workspace: { ...pythonWorkspace, 'pyproject.toml': '[tool.pytest.ini_options]\naddopts = "-rA"\n' },
  tests: { ...pythonTests, 'test.sh': 'python3 -m pytest -p no:cacheprovider tests/test_sums.py\n' },
  grading: {
    failToPass: ['tests/test_sums.py::Sums::test_sum'],
    passToPass: ['tests/test_sums.py::Sums::test_zero'],
    logParser: 'pytest',
  },
});

const nodeTest = (more: string): string => `const { test } = require('node:test');
const assert = require('node:assert');
const { add } = require('../add.js');
test('keeps zero', () => assert.equal(add(2, 0), 2));
${more}`;

export const nodeTests = victim({
  workspace: { 'add.js': javascript.bug, 'test/add.test.js': nodeTest('') },
  tests: {
    'add.test.js': nodeTest("test('adds', () => assert.equal(add(2, 3), 5));\n"),
    'prepare.sh': 'cp "$TEMPER_TESTS/add.test.js" test/add.test.js\n',
    'test.sh': 'node --test --test-reporter=tap test/add.test.js\n',
  },
  grading: { failToPass: ['adds'], passToPass: ['keeps zero'], logParser: 'tap' },
});

export const batsTests = victim({
  workspace: { 'sum.sh': shell.bug, 'test/sum.bats': '' },
  tests: {
    'sum.bats':
      '@test "keeps zero" { run bash sum.sh 2 0; [ "$output" = 2 ]; }\n@test "adds" { run bash sum.sh 2 3; [ "$output" = 5 ]; }\n',
    'prepare.sh': 'cp "$TEMPER_TESTS/sum.bats" test/sum.bats\n',
    'test.sh': 'bats test/sum.bats\n',
  },
  grading: { failToPass: ['adds'], passToPass: ['keeps zero'], logParser: 'bats' },
});

const rewardedTests = {
  'test_sums.py': hidden,
  'test.sh': `mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
cd /workspace && python3 -m unittest discover -s /tests
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; fi
`,
};

/** Hidden tests that load the code, and a script that writes the reward by the status of their runner. */
export const rewarded = victim({ workspace: { 'sums.py': python.bug }, tests: rewardedTests });

const git =
  'GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z git -c user.name=a -c user.email=a@b';

/** A repository with the repair on a branch, under a tag, in a stash, and as a loose object. */
export const withHistory = victim({
  workspace: { 'sums.py': python.bug },
  setup: [
    `git init -q -b main . && git add -A && ${git} commit -qm bug && git checkout -qb fix`,
    `sed -i 's/a - b/a + b/' sums.py && ${git} commit -qam repair && git tag fixed && git checkout -q main`,
    `sed -i 's/a - b/a + b  # stashed/' sums.py && ${git} stash -q`,
    "sed 's/a - b/a + b  # loose/' sums.py | git hash-object -w --stdin",
  ],
  tests: rewardedTests,
});

/** A script that runs the code as a separate program, and compares its output. */
export const asProgram = victim({
  workspace: { 'sum.sh': shell.bug },
  tests: {
    'test.sh': `said=$(cd /workspace && timeout 30 bash sum.sh 2 3)
mkdir -p /logs/verifier
if [ "$said" = 5 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
`,
  },
});

/** A script that runs the code as a separate program of another account. */
export const asAgent = victim({
  workspace: { 'sum.sh': shell.bug },
  tests: {
    'test.sh': `said=$(timeout 30 /as-agent/run bash sum.sh 2 3)
if [ "$said" = 5 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
`,
  },
  codeAsAgent: true,
});

export const batsAsAgent = victim({
  workspace: { 'sum.sh': shell.bug },
  tests: {
    'sum.bats': `@test "keeps zero" { run timeout 30 /as-agent/run bash sum.sh 2 0; [ "$output" = 2 ]; }
@test "adds" { run timeout 30 /as-agent/run bash sum.sh 2 3; [ "$output" = 5 ]; }
`,
    'test.sh': 'bats "$TEMPER_TESTS/sum.bats"\n',
  },
  grading: { failToPass: ['adds'], passToPass: ['keeps zero'], logParser: 'bats' },
  codeAsAgent: true,
});

/** A generated task: its tests run the code in a separate context, which returns plain numbers. */
export const generated: HarborTask = readHarborTask(generateTask('train', 1, 0));
export const generatedBug = bugAt('train', 1, 0);
