import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { captureDiff } from '../../../../infra/grading/capture/capture-diff.ts';
import { keepBase } from '../../../../infra/grading/workspace/kept-base.ts';
import { prepareWorkspace } from '../../../../infra/grading/workspace/prepare-workspace.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import { type SandboxMaker, sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

const base = { '.gitignore': 'node_modules/\n__pycache__/\n', a: 'one\n' };

interface Case {
  readonly name: string;
  readonly script: string;
  /** Names in the patch, in order. */
  readonly names?: readonly string[];
  readonly dropped?: number;
  readonly tooLarge?: true;
  /** Set if the diff is flagged as not all that the agent left: whether programs can reach the rest by its path. */
  readonly unread?: 'reachable' | 'beyond reach';
}

/** Denies the grader all rights on a file. */
const denyRoot = `python3 -c 'import os, struct, sys
entry = lambda tag, rights, who=0xffffffff: struct.pack("<HHI", tag, rights, who)
os.setxattr(sys.argv[1], "system.posix_acl_access", struct.pack("<I", 2) + entry(1, 6) + entry(2, 0, int(os.environ["GRADER"])) + entry(4, 4) + entry(16, 7) + entry(32, 4))'`;

const cases: readonly Case[] = [
  { name: 'nothing for an unchanged workspace', script: 'true', names: [] },
  {
    name: 'no file that the base ignores, although the agent changed the rules',
    script:
      'mkdir node_modules __pycache__; touch node_modules/x __pycache__/y z; echo > .gitignore; mkdir -p .git/info; echo "z" > .git/info/exclude',
    names: ['.gitignore', 'z'],
  },
  {
    name: 'files that the agent tells git to ignore',
    script: 'echo "*" > .gitignore; echo new > new; git config --global core.excludesFile /workspace/.gitignore',
    names: ['.gitignore', 'new'],
  },
  {
    name: 'nested repositories, with commits and without',
    script:
      'git init -q in; echo 1 > in/1; git init -q in/deeper; echo 2 > in/deeper/2; cd in; git add 1; git -c user.name=a -c user.email=a@b commit -qm 1; cd ..; git add -A',
    names: ['in/1', 'in/deeper/2'],
  },
  {
    name: 'the removal of a file that a pipe replaced',
    script: 'rm a; mkfifo a',
    names: ['a'],
  },
  {
    name: 'the removal of a file that an empty directory replaced',
    script: 'rm a; mkdir a',
    names: ['a'],
  },
  {
    name: 'the removal of a file that a pipe replaced, beside new files',
    script: 'rm a; mkfifo a; echo 1 > new',
    names: ['a', 'new'],
  },
  {
    name: "no names of git's own, no pipes, and no links that lead out",
    script: 'mkdir .GIT; echo x > .GIT/config; mkfifo pipe; ln -s /etc/passwd out; ln -s a in',
    names: ['in'],
    dropped: 2,
  },
  {
    name: 'files and directories that the agent made unreadable',
    script: 'mkdir shut; echo 1 > shut/1; echo 2 > shut/2; chmod 0 shut/1; chmod 0 shut; chmod 0 a; chmod 700 .',
    names: ['shut/1', 'shut/2'],
  },
  {
    name: 'all but a path that is longer than the longest one',
    script:
      'echo 2 >a; l=$(printf "%0200d" 0); (for n in $(seq 22); do mkdir $l && cd $l; done; echo 1 >in); echo 1 >new',
    names: ['a', 'new'],
    dropped: 1,
    unread: 'beyond reach',
  },
  {
    name: 'all but files whose list of rights denies the grader',
    script: `mkdir d; echo 2 >a; for n in 1 2 3 4; do echo $n >d/$n; done; ${denyRoot} a; ${denyRoot} d/3`,
    names: ['d/1', 'd/2', 'd/4'],
    dropped: 2,
    unread: 'reachable',
  },
  { name: '20,001 new files', script: 'mkdir m; cd m; seq 20001 | xargs touch', tooLarge: true },
  {
    name: 'a change beside 20,001 files that the base ignores',
    script: 'mkdir node_modules; cd node_modules; seq 20001 | xargs touch; echo 2 > ../a',
    names: ['a'],
  },
  { name: 'a file of 140 MB', script: 'head -c 140000000 /dev/zero > zeros', tooLarge: true },
  {
    name: 'an incompressible file of 20 MB',
    script: 'head -c 20000000 /dev/urandom > noise',
    tooLarge: true,
  },
  { name: '600 repositories', script: 'git init -q one; for n in $(seq 600); do cp -r one r$n; done', tooLarge: true },
];

