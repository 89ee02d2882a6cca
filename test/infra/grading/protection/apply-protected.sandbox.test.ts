import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { applyProtected, protectionInWorkspace } from '../../../../infra/grading/protection/apply-protected.ts';
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
const base = {
  'src/a.py': 'bug\n',
  'tests/test_a.py': 'assert\n',
  'tests/data.json': '{}\n',
  'conftest.py': 'honest\n',
  'setup.cfg': '[metadata]\nname = x\n[tool:pytest]\naddopts = -q\n',
  'package.json': '{"scripts":{"test":"jest","build":"a"}}\n',
  'sub/package.json': '{"scripts":{"test":"jest"},"type":"module"}\n',
  'golden.txt': 'gold\n',
};

type Files = Readonly<Record<string, string>>;

const write = (path: string, bytes: string): Edit => ({ do: 'write', path, bytes, executable: false });

describe('a diff in its evaluation', () => {
  const { signal } = new AbortController();
  let root: string;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-protected-'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'protected' }), 'protected', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  const evaluated = async (edits: readonly Edit[], testsInRepository = true, files: Files = base) => {
    const store = createFileStore(join(root, 'store'));
    const [agent, fresh] = [await maker.make(), await maker.make()];
    const task = workspaceTask(treeOf(files));
    const { baseCommit } = await prepareWorkspace(agent, task, { workdir, keep: true }, signal);
    await prepareWorkspace(fresh, task, { workdir, keep: false }, signal);
    await edit(agent, edits, signal);
    const diff = await captureDiff(agent, store, { workdir, baseCommit, stalledBefore: false }, signal);
    const patch = await store.get(diff.patch.digest);
    const ofTask = { testsInRepository, paths: ['/golden.txt'] };
    const protection = await protectionInWorkspace(fresh, { workdir, patch, protection: ofTask }, signal);
    const { applied, restored } = await applyProtected(fresh, { workdir, patch, protection }, signal);
    const found = Object.entries(await read(fresh, signal)).map(([path, [, , text]]) => [path, text]);
    return { applied, restored, files: Object.fromEntries(found) };
  };

  it('changes the files of an honest solution, but no tests', async () => {
    const result = await evaluated([
      write('src/a.py', 'fixed\n'),
      write('src/new.py', 'new\n'),
      write('tests/test_a.py', 'pass\n'),
      { do: 'remove', path: 'tests/data.json' },
      write('conftest.py', 'evil\n'),
      write('deep/conftest.py', 'evil\n'),
      write('golden.txt', 'dross\n'),
      write('setup.cfg', '[metadata]\nname = y\n[tool:pytest]\naddopts = -p evil\n'),
      write('package.json', '{"scripts":{"test":"true","build":"b"}}\n'),
    ]);
    assert.deepEqual(result, {
      applied: 'exact',
      restored: {
        count: 7,
        paths: ['conftest.py', 'deep/conftest.py', 'golden.txt', 'tests/data.json', 'tests/test_a.py'],
      },
      files: {
        ...base,
        'src/a.py': 'fixed\n',
        'src/new.py': 'new\n',
        'setup.cfg': '[metadata]\nname = y\n[tool:pytest]\naddopts = -q\n',
        'package.json': '{\n  "scripts": {\n    "build": "b",\n    "test": "jest"\n  }\n}\n',
      },
    });
  });

  it('keeps tests that it would replace by a file, a link or a directory', async () => {
    const result = await evaluated([
      write('tests', 'no directory\n'),
      { do: 'link', path: 'conftest.py', target: 'src/a.py' },
      write('setup.cfg/x', 'no file\n'),
      { do: 'link', path: 'package.json', target: 'src/a.py' },
      write(`pyproject.toml`, `[tool.pytest.ini_options]\naddopts = "-p evil"\n${'# long\n'.repeat(200_000)}`),
    ]);
    assert.equal(result.applied, 'exact');
    assert.deepEqual(result.files, base);
  });

  it('leaves out a new settings file that cannot be parsed', async () => {
    const result = await evaluated([write('fixtures/broken/package.json', '{"name":'), write('src/new.py', 'new\n')]);
    assert.deepEqual(result.files, { ...base, 'src/new.py': 'new\n' });
    assert.deepEqual(result.restored, { count: 1, paths: ['fixtures/broken/package.json'] });
  });

  it('keeps a settings file whose directory became a file or a link', async () => {
    for (const replacement of [write('sub', 'a file\n'), { do: 'link', path: 'sub', target: 'src' } as const]) {
      const result = await evaluated([replacement, write('src/a.py', 'fixed\n')]);
      assert.equal(result.applied, 'exact');
      assert.deepEqual(result.files, { ...base, 'src/a.py': 'fixed\n' });
    }
  });

  it("keeps the task's part of a deleted settings file", async () => {
    const { files } = await evaluated([{ do: 'remove', path: 'package.json' }]);
    assert.equal(files['package.json'], '{\n  "scripts": {\n    "test": "jest"\n  }\n}\n');
  });

  it('adds its own tests and their configuration if the hidden tests need neither', async () => {
    const edits = [
      write('conftest.py', 'mine\n'),
      write('tests/test_b.py', 'mine\n'),
      write('package.json', '{"scripts":{"test":"mine"}}'),
    ];
    const { files, restored } = await evaluated([...edits, write('golden.txt', 'dross\n')], false);
    assert.deepEqual(restored, { count: 1, paths: ['golden.txt'] });
    const mine = {
      'conftest.py': 'mine\n',
      'tests/test_b.py': 'mine\n',
      'package.json': '{"scripts":{"test":"mine"}}',
    };
    assert.deepEqual(files, { ...base, ...mine });
  });

  it('changes modules of a repository that is itself a runner, and turns one into a package', async () => {
    const runner = {
      'pytest.py': 'import _pytest\n',
      '_pytest/__init__.py': 'v1\n',
      'pluggy.py': 'one\n',
      'a.py': 'a\n',
    };
    const solution = [
      write('pytest.py', 'fixed\n'),
      write('_pytest/__init__.py', 'v2\n'),
      { do: 'remove', path: 'pluggy.py' } as const,
      write('pluggy/__init__.py', 'one\n'),
      write('unittest.py', 'evil\n'),
      write('pytest.egg-info/entry_points.txt', '[pytest11]\n'),
    ];
    const { files, restored } = await evaluated(solution, true, runner);
    assert.deepEqual(files, {
      'pytest.py': 'fixed\n',
      '_pytest/__init__.py': 'v2\n',
      'pluggy/__init__.py': 'one\n',
      'a.py': 'a\n',
    });
    assert.deepEqual(restored, { count: 2, paths: ['pytest.egg-info/entry_points.txt', 'unittest.py'] });
  });

  it('adds no module with a runner’s name to a repository without one', async () => {
    const edits = ['pytest.py', '_pytest/__init__.py', 'pluggy.py', 'unittest/__init__.py'];
    const other = { 'src/pytest.py': 'a\n', 'unittest/helper.py': 'a\n' };
    const { files } = await evaluated(
      [...edits.map((path) => write(path, 'evil\n')), write('src/pytest.py', 'b\n')],
      true,
      other,
    );
    assert.deepEqual(files, { 'src/pytest.py': 'b\n', 'unittest/helper.py': 'a\n' });
  });
});
