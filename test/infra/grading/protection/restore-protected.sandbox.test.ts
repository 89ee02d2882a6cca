import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { restoreProtected } from '../../../../infra/grading/protection/restore-protected.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import {
  type Edit,
  edit,
  read,
  type SandboxMaker,
  sandboxMaker,
  treeOf,
  workspaceTask,
} from '../../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

const workdir = '/workspace';
const lines = (numbers: readonly number[]): string => numbers.map((number) => `${number}\n`).join('');
const odd = 'tests/odd \n\\name';
const base = {
  'a.py': 'bug\n',
  'tests/data': '\0\x01binary',
  'tests/deep/er/case': 'case\n',
  'tests/mode': 'mode\n',
  'tests/numbers': lines([1, 2, 3, 4, 5, 6, 7, 8]),
  'tests/removed': 'removed\n',
  [odd]: 'odd\n',
};
const protection = { testsInRepository: false, paths: ['tests/'] };

const write = (path: string, bytes: string): Edit => ({ do: 'write', path, bytes, executable: false });
const run = (command: string): Edit => ({ do: 'run', command });
const mine = write('a.py', 'mine\n');

interface Case {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** Changes that an attempt leaves behind which ends before it is done. */
  readonly interrupted?: readonly Edit[];
  /** Files of the agent that stay. */
  readonly kept?: Readonly<Record<string, string>>;
}

const cases: readonly Case[] = [
  {
    name: 'a change that could be made twice',
    edits: [write('tests/numbers', lines([1, 2, 3, 4, 5, 9, 3, 4, 5, 6, 7, 8]))],
  },
  {
    name: 'changed, removed and added files, their modes and their names',
    edits: [
      write('tests/data', '\0\x02other'),
      { do: 'executable', path: 'tests/mode' },
      { do: 'remove', path: 'tests/removed' },
      write('tests/added/\xff', 'added\n'),
      write(odd, 'mine\n'),
    ],
    interrupted: [{ do: 'remove', path: 'tests/data' }, { do: 'remove', path: 'tests/mode' }, write(odd, '')],
  },
  {
    name: 'a directory that a link replaced',
    edits: [run('mv tests mine && echo 9 >mine/numbers && ln -s mine tests')],
    interrupted: [{ do: 'remove', path: 'tests' }],
    kept: { 'mine/deep/er/case': 'case\n', 'mine/numbers': '9\n' },
  },
  {
    name: 'directories that a link out of the workspace, a pipe and a file replaced',
    edits: [
      run(
        'rm -r tests/deep/er && ln -s /tmp tests/deep/er && rm tests/mode && mkdir -p tests/mode/shut/in && chmod 0 tests/mode/shut',
      ),
      run('mkfifo pipe && rm tests/removed && mv pipe tests/removed'),
    ],
  },
  {
    name: 'files in directories that the agent has closed',
    edits: [
      run(
        'echo 9 >tests/numbers; echo x >tests/deep/x; rm tests/deep/er/case; chmod 0 tests/deep/er tests/deep; chmod 500 tests .',
      ),
    ],
    interrupted: [write('tests/numbers', '')],
  },
];

describe('protected files in the workspace of an agent', () => {
  const { signal } = new AbortController();
  let root: string;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-restored-'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'restored' }), 'restored', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  for (const { name, edits, interrupted = [], kept = {} } of cases) {
    it(`are as the task has them, however often an attempt is repeated: ${name}`, async () => {
      const store = createFileStore(join(root, 'store'));
      const sandbox = await maker.make();
      const task = workspaceTask(treeOf(base));
      const { baseCommit } = await prepareWorkspace(sandbox, task, { workdir, keep: true }, signal);
      const before = await read(sandbox, signal);
      await edit(sandbox, [mine, ...edits], signal);
      const diff = await captureDiff(sandbox, store, { workdir, baseCommit, failedBefore: false }, signal);
      const patch = await store.get(diff.patch.digest);
      for (const changes of [[], interrupted, []]) {
        await edit(sandbox, changes, signal);
        const options = { workdir, patch, protection, applies: true, attempt: 1 };
        const { refusal } = await restoreProtected(sandbox, options, signal);
        assert.equal(refusal, null);
        const found = await read(sandbox, signal);
        const tests = Object.entries(found).filter(([path]) => path.startsWith('tests'));
        assert.deepEqual(Object.fromEntries(tests), withoutPath(before, 'a.py'));
        for (const [path, text] of Object.entries({ 'a.py': 'mine\n', ...kept }))
          assert.equal(found[path]?.[2], text, path);
      }
    });
  }
});

const withoutPath = <Value>(files: Readonly<Record<string, Value>>, left: string): Readonly<Record<string, Value>> =>
  Object.fromEntries(Object.entries(files).filter(([path]) => path !== left));
