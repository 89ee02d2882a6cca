import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { applyProtected, protectionInWorkspace } from '../../../../infra/grading/protection/apply-protected.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
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

/** The sandbox, which notes the calls that take a command in it. */
function counted(sandbox: Sandbox, calls: string[]): Sandbox {
  return new Proxy(sandbox, {
    get: (target, name: keyof Sandbox) => {
      if (name !== 'exec' && name !== 'readFile' && name !== 'putFiles') return Reflect.get(target, name, target);
      calls.push(name);
      return target[name].bind(target);
    },
  });
}

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

  const evaluated = async (
    edits: readonly Edit[],
    testsInRepository = true,
    files: Files = base,
    as: (sandbox: Sandbox) => Sandbox = (sandbox) => sandbox,
  ) => {
    const store = createFileStore(join(root, 'store'));
    const [agent, fresh] = [await maker.make(), await maker.make()];
    const task = workspaceTask(treeOf(files));
    const { baseCommit } = await prepareWorkspace(agent, task, { workdir, keep: true }, signal);
    await prepareWorkspace(fresh, task, { workdir, keep: false }, signal);
    await edit(agent, edits, signal);
    const diff = await captureDiff(agent, store, { workdir, baseCommit, failedBefore: false }, signal);
    const patch = await store.get(diff.patch.digest);
    const ofTask = { testsInRepository, paths: ['/golden.txt'] };
    const protection = await protectionInWorkspace(fresh, { workdir, patch, protection: ofTask }, signal);
    const { applied, restored, timedOut } = await applyProtected(as(fresh), { workdir, patch, protection }, signal);
    const found = Object.entries(await read(fresh, signal)).map(([path, [, , text]]) => [path, text]);
    return { applied, restored, ...(timedOut && { timedOut }), files: Object.fromEntries(found) };
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

  it('takes as few commands for hundreds of settings files as for one', async () => {
    const all = Array.from({ length: 250 }, (_, index) => index);
    const had = Object.fromEntries(all.map((index) => [`old/${index}/package.json`, '{"scripts":{"test":"jest"}}']));
    const edits = all.flatMap((index) => [
      write(`old/${index}/package.json`, `{"name":"${index}","scripts":{"test":"true"}}`),
      write(`new/${index}/package.json`, '{"jest":'),
    ]);
    const calls: string[] = [];
    const { files, restored } = await evaluated(edits, true, { ...base, ...had }, (sandbox) => counted(sandbox, calls));
    const text = (index: number) => JSON.stringify({ name: `${index}`, scripts: { test: 'jest' } }, null, 2);
    assert.deepEqual(files, {
      ...base,
      ...Object.fromEntries(all.map((index) => [`old/${index}/package.json`, `${text(index)}\n`])),
    });
    assert.equal(restored?.count, 500);
    assert.deepEqual(calls, ['exec', 'exec', 'exec', 'exec', 'putFiles']);
  });

  it('merges a settings file of any name in UTF-8, and restores one of another name', async () => {
    const names = ['-a b', 'ä', 'a\\b', 'a\nb', 'x'];
    const latin1 = (name: string): string => Buffer.from(name).toString('latin1');
    const had = Object.fromEntries(names.map((name) => [`${name}/setup.cfg`, '[tool:pytest]\naddopts = -q\n']));
    const change = '[a]\nb = 1\n[tool:pytest]\naddopts = -p evil\n';
    const edits = [...names.map(latin1), '\xff'].map((name) => write(`${name}/setup.cfg`, change));
    const { files, restored } = await evaluated(edits, true, had);
    const merged = '[a]\nb = 1\n[tool:pytest]\naddopts = -q\n';
    assert.deepEqual(files, Object.fromEntries(names.map((name) => [`${latin1(name)}/setup.cfg`, merged])));
    assert.equal(restored?.count, names.length + 1);
  });

  it('restores all settings files if they are too large together', async () => {
    const large = `# x\n`.repeat(250_000);
    const names = Array.from({ length: 15 }, (_, index) => `${index}/setup.cfg`);
    const had = { ...base, ...Object.fromEntries(names.map((name) => [name, `[a]\n${large}`])) };
    const added = ['x/setup.cfg', 'y/setup.cfg'].map((name) => write(name, large));
    const edits = [...names.map((name) => write(name, `[b]\n${large}`)), write('src/a.py', 'fixed\n'), ...added];
    const { files, applied, restored } = await evaluated(edits, true, had);
    const short = (all: Readonly<Record<string, string | undefined>>) =>
      Object.fromEntries(Object.entries(all).map(([path, text]) => [path, text?.slice(0, 60)]));
    assert.deepEqual([applied, restored?.count], ['exact', 17]);
    assert.deepEqual(short(files), short({ ...had, 'src/a.py': 'fixed\n' }));
  });

  it('counts as late if its settings files cannot be read in time', async () => {
    const late = { exitCode: 137, timedOut: true, truncated: false, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
    const stalled = (sandbox: Sandbox): Sandbox =>
      new Proxy(sandbox, {
        get: (target, name: keyof Sandbox) =>
          name === 'exec'
            ? (...[request, ending]: Parameters<Sandbox['exec']>) =>
                request.argv.includes('settings') ? late : target.exec(request, ending)
            : Reflect.get(target, name, target),
      });
    const { applied, timedOut } = await evaluated([write('package.json', '{}')], true, base, stalled);
    assert.deepEqual([applied, timedOut], [null, true]);
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
