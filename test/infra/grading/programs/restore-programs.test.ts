import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { type BasePrograms, parseBase, readBase } from '../../../../infra/grading/programs/base-programs.ts';
import { type RestoredPrograms, restorePrograms } from '../../../../infra/grading/programs/restore-programs.ts';
import { startVariables } from '../../../../infra/sandbox/image-environment.ts';
import type { Sandbox } from '../../../../infra/sandbox/sandbox.ts';
import { workspaceTask } from '../../../helpers/sandbox/workspaces.ts';

const task = workspaceTask(new Map());
/** The agent's account: another one than root's, which may read everything. */
const agent = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const never = new AbortController().signal;

/** Runs commands on this machine, as the agent. */
const exec: Sandbox['exec'] = async ({ argv: [program, ...args], cwd, env, stdin, entersImage, maxOutputBytes }) => {
  const variables = startVariables(env, { entersImage }, 'export PATH=/usr/bin:/bin');
  const options = { ...agent, cwd, env: { PATH: '/usr/bin:/bin', ...variables }, maxBuffer: maxOutputBytes };
  const { status, stdout, stderr } = spawnSync(program, args, { ...options, ...(stdin && { input: stdin }) });
  return { exitCode: status ?? 137, stdout, stderr, timedOut: false, truncated: false };
};

