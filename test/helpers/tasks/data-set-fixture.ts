import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { hubUrl } from '../../../infra/data-sets/hub-account.ts';
import type { FileTree } from '../../../infra/sandbox/files.ts';
import { createTasks, type Tasks } from '../../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { createFileStore } from '../store/file-store.ts';

/** A temporary directory for files of data sets, and tasks that are read from it. */
export interface DataSetFixture extends AsyncDisposable {
  readonly root: string;
  readonly tasks: Tasks;
  /** Creates tasks as another process does, on the same cache. */
  tasksWith(settings: { readonly offline: boolean; readonly hub?: string; readonly token?: string | null }): Tasks;
  /** Writes a file and returns its path. */
  write(path: string, content: string | Uint8Array): Promise<string>;
  writeRows(path: string, rows: readonly unknown[]): Promise<string>;
}

export async function createDataSetFixture(): Promise<DataSetFixture> {
  const home = await mkdtemp(join(tmpdir(), 'temper-data-set-'));
  const root = join(home, 'root');
  await mkdir(root);
  const tasksWith: DataSetFixture['tasksWith'] = ({ offline, hub: url = hubUrl, token = null }) =>
    createTasks({
      store: createFileStore(join(home, 'store')),
      roots: [root],
      dataSets: { directory: join(home, 'cache'), offline, hub: { url, token } },
    });
  const write: DataSetFixture['write'] = async (path, content) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
    return join(root, path);
  };
  return {
    root,
    tasks: tasksWith({ offline: true }),
    tasksWith,
    write,
    writeRows: (path, rows) => write(path, rows.map((row) => `${JSON.stringify(row)}\n`).join('')),
    [Symbol.asyncDispose]: () => rm(home, { recursive: true, force: true }),
  };
}

/** Packs the task of an address and opens it again, as a rollout does. */
export async function packed(tasks: Tasks, address: string) {
  const task = await tasks.resolve(address);
  return { task, ...(await tasks.open(task)) };
}

export function textIn(tree: FileTree, path: string): string {
  const entry = tree.get(path);
  assert.ok(entry !== undefined, `expected ${path}, got ${[...tree.keys()].join(', ')}`);
  return new TextDecoder().decode(entry.bytes);
}

export const failure = (type: string, message: RegExp) => (error: unknown) =>
  error instanceof TemperFailure && error.type === type && message.test(error.message)
    ? true
    : assert.fail(`expected ${type} ${message}, got ${error}`);

/** A row as SWE-bench publishes it. */
export const sweRow = {
  instance_id: 'pallets__flask-5014',
  repo: 'pallets/flask',
  base_commit: '7ee9ceb71e868944a46e1ff00b506772a53a4f1d',
  problem_statement: 'Require a non-empty name for Blueprints',
  version: '2.3',
  patch: 'diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a\n+b\n',
  test_patch:
    "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/tests/it's new.py b/tests/it's new.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/it's new.py\n@@ -0,0 +1 @@\n+n\n",
  FAIL_TO_PASS: '["tests/test_a.py::test_empty"]',
  PASS_TO_PASS: '["tests/test_a.py::test_other", "tests/test_a.py::test_third"]',
  hints_text: '',
  created_at: '2023-03-04T18:36:21Z',
};
