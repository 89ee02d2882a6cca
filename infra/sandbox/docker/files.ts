import { pack } from 'tar-stream';
import { FileRefused, type FileRefusedReason, SandboxFailure } from '../failure.ts';
import { collect } from '../files.ts';
import type { Account } from '../sandbox.ts';
import { callDaemon } from './daemon.ts';
import * as scripts from './scripts.ts';
import type { ContainerShell } from './shell.ts';

export interface PutTree {
  readonly tar: Buffer;
  readonly at: string;
  readonly owner: Account;
  readonly uid: number;
}

/** The exit code of an account that can't create the directory. */
export const cannotMake = 95;

/** Unpacks a tar in a container with the rights of the account that owns the files. */
export async function putTree(shell: ContainerShell, put: PutTree, signal: AbortSignal): Promise<void> {
  requireAbsolute(put.at);
  const unpack = () => shell.run({ role: put.owner, text: scripts.unpack, args: [put.at], stdin: put.tar }, signal);
  let { exitCode, stderr } = await unpack();
  if (exitCode === cannotMake) {
    await makeDirectory(shell, put);
    ({ exitCode, stderr } = await unpack());
  }
  if (exitCode === 0) return;
  throw unpackFailure(put, `exit code ${exitCode}: ${String(stderr).trim().slice(0, 500)}`);
}

/** Returns the failure for files that could not be unpacked; `evidence` says how the command ended. */
export function unpackFailure(
  { at, owner }: Pick<PutTree, 'at' | 'owner'>,
  evidence: string,
): SandboxFailure | FileRefused {
  if (/no space left|file size limit|quota/i.test(evidence)) {
    return new SandboxFailure('DiskFull', `no space left in the container for files at ${at}`, { evidence });
  }
  return new FileRefused('outside', at, `could not write files at ${at} as ${owner}: ${evidence}`);
}

/** Creates a directory through the daemon: no account inside has the capability to give it to another one. */
export async function makeDirectory(shell: ContainerShell, { at, uid }: Pick<PutTree, 'at' | 'uid'>): Promise<void> {
  const tar = pack();
  const packed = collect(tar);
  tar.entry({ name: `${at.slice(1)}/`, type: 'directory', mode: 0o755, uid, gid: uid });
  tar.finalize();
  const archive = await packed;
  await callDaemon(() => shell.container.putArchive(archive, { path: '/' }));
}

const refusals: Readonly<Record<number, readonly [FileRefusedReason, string]>> = {
  90: ['missing', 'a file, got none'],
  91: ['not-a-file', 'a regular file, got another kind'],
  92: ['outside', 'no symlink on the way, got one'],
  93: ['too-large', 'a smaller file'],
};
const notReadable = 94;

/** Reads a regular file of at most `maxBytes` in a container, without following symlinks. */
export async function readInside(
  shell: ContainerShell,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  requireAbsolute(path);
  const read = (role: Account) =>
    shell.run({ role, text: scripts.readFile, args: [path, String(maxBytes)], maxOutputBytes: maxBytes }, signal);
  let result = await read('grader');
  // Without capabilities, root can't read a file whose permissions the agent restricted.
  if (result.exitCode === notReadable) result = await read('agent');
  const { exitCode, stdout, stderr, truncated } = result;
  const [reason, text] = truncated ? (refusals[93] ?? []) : (refusals[exitCode] ?? []);
  if (reason) throw new FileRefused(reason, path, `expected at ${path} ${text} (at most ${maxBytes} bytes)`);
  if (exitCode === 0) return stdout;
  const got = `exit code ${exitCode} ${String(stderr).trim().slice(0, 200)}`;
  throw new FileRefused('missing', path, `expected a readable file at ${path}, got ${got}`);
}

function requireAbsolute(path: string): void {
  if (path.startsWith('/') && !path.split('/').includes('..') && !path.includes('\0')) return;
  throw new FileRefused('outside', path, `expected an absolute path without "..", got ${JSON.stringify(path)}`);
}