describe("programs in directories of the agent's", () => {
  let workdir: string;
  let bin: string;
  beforeEach(async () => {
    workdir = await mkdtemp(join(tmpdir(), 'temper-programs-'));
    bin = join(workdir, 'home', 'bin');
    await mkdir(bin, { recursive: true });
    for (const path of [workdir, join(workdir, 'home'), bin]) await give(path, 0o755);
  });
  afterEach(() => rm(workdir, { recursive: true }));

  const give = async (path: string, mode: number): Promise<void> => {
    await chmod(path, mode);
    if (agent.uid !== undefined) await chown(path, agent.uid, agent.gid);
  };
  const plant = async (path: string): Promise<void> => {
    await writeFile(path, '#!/bin/sh\nexit 0\n');
    await give(path, 0o755);
  };
  const read = async (path = `${bin}:/usr/bin:/bin`): Promise<BasePrograms | null> =>
    parseBase(await readBase({ exec }, { task, workdir, path }, never));
  const restore = (base: BasePrograms | null, sandbox: Pick<Sandbox, 'exec'> = { exec }): Promise<RestoredPrograms> =>
    restorePrograms(sandbox, { base, task, attempt: 3 }, never);

  it('are removed from directories that the agent has closed, at whatever depth', async () => {
    const home = join(workdir, 'home');
    for (const [closed, mode] of [
      [bin, 0o111],
      [bin, 0o055],
      [home, 0o011],
    ] as const) {
      const base = await read();
      await plant(join(bin, 'grep'));
      await chmod(closed, mode);
      const { refusal, flags } = await restore(base);
      assert.equal(refusal, null);
      assert.match(flags[0]?.evidence ?? '', /grep was added, and was removed/);
      assert.deepEqual(await readdir(bin), []);
      assert.notEqual((await stat(closed)).mode & 0o500, 0);
    }
  });

  it('are put back in virtual environments that no PATH names, hidden ones too', async () => {
    for (const place of ['.venv', 'env', '.tox/py311', '.nox/.a', 'sub/.venv', 'sub/env']) {
      const venv = join(workdir, place);
      await mkdir(join(venv, 'bin'), { recursive: true });
      await writeFile(join(venv, 'pyvenv.cfg'), 'home = /usr/bin\n');
      await writeFile(join(venv, 'bin', 'judge'), '#!/bin/sh\nexit 1\n');
      for (const path of [
        join(workdir, place.split('/')[0] ?? ''),
        venv,
        join(venv, 'bin'),
        join(venv, 'bin', 'judge'),
      ])
        await give(path, 0o755);
      const base = await read('/usr/bin:/bin');
      await plant(join(venv, 'bin', 'judge'));
      const { flags } = await restore(base);
      assert.match(flags[0]?.evidence ?? '', /judge was changed, and was restored/, place);
      assert.equal(await readFile(join(venv, 'bin', 'judge'), 'utf8'), '#!/bin/sh\nexit 1\n', place);
    }
  });

  it('are refused and flagged where the agent itself cannot list them', { skip: agent.uid === undefined }, async () => {
    const base = await read();
    const elsewhere = join(workdir, 'elsewhere');
    await mkdir(join(elsewhere, 'bin'), { recursive: true });
    await rm(bin, { recursive: true });
    await symlink(join(elsewhere, 'bin'), bin);
    for (const closed of [join(elsewhere, 'bin'), elsewhere]) {
      await chmod(closed, closed === elsewhere ? 0o700 : 0o711);
      const { refusal, flags } = await restore(base);
      assert.match(refusal ?? '', /cannot be read/);
      assert.deepEqual(
        flags.map(({ trick }) => trick),
        ['program-shadow'],
      );
    }
  });

  it('are put back behind links of directories that it cannot write', {
    skip: agent.uid === undefined,
  }, async (context) => {
    const system = await mkdtemp('/opt/temper-links-');
    context.after(() => rm(system, { recursive: true }));
    await chmod(system, 0o755);
    assert.equal(await read('/usr/bin:/bin'), null);
    const venv = join(workdir, '.venv', 'bin');
    const settings = join(workdir, '.venv', 'pyvenv.cfg');
    await mkdir(venv, { recursive: true });
    await plant(settings);
    await plant(join(workdir, 'main'));
    await plant(join(workdir, 'grep'));
    for (const [at, target] of [
      [join(venv, 'python3'), '/bin/true'],
      [join(system, 'python3'), join(venv, 'python3')],
      [join(system, 'python'), 'python3'],
      [join(system, 'search'), join(workdir, 'grep')],
      [join(system, 'main'), join(workdir, 'main')],
      [join(system, 'other'), '/bin/true'],
    ] as const)
      await symlink(target, at);
    for (const path of [join(workdir, '.venv'), venv]) await give(path, 0o755);
    // The virtual environment counts as if it had been entered.
    const ofVenv = await read('/usr/bin:/bin');
    assert.deepEqual([ofVenv?.directories[0]?.path, ofVenv?.beyond], [venv, [settings]]);
    const base = await read(`${system}:/usr/bin:/bin`);
    assert.deepEqual(base?.beyond.toSorted(), [settings, join(venv, 'python3'), join(workdir, 'grep')].toSorted());
    assert.deepEqual((await restore(base)).flags, []);
    await rm(join(venv, 'python3'));
    await plant(join(venv, 'python3'));
    await writeFile(join(workdir, 'grep'), '#!/bin/sh\nexit 1\n');
    await writeFile(join(workdir, 'main'), '#!/bin/sh\necho repaired\n');
    const { refusal, flags } = await restore(base);
    assert.equal(refusal, null);
    assert.match(flags[0]?.evidence ?? '', /was changed, and was restored/);
    assert.equal(await readlink(join(venv, 'python3')), '/bin/true');
    assert.match(await readFile(join(workdir, 'grep'), 'utf8'), /exit 0/);
    assert.match(await readFile(join(workdir, 'main'), 'utf8'), /repaired/);
  });

  it('are flagged if they cannot be restored', async () => {
    const base = await read();
    const fails: Sandbox['exec'] = async (...given) => ({ ...(await exec(...given)), exitCode: 1 });
    const garbled: Sandbox['exec'] = async (...given) => ({
      ...(await exec(...given)),
      stdout: Buffer.from('no list'),
    });
    for (const broken of [fails, garbled]) {
      const { refusal, flags } = await restore(base, { exec: broken });
      assert.notEqual(refusal, null);
      assert.deepEqual(
        flags.map(({ trick }) => trick),
        ['program-shadow'],
      );
    }
  });
});
