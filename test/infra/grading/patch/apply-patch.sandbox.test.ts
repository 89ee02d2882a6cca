import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { applyPatch } from '../../../../infra/grading/patch/apply-patch.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { read, type SandboxMaker, sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

const lines = 'one\ntwo\nthree\nfour\nfive\nsix\nseven\n';
const files = { a: lines, b: lines, '.gitignore': '*.orig\n*.rej\n' };
/** The id of the blob `lines`. */
const blob = '2019eda923040a79f52fe4bf49e0a106f4f658ae';

const part = (name: string, hunk: string, index = ''): string =>
  `diff --git a/${name} b/${name}\n${index}--- a/${name}\n+++ b/${name}\n${hunk}`;
const good = '@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n';
const wrongContext = '@@ -1,3 +1,3 @@\n nowhere\n-two\n+TWO\n else\n';
const wrong = '@@ -1,3 +1,3 @@\n one\n-absent\n+TWO\n three\n';

describe('a third-party patch', () => {
  const { signal } = new AbortController();
  let root: string;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-apply-'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'apply' }), 'apply', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  const fresh = async (): Promise<Sandbox> => {
    const sandbox = await maker.make();
    await prepareWorkspace(sandbox, workspaceTask(treeOf(files)), { workdir: '/workspace', keep: false }, signal);
    return sandbox;
  };
  const apply = async (patch: string) => {
    const sandbox = await fresh();
    const { applied, refusal } = await applyPatch(sandbox, '/workspace', Buffer.from(patch), signal);
    const now = await read(sandbox, signal);
    const git = await sandbox.exec(
      {
        account: 'agent',
        argv: ['git', 'diff', '--cached', '--stat'],
        env: {},
        timeoutMs: 120_000,
        maxOutputBytes: 1000,
      },
      signal,
    );
    assert.equal(String(git.stdout), '', 'nothing is left in the index');
    return { applied, refusal, a: now.a?.[2], names: Object.keys(now).sort() };
  };
  const names = ['.gitignore', 'a', 'b'];
  const changed = lines.replace('two', 'TWO');

  it('applies exactly where it fits', async () => {
    assert.deepEqual(await apply(part('a', good)), { applied: 'exact', refusal: '', a: changed, names });
  });

  it('applies to names whose end only quotes can tell', async () => {
    const added = 'diff --git a/one /b b/one /b\nnew file mode 100644\nindex 0000000..e69de29\n';
    const { applied, refusal, names: now } = await apply(added);
    assert.deepEqual([applied, refusal, now], ['exact', '', [...names, 'one /b']]);
  });

  it('applies near its position if its context differs and the sandbox has `patch`, and reports that', async () => {
    const result = await apply(part('a', wrongContext));
    const has = existsSync('/usr/bin/patch');
    assert.deepEqual([result.applied, result.a, result.names], has ? ['fuzzy', changed, names] : [null, lines, names]);
    assert.match(result.refusal, has ? /patch does not apply/ : /patch does not apply.*the sandbox has no `patch`/s);
  });

  it('is merged if the repository has the blob that it was made from', async () => {
    const setup = [
      'git init -q . && git add a && git commit -qm earlier',
      `sed -i 's/five/FIVE/; 1,2d' a && printf '%s\\n' inserted ONE >head && cat head a >b && mv b a && rm head`,
    ];
    const sandbox = await maker.make();
    const task = workspaceTask(treeOf({ a: lines }), setup);
    await prepareWorkspace(sandbox, task, { workdir: '/workspace', keep: false }, signal);
    const patch = part(
      'a',
      '@@ -5,3 +5,3 @@ four\n five\n six\n-seven\n+SEVEN\n',
      `index ${blob}..${'1'.repeat(40)} 100644\n`,
    );
    const { applied } = await applyPatch(sandbox, '/workspace', Buffer.from(patch), signal);
    const merged = (await read(sandbox, signal)).a?.[2];
    assert.deepEqual([applied, merged], ['three-way', 'inserted\nONE\nthree\nfour\nFIVE\nsix\nSEVEN\n']);
  });

  it('leaves nothing behind if it applies in part only, and names the reason', async () => {
    const result = await apply(
      part('a', good) + part('b', wrong) + part('c', '@@ -0,0 +1 @@\n+new\n').replace('a/c\n+++', '/dev/null\n+++'),
    );
    assert.deepEqual([result.applied, result.a, result.names], [null, lines, names]);
    assert.match(result.refusal, /b/);
  });
});
