import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { read, type SandboxMaker, sandboxMaker, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

/** A repository with the answer in every place where git keeps something outside HEAD's history. */
const full = `
set -e
git config --global protocol.file.allow always
say() { echo "$1" >"\${2:-a}"; git add -A; git commit -qm "$1"; }
git init -q -b main /tmp/library && ( cd /tmp/library && say past && say present && say ANSWER-in-submodule && git reset -q --hard HEAD~1 )
git init -q -b main . && say past && say present
git submodule --quiet add /tmp/library library && ( cd library && git fetch -q origin main && git tag later FETCH_HEAD ) && git commit -qm 'with a library'
git clone -q -s . /tmp/lender && ( cd /tmp/lender && say ANSWER-borrowed )
echo /tmp/lender/.git/objects >>.git/objects/info/alternates
git checkout -qb future && say ANSWER-future && git tag -a -m ANSWER-tag v2 && git notes add -m ANSWER-note
git checkout -q main && git branch packed future && git pack-refs --all && git branch loose future
git update-ref refs/pull/1/head future && git update-ref refs/remotes/origin/main future && git replace main~1 future
echo ANSWER-stash >a && git stash -q && git worktree add -q /tmp/tree future && echo ANSWER-work-tree >/tmp/tree/a && git -C /tmp/tree add a
for name in FETCH_HEAD ORIG_HEAD MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD AUTO_MERGE; do git rev-parse future >.git/$name; done
mkdir .git/rebase-merge && echo ANSWER-rebase >.git/rebase-merge/patch
echo ANSWER-dangling | git hash-object -w --stdin
echo ANSWER-staged >b && git add b && rm b
git config remote.origin.url https://user:ANSWER@example.com/x && git config branch.main.description ANSWER && git config core.hooksPath /tmp
echo '# ANSWER' >.git/description && git remote add fork https://example.com/ANSWER
`;

/** Prints every object and file of the workspace's repositories that still reveals the answer. */
const search = `
for git in .git library/.git; do
  git --git-dir=$git cat-file --batch-all-objects --batch --buffer 2>/dev/null
  git --git-dir=$git for-each-ref; git --git-dir=$git reflog --all; git --git-dir=$git config --list
done | grep -a ANSWER
grep -ra ANSWER .git library/.git; find . -name .git -type f; find . -path '*alternates*' -type f; find . -name modules -path '*.git/*'; find . -name worktrees
true
`;

describe("the agent's repository", () => {
  const { signal } = new AbortController();
  let root: string;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-history-'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'history' }), 'history', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  const said = async (sandbox: Sandbox, script: string): Promise<string> => {
    const argv = ['bash', '-c', script] as const;
    const limits = { timeoutMs: 60_000, maxOutputBytes: 2 ** 20, env: {} };
    const { stdout, stderr } = await sandbox.exec({ ...limits, account: 'agent', argv: [...argv] }, signal);
    return `${stdout}${stderr}`;
  };
  const prepared = async (setup: readonly string[]) => {
    const sandbox = await maker.make();
    const task = workspaceTask(new Map(), setup);
    const { baseCommit } = await prepareWorkspace(sandbox, task, { workdir: '/workspace', keep: true }, signal);
    return { sandbox, task, baseCommit };
  };

  it('contains nothing outside the history of its commit, and works', async () => {
    const { sandbox, task, baseCommit } = await prepared([full]);
    assert.equal(await said(sandbox, search), '');
    assert.equal(
      await said(sandbox, 'git status --short; git -C library status --short; git fsck --full 2>&1 | grep -v dangling'),
      '',
    );
    assert.equal(
      await said(sandbox, 'git log --format=%s; git -C library log --format=%s'),
      'with a library\npresent\npast\npresent\npast\n',
    );
    assert.equal(
      await said(sandbox, 'git rev-parse HEAD; git symbolic-ref HEAD; git branch --all | wc -l'),
      `${baseCommit}\nrefs/heads/main\n1\n`,
    );
    const again = await prepareWorkspace(
      sandbox,
      { ...task, setup: [] },
      { workdir: '/workspace', keep: true },
      signal,
    );
    assert.equal(again.baseCommit, baseCommit);
    assert.deepEqual(Object.keys(await read(sandbox, signal)).sort(), ['.gitmodules', 'a', 'library/a']);
  });

  it('may be a shallow clone, a partial clone or a worktree of another repository', async () => {
    const origin =
      'set -e; git init -q -b main /tmp/o; cd /tmp/o; git config uploadpack.allowFilter true; for n in 1 2 3; do echo $n >f$n; git add -A; git commit -qm $n; done; git checkout -q HEAD~1';
    const clones = {
      shallow: 'git clone -q --depth 1 file:///tmp/o .',
      partial: 'git clone -q --filter=blob:none file:///tmp/o .',
      'work tree': 'git -C /tmp/o worktree add -q --detach /workspace HEAD && git checkout -q',
    };
    for (const [kind, clone] of Object.entries(clones)) {
      const { sandbox } = await prepared([origin, clone]);
      await said(sandbox, 'rm -rf /tmp/o');
      assert.equal(await said(sandbox, 'git status --short; ls; test -d .git'), 'f1\nf2\n', kind);
      assert.match(await said(sandbox, 'git log --format=%s'), /^2\n/, kind);
    }
  });

  it('may have uncommitted work, and settings that prevent a commit', async () => {
    const odd = `git init -q . && printf 'a\\r\\n' >crlf.txt && echo '*.txt text filter=lfs' >.gitattributes && git config core.safecrlf true &&
      git config filter.lfs.clean false && git config filter.lfs.required true && git config commit.gpgsign true && git config core.excludesFile /workspace/crlf.txt &&
      printf '#!/bin/sh\\nexit 1\\n' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`;
    const { sandbox } = await prepared([odd]);
    assert.equal(
      await said(sandbox, 'git ls-files; git log --format=%s'),
      '.gitattributes\ncrlf.txt\nStart of the task\n',
    );
  });

  /** Repositories inside that git does not list, or lists by a quoted name, with the answer in a later commit. */
  const hidden = `
set -e
say() { echo "$1" >f; git add -A; git commit -qm "$1"; }
inside() { mkdir -p "$1" && ( cd "$1" && git init -q . && say past && say ANSWER && git reset -q --hard HEAD~1 ); }
git init -q . && echo /vendor/ >.gitignore && git add -A && git commit -qm base
inside données; inside vendor/lib; inside 'a:b/new
line'; inside broken && rm broken/.git/HEAD; inside /tmp/other && mkdir linked && ln -s /tmp/other/.git linked/.git
`;
  const hiddenNames = ['données', 'vendor/lib', 'a:b/new\nline', 'linked'];

  it('has no later history of repositories inside, whatever their names and whether or not they are ignored', async () => {
    const { sandbox } = await prepared([hidden]);
    const reveals = `find . -name .git -prune -exec sh -c 'for one; do git --git-dir="$one" cat-file --batch-all-objects --batch; done; grep -ra ANSWER "$@"' sh {} + | grep -a ANSWER; true`;
    assert.equal(await said(sandbox, reveals), '');
    for (const name of hiddenNames)
      assert.equal(await said(sandbox, `cd '${name}' && git log --format=%s`), 'past\n', name);
    assert.equal(await said(sandbox, 'ls -A broken'), 'f\n');
  });

  it('may have repositories without a commit inside, and files that do not have their encoding', async () => {
    const odd =
      'git init -q . && git init -q sub && echo x >sub/f && echo "*.u16 working-tree-encoding=UTF-16" >.gitattributes && printf "\\377\\376\\000" >bad.u16 && echo x >good';
    const { sandbox } = await prepared([odd]);
    assert.equal(
      await said(sandbox, 'git ls-files; cat .git/info/attributes; true'),
      '.gitattributes\nbad.u16\ngood\ncat: .git/info/attributes: No such file or directory\n',
    );
    assert.equal(await said(sandbox, 'git -C sub status --short'), '?? f\n');
  });

  it('keeps a directory that ignores itself out of every diff', async () => {
    const { sandbox, baseCommit } = await prepared([
      'mkdir -p .venv/lib && echo "*" >.venv/.gitignore && echo x >.venv/lib/x && echo a >a',
    ]);
    await said(sandbox, 'echo y >.venv/lib/y; echo z >.venv/lib/x');
    const store = createFileStore(join(root, 'blobs'));
    const options = { workdir: '/workspace', baseCommit, failedBefore: false };
    assert.equal((await captureDiff(sandbox, store, options, signal)).files, 0);
  });
});
