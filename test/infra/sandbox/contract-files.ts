import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { FileTree } from '../../../infra/sandbox/files.ts';
import { type Bench, foreground, sh } from './contract.ts';

const tree = (files: Readonly<Record<string, string>>, mode = 0o644): FileTree =>
  new Map(Object.entries(files).map(([path, text]) => [path, { mode, bytes: Buffer.from(text) }]));

export function filesContract({ provider, signal, make }: Bench): void {
  it('writes trees with modes and owners, and reads files back', async () => {
    const sandbox = await make('files');
    await sandbox.putFiles(
      { tree: tree({ 'run.sh': '#!/bin/sh\necho ran; touch made\n' }, 0o755), at: '/workspace', owner: 'agent' },
      signal,
    );
    await sandbox.putFiles({ tree: tree({ 'deep/er/data.txt': 'data' }), at: '/workspace', owner: 'agent' }, signal);
    const ran = await sandbox.exec(
      { ...foreground, argv: sh('./run.sh; echo more >>deep/er/data.txt; mkdir deep/new') },
      signal,
    );
    assert.equal(String(ran.stdout) + String(ran.stderr), 'ran\n');
    assert.equal(String(await sandbox.readFile('/workspace/deep/er/data.txt', 100, signal)), 'datamore\n');
  });

  it('replaces files, even if a tree has a directory of the same name elsewhere', async () => {
    const sandbox = await make('replaced');
    await sandbox.putFiles({ tree: tree({ a: 'first' }), at: '/workspace', owner: 'agent' }, signal);
    await sandbox.putFiles({ tree: tree({ a: 'second' }), at: '/workspace', owner: 'agent' }, signal);
    assert.equal(String(await sandbox.readFile('/workspace/a', 100, signal)), 'second');
  });

  it('creates top-level directories for the agent and for the grader', async () => {
    const sandbox = await make('top');
    await sandbox.putFiles(
      { tree: tree({ 'solve.sh': 'echo solved >/workspace/out' }), at: '/solution', owner: 'agent' },
      signal,
    );
    const solved = await sandbox.exec({ ...foreground, argv: ['sh', '/solution/solve.sh'] }, signal);
    assert.equal(solved.exitCode, 0, String(solved.stderr));
    assert.equal(String(await sandbox.readFile('/workspace/out', 100, signal)), 'solved\n');
  });

  it('gives the grader /tests and /logs/verifier, and the agent neither', async () => {
    const sandbox = await make('graded');
    await sandbox.putFiles(
      { tree: tree({ 'test.sh': 'echo 1 >/logs/verifier/reward.txt' }), at: '/tests', owner: 'grader' },
      signal,
    );
    const peek = await sandbox.exec(
      { ...foreground, argv: sh('ls /tests; cat /tests/test.sh; ls /logs/verifier') },
      signal,
    );
    assert.equal(String(peek.stdout), '');
    const forge = await sandbox.exec(
      { ...foreground, argv: sh('echo 1 >/logs/verifier/reward.txt; echo x >/tests/y') },
      signal,
    );
    assert.notEqual(forge.exitCode, 0);
    const graded = await sandbox.exec({ ...foreground, account: 'grader', argv: ['sh', '/tests/test.sh'] }, signal);
    assert.equal(graded.exitCode, 0, String(graded.stderr));
    assert.equal(String(await sandbox.readFile('/logs/verifier/reward.txt', 100, signal)), '1\n');
  });

  it('gives both accounts a user that git and node can look up', async () => {
    const sandbox = await make('accounts');
    for (const account of ['agent', 'grader'] as const) {
      const who = await sandbox.exec(
        { ...foreground, account, argv: sh('cd "$HOME" && whoami && touch here && pwd') },
        signal,
      );
      assert.equal(who.exitCode, 0, String(who.stderr));
    }
    const git = await sandbox.exec(
      { ...foreground, argv: sh('git init -q && git status --short && git log; true') },
      signal,
    );
    assert.doesNotMatch(String(git.stderr), /dubious|whoami/);
  });

  it('rejects reading a path that is missing, too large, not a file, or behind a symlink', async () => {
    const sandbox = await make('refused');
    await sandbox.putFiles({ tree: tree({ secret: 'tests' }), at: '/tests', owner: 'grader' }, signal);
    const made = sh(
      'ln -s /tests/secret link; ln -s /tests dirlink; ln -s /etc/passwd out; mkfifo fifo; mkdir dir; head -c 5000 /dev/zero >big',
    );
    assert.equal((await sandbox.exec({ ...foreground, argv: made }, signal)).exitCode, 0);
    const cases = {
      absent: 'missing',
      big: 'too-large',
      fifo: 'not-a-file',
      dir: 'not-a-file',
      link: 'outside',
      'dirlink/secret': 'outside',
      out: 'outside',
    };
    for (const [name, reason] of Object.entries(cases)) {
      await assert.rejects(
        sandbox.readFile(`/workspace/${name}`, 1_000, signal),
        { name: 'FileRefused', reason },
        name,
      );
    }
    await assert.rejects(sandbox.readFile('/workspace/../tests/secret', 1_000, signal), { reason: 'outside' });
    await assert.rejects(sandbox.readFile('workspace/x', 1_000, signal), { reason: 'outside' });
  });

  it('reads files that the agent has made private', async () => {
    const sandbox = await make('closed');
    await sandbox.exec({ ...foreground, argv: sh('mkdir -m 700 d && (umask 077; echo x >d/f)') }, signal);
    assert.equal(String(await sandbox.readFile('/workspace/d/f', 100, signal)), 'x\n');
  });

  it('writes only below the named directory, whatever symlinks the agent has planted', async () => {
    const sandbox = await make('planted');
    await sandbox.putFiles({ tree: tree({ target: 'untouched' }), at: '/tests', owner: 'grader' }, signal);
    await sandbox.exec(
      { ...foreground, argv: sh('ln -s /tests/target file; ln -s /tests dir; ln -s /tmp out') },
      signal,
    );
    const put = (path: string) =>
      sandbox.putFiles({ tree: tree({ [path]: 'overwritten' }), at: '/workspace', owner: 'agent' }, signal);
    for (const path of ['file', 'dir/target', 'out/escaped'])
      await put(path).catch((error: Error) => assert.equal(error.name, 'FileRefused'));
    assert.equal(String(await sandbox.readFile('/tests/target', 100, signal)), 'untouched');
    await assert.rejects(sandbox.readFile('/tmp/escaped', 100, signal), { reason: 'missing' });
    for (const path of ['../x', '/etc/x', 'a/../../x'])
      await assert.rejects(put(path), { name: 'FileRefused', reason: 'outside' });
  });

  it("hides one sandbox's files from another", async () => {
    const [mine, other] = [await make('mine'), await make('other')];
    await mine.putFiles({ tree: tree({ 'note-of-mine': 'x' }), at: '/tmp', owner: 'agent' }, signal);
    const look = await other.exec(
      { ...foreground, argv: sh('find / -name "note-of-*" -not -path "/proc/*" 2>/dev/null; ls /tmp') },
      signal,
    );
    assert.equal(String(look.stdout), '');
    await provider.remove(mine.name);
  });

  it('has the files of its spec as soon as it exists, with their owners', async () => {
    const sandbox = await make('with-files', {
      files: [
        { tree: tree({ 'deep/own': 'one' }), at: '/workspace', owner: 'agent' },
        { tree: tree({}), at: '/empty/made', owner: 'agent' },
        { tree: tree({ hidden: 'two' }), at: '/tests', owner: 'grader' },
      ],
    });
    const argv = sh('cat deep/own && echo more >>deep/own && touch /empty/made/new && cat /tests/hidden 2>/dev/null');
    const asAgent = await sandbox.exec({ ...foreground, argv }, signal);
    assert.equal(String(asAgent.stdout), 'one', String(asAgent.stderr));
    assert.equal(String(await sandbox.readFile('/tests/hidden', 100, signal)), 'two');
    assert.equal(String(await sandbox.readFile('/workspace/deep/own', 100, signal)), 'onemore\n');
  });

  it('measures its disk use', async () => {
    const sandbox = await make('measured');
    const before = await sandbox.diskUsage();
    await sandbox.exec({ ...foreground, argv: sh('head -c 8000000 /dev/zero >filler') }, signal);
    const used = (await sandbox.diskUsage()).usedMb - before.usedMb;
    assert.ok(used > 7 && used < 10, `got ${used}`);
    assert.equal(before.limitMb, 64);
  });
}
