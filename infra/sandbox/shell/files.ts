import { FileRefused, type FileRefusedReason, SandboxFailure } from '../failure.ts';
import { packTree } from '../files.ts';
import type { Account, PutFiles } from '../sandbox.ts';
import * as scripts from './scripts.ts';
import type { Shell } from './shell.ts';
import { endedEarly, killed, unread, untilUnkilled, wasKilled } from './unread.ts';

/** The exit code of an account that can't create the directory. */
export const cannotMake = 95;
/** The exit code of a detached command whose files could not be unpacked because `tar` was killed. */
export const tarKilled = 97;

/** Writes files with the rights of the account that owns them. */
export async function putFiles(shell: Shell, files: PutFiles, signal: AbortSignal): Promise<void> {
  const { tree, at, owner } = files;
  requireAbsolute(at);
  const uid = shell.uidOf(owner);
  const stdin = await packTree(tree, { uid, gid: uid });
  const unpack = () =>
    untilUnkilled(() => shell.run({ role: owner, text: scripts.unpack, args: [at], stdin }, signal), wasKilled);
  let { exitCode, stderr } = await unpack();
  if (exitCode === cannotMake) {
    await shell.makeDirectory(at, owner);
    ({ exitCode, stderr } = await unpack());
  }
  if (exitCode === 0) return;
  throw await unpackFailure(shell, files, { exitCode, stderr: String(stderr).trim().slice(0, 500) });
}

/** Returns the failure for files that could not be unpacked, however often it was tried. */
export async function unpackFailure(
  shell: Shell,
  { at, owner }: Pick<PutFiles, 'at' | 'owner'>,
  { exitCode, stderr }: { readonly exitCode: number; readonly stderr: string },
): Promise<SandboxFailure | FileRefused> {
  const evidence = `exit code ${exitCode}: ${stderr}`;
  if (/no space left|file size limit|quota/i.test(stderr)) {
    return new SandboxFailure('DiskFull', `no space left in the sandbox for files at ${at}`, { evidence });
  }
  if (wasKilled({ exitCode })) return killed(shell, { what: `write files at ${at}`, role: owner, evidence });
  return new FileRefused('outside', at, `could not write files at ${at} as ${owner}: ${evidence}`);
}

const refusals: Readonly<Record<number, readonly [FileRefusedReason, string]>> = {
  90: ['missing', 'a file, got none'],
  91: ['not-a-file', 'a regular file, got another kind'],
  92: ['outside', 'no symlink on the way, got one'],
  93: ['too-large', 'a smaller file'],
};
const notReadable = 94;

/** Reads a regular file of at most `maxBytes`, without following symlinks. */
export async function readInside(shell: Shell, path: string, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
  requireAbsolute(path);
  const args = [path, String(maxBytes)];
  const read = (role: Account) =>
    untilUnkilled(() => shell.run({ role, text: scripts.readFile, args, maxOutputBytes: maxBytes }, signal), wasKilled);
  let result = await read('grader');
  if (endedEarly(result)) throw await unread(shell, path, result);
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
