import type { FileEntry, FileTree } from '../../sandbox/files.ts';
import { type Bug, bugAt, type Split, sourceOf } from './bug.ts';

/** The image of generated tasks. Any image with bash, git and Node 18 or later on PATH would do. */
export const generatedImage = 'temper-tasks:bookworm';

/**
 * Generates the task of a split, seed and index as a directory in Harbor layout: a small JavaScript repository with one bug,
 * hidden tests for `node --test`, and the reference solution. Equal arguments give equal bytes.
 */
export function generateTask(split: Split, seed: number, index: number): FileTree {
  const bug = bugAt(split, seed, index);
  const tree = new Map<string, FileEntry>();
  const put = (path: string, text: string, mode = 0o644): void => {
    tree.set(path, { mode, bytes: new TextEncoder().encode(text) });
  };
  put('task.toml', taskToml(bug, seed, index));
  put('instruction.md', `${instructionOf(bug)}\n`);
  put('environment/Dockerfile', dockerfile);
  put(`environment/workspace/${bug.file}.js`, sourceOf(bug, bug.wrong.symbol));
  put('environment/workspace/index.js', `export { ${bug.name} } from './${bug.file}.js';\n`);
  put('environment/workspace/package.json', '{ "private": true, "type": "module" }\n');
  put('tests/test.sh', testScript(bug), 0o755);
  put(`tests/${bug.file}.test.mjs`, testFile(bug));
  put('solution/solve.sh', solveScript(bug), 0o755);
  put(`solution/files/${bug.file}.js`, sourceOf(bug, bug.goal.symbol));
  return tree;
}

/** The instruction, which states the result that the function must return but not the operator. */
export const instructionOf = ({ name, file, goal }: Bug): string =>
  `Fix ${name} in ${file}.js: it must return the ${goal.word}.`;

const taskToml = (bug: Bug, seed: number, index: number): string => `version = "1.0"

[metadata]
source = "generated:${bug.split}/${seed}/${index}"

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 60.0

[environment]
docker_image = "${generatedImage}"
workdir = "/workspace"
cpus = 1
memory_mb = 1024
storage_mb = 256
allow_internet = false
`;

const dockerfile = `FROM ${generatedImage}
COPY workspace /workspace
WORKDIR /workspace
RUN git init -q -b main && git add -A && \\
    git -c user.name=temper -c user.email=temper@localhost commit -q -m 'Start of the task'
`;

// Without isolation the runner needs one process instead of two. Node below 24 rejects the option with status 9.
const testScript = ({ file }: Bug): string => `#!/bin/bash
# Runs the hidden tests on /workspace. The reward is 1 if all pass, else 0.
tests=\${BASH_SOURCE[0]%/*}
[[ $tests == /* ]] || tests=$PWD/$tests
mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
cd /workspace || exit 2
run() { timeout -k 1 20 node --test "$@" --test-reporter=tap "$tests/${file}.test.mjs"; }
run --test-isolation=none
status=$?
if [ "$status" -eq 9 ]; then run; status=$?; fi
if [ "$status" -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; fi
exit "$status"
`;

// The file under test runs in a separate context, so that it can neither end the test process nor forge its report.
const testFile = ({ file, name, cases }: Bug): string => `import { equal } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';

const context = createContext(Object.create(null), { codeGeneration: { strings: false, wasm: false } });
const run = (code) => runInContext(code, context, { timeout: 1000 });

test('${file}.js loads', () => {
  run(readFileSync('${file}.js', 'utf8').replaceAll(/^export (default )?/gm, ''));
});

for (const [a, b, expected] of ${JSON.stringify(cases.map(({ a, b, expected }) => [a, b, expected]))}) {
  test(\`${name}(\${a}, \${b}) is \${expected}\`, () => {
    equal(run(\`${name}(\${a}, \${b})\`), expected);
  });
}
`;

const solveScript = ({ file }: Bug): string => `#!/bin/bash
# Puts the reference solution in place.
set -eu
cp "\${BASH_SOURCE[0]%/*}/files/${file}.js" /workspace/${file}.js
`;