describe('a captured diff', { concurrency: 2 }, () => {
  const { signal } = new AbortController();
  let root: string;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-capture-'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'capture' }), 'capture', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  for (const { name, script, names = [], dropped = 0, tooLarge = false, unread } of cases) {
    it(`${tooLarge ? 'is too large for' : 'contains'} ${name}`, async () => {
      const store = createFileStore(join(root, 'store'));
      const sandbox = await maker.make();
      const workdir = '/workspace';
      const { baseCommit } = await prepareWorkspace(
        sandbox,
        workspaceTask(treeOf(base)),
        { workdir, keep: true },
        signal,
      );
      const argv = ['bash', '-c', script] as const;
      const limits = { timeoutMs: 120_000, maxOutputBytes: 1000 };
      const id = await sandbox.exec({ ...limits, account: 'grader', env: {}, argv: ['id', '-u'] }, signal);
      const env = { GRADER: String(id.stdout).trim() };
      const done = await sandbox.exec({ ...limits, account: 'agent', env, argv: [...argv] }, signal);
      assert.equal(done.exitCode, 0, String(done.stderr));
      const diff = await captureDiff(sandbox, store, { workdir, baseCommit, failedBefore: false }, signal);
      const patch = String(await store.get(diff.patch.digest));
      const found = [...patch.matchAll(/^diff --git a\/(.*) b\//gm)].map(([, path]) => path);
      assert.deepEqual([found, diff.files, diff.dropped, diff.tooLarge], [names, names.length, dropped, tooLarge]);
      const flagged = diff.flags?.some(({ trick }) => trick === 'unreadable') ?? false;
      assert.deepEqual([diff.unread ?? false, flagged], [unread === 'reachable', unread !== undefined]);
    });
  }

  it('changes no mode but that of files which it could not read, and keeps those unwritable', async () => {
    const sandbox = await maker.make();
    const workdir = '/workspace';
    const task = workspaceTask(treeOf(base));
    const { baseCommit } = await prepareWorkspace(sandbox, task, { workdir, keep: true }, signal);
    const run = async (script: string): Promise<string> => {
      const limits = { timeoutMs: 60_000, maxOutputBytes: 1000, env: {} };
      const done = await sandbox.exec({ ...limits, account: 'agent', argv: ['bash', '-c', script] }, signal);
      assert.equal(done.exitCode, 0, String(done.stderr));
      return String(done.stdout);
    };
    await run('echo 1 >shut; chmod 0 shut; echo 2 >sealed; chmod 444 sealed; mkdir -m 555 closed; chmod 755 a');
    await captureDiff(
      sandbox,
      createFileStore(join(root, 'store')),
      { workdir, baseCommit, failedBefore: false },
      signal,
    );
    assert.equal(await run('stat -c "%a %n" shut sealed closed a'), '444 shut\n444 sealed\n555 closed\n755 a\n');
  });

  it('contains an edit of the same length in the second in which its file was written', async () => {
    const store = createFileStore(join(root, 'store'));
    const workdir = '/workspace';
    // Git compares times by the second, so capture in a later one.
    const script =
      'was=$(stat -c %Z a) && printf "two\\n" >a && [ $was = $(stat -c %Z a) ] && while [ $was = $(date +%s) ]; do sleep 0.05; done';
    const limits = { account: 'agent', env: {}, timeoutMs: 60_000, maxOutputBytes: 1000 } as const;
    const sandbox = await maker.make();
    const task = workspaceTask(treeOf(base));
    const { baseCommit } = await prepareWorkspace(sandbox, task, { workdir, keep: false }, signal);
    const run = async (text: string) => (await sandbox.exec({ ...limits, argv: ['sh', '-c', text] }, signal)).exitCode;
    for (let attempt = 1; ; attempt += 1) {
      assert.ok(attempt <= 50, 'expected a second in which a file is written, kept and changed');
      // The beginning of a second leaves a busy machine the most time.
      await delay(1_000 - (Date.now() % 1_000));
      assert.equal(await run('printf "one\\n" >a'), 0);
      await keepBase(sandbox, workdir, signal);
      if ((await run(script)) !== 0) continue;
      const diff = await captureDiff(sandbox, store, { workdir, baseCommit, failedBefore: false }, signal);
      assert.match(String(await store.get(diff.patch.digest)), /^-one\n\+two$/m);
      return;
    }
  });
});
