import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SandboxFailure } from '../failure.ts';
import type { SandboxMount } from '../sandbox.ts';
import { installProgram } from './scripts.ts';
import type { E2bShell } from './shell.ts';

/** Installs a program of this host in a sandbox whose template lacks it. `name` is its directory below the template's programs. */
export async function bringProgram(
  shell: Pick<E2bShell, 'name' | 'run'>,
  { name, mount }: { readonly name: string; readonly mount: SandboxMount },
  signal: AbortSignal,
): Promise<void> {
  const tar = spawn('tar', ['-C', mount.source, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'pipe'], signal });
  // The failure of either is looked at once the sandbox has answered.
  const packed = once(tar, 'close');
  packed.catch(() => undefined);
  const errors = text(tar.stderr).catch(() => '');
  // The sandbox reads a moment later. Node drops the output of a process that has ended without a reader.
  const stdin: AsyncIterable<Uint8Array> = tar.stdout.pipe(new PassThrough());
  try {
    const { exitCode, stderr } = await shell.run({ role: 'root', text: installProgram, args: [name], stdin }, signal);
    const [packedCode] = await packed;
    if (exitCode === 0 && packedCode === 0) return;
    const evidence = `${await errors}${String(stderr)}`.trim().slice(0, 500);
    throw new SandboxFailure('SandboxUnavailable', `could not install ${name} in sandbox ${shell.name}`, { evidence });
  } finally {
    tar.kill();
    await packed.catch(() => undefined);
  }
}
