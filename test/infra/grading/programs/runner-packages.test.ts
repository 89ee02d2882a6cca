import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runnerPackages } from '../../../../infra/grading/programs/runner-packages.ts';

const base = {
  directories: [],
  beyond: [],
  tracked: new Set(['node_modules/jest-cli/build/index.js']),
  hasRepository: true,
  workdir: '/app',
  files: new Map(),
};
const patchOf = (names: readonly string[]): Uint8Array =>
  Buffer.from(
    names.map((name) => `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -1 +1 @@\n-a\n+b\n`).join(''),
  );

it('the packages of an installed runner belong to the task, those that it is made of too, and others do not', () => {
  const runners = [
    '.venv/lib/python3.12/site-packages/_pytest/python.py',
    '.venv/lib/python3.12/site-packages/pytest_asyncio/plugin.py',
    '.venv/lib/python3.12/site-packages/xdist/plugin.py',
    'node_modules/jest/bin/jest.js',
    'node_modules/jest-circus/build/run.js',
    'node_modules/expect/build/index.js',
    'node_modules/@jest/core/build/runJest.js',
    'node_modules/.pnpm/x/node_modules/@vitest/runner/dist/index.js',
    'web/node_modules/@tapjs/core/dist/index.js',
  ];
  const others = [
    '.venv/lib/python3.12/site-packages/requests/api.py',
    'node_modules/express/index.js',
    'node_modules/@types/jest/index.d.ts',
    'node_modules/jest-cli/build/index.js',
    'src/expect/index.js',
  ];
  assert.deepEqual(
    runnerPackages(base, patchOf([...runners, ...others])),
    runners.map((name) => `/${name}`),
  );
  assert.deepEqual(runnerPackages(null, patchOf(runners)), []);
});
