import { pack } from 'tar-stream';
import { SandboxFailure } from '../failure.ts';
import { addTree, collect } from '../files.ts';
import type { SandboxMount, SandboxSpec } from '../sandbox.ts';
import type { ScriptResult } from '../shell/shell.ts';
import { idOf } from './accounts.ts';
import { bringProgram } from './bring-program.ts';
import * as scripts from './scripts.ts';
import type { E2bShell } from './shell.ts';

/**
 * Sets a new sandbox up: accounts, directories, programs and the spec's files. Repeatable. A program that the template lacks is brought
 * from this host, which takes a while for each sandbox.
 */
export async function setUp(shell: E2bShell, spec: SandboxSpec, signal: AbortSignal): Promise<void> {
  const ids = (['keeper', 'grader', 'agent'] as const).map((role) => String(idOf(spec.name, role)));
  const programs = new Map(spec.mounts.map((mount) => [programOf(spec, mount), mount]));
  const links = spec.mounts.flatMap((mount) => [programOf(spec, mount), mount.target]);
  const stdin = await packFiles(spec);
  if (!(await isSetUp(shell))) {
    const kept = await shell.run({ role: 'root', text: scripts.keepHooks, args: [], asTemplate: true }, signal);
    if (kept.exitCode !== 0) throw unusable(spec.name, kept);
  }
  for (;;) {
    const args = [...ids, spec.workdir, String(await shell.diskUsed()), ...links];
    const done = await shell.run({ role: 'root', text: scripts.setUp, args, stdin }, signal);
    if (done.exitCode === 0) return;
    const name = String(done.stdout).trim();
    const mount = programs.get(name);
    if (done.exitCode !== scripts.lacksProgram || mount === undefined) throw unusable(spec.name, done);
    programs.delete(name);
    await bringProgram(shell, { name, mount }, signal);
  }
}

function unusable(name: string, { exitCode, stderr }: ScriptResult): SandboxFailure {
  const text = `could not set up sandbox ${name}; its template needs sh, tar, grep and coreutils`;
  const evidence = `exit code ${exitCode}: ${String(stderr).trim().slice(0, 500)}`;
  return new SandboxFailure('UnsupportedTask', text, { evidence });
}

/** Whether a sandbox has been set up. */
export async function isSetUp(shell: E2bShell): Promise<boolean> {
  const { exitCode } = await shell.run({ role: 'root', text: scripts.isSetUp, args: [] }, new AbortController().signal);
  return exitCode === 0;
}

/** The directory of a mount's program below the template's programs. */
function programOf({ name }: SandboxSpec, { program, target }: SandboxMount): string {
  if (program !== undefined) return `${program.name}-${program.version}`;
  const text = `sandbox ${name}: E2B sandboxes mount no host directory, and ${target} is not a program that a template holds`;
  throw new SandboxFailure('UnsupportedTask', text);
}

async function packFiles({ name, files = [] }: SandboxSpec): Promise<Buffer> {
  const tar = pack();
  const packed = collect(tar);
  for (const { tree, at, owner } of files) {
    const uid = idOf(name, owner);
    tar.entry({ name: `${at.slice(1)}/`, type: 'directory', uid, gid: uid, mode: owner === 'agent' ? 0o755 : 0o700 });
    addTree(tar, tree, { at, uid, gid: uid });
  }
  tar.finalize();
  return packed;
}
