import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { sha256 } from '../../store/files.ts';
import type { DataSetLocation } from '../data-set.ts';
import { unpackTar } from './archive.ts';
import { createCached } from './cache.ts';
import { createView, harmless } from './repository.ts';

const run = promisify(execFile);
/** Later branches and tags are fetched beside those of the clone, which keep what they stood for. */
const fetched = 'refs/fetched';
const branchesAndTags = [`+refs/heads/*:${fetched}/heads/*`, `+refs/tags/*:${fetched}/tags/*`] as const;

type GitLocation = Extract<DataSetLocation, { kind: 'git' }>;

/** The place of checked-out files on this host. */
export interface CheckOuts {
  readonly directory: string;
  readonly offline: boolean;
}

/**
 * Writes the files of a revision of a cloned repository to disk, once per host and commit, and returns the path that the
 * location names in them. A branch stands for the commit that it had when it was cloned or first found. Throws TemperFailure
 * UnknownTask.
 */
export async function checkOutRevision(
  repository: string,
  location: GitLocation,
  { directory, offline }: CheckOuts,
): Promise<string> {
  const commit = await resolveCommit(repository, location, offline);
  const target = join(directory, sha256([location.url, commit].join('\n')).slice(0, 24));
  await createCached(target, (draft) => writeCommit(repository, commit, draft));
  const path = await realpath(join(target, location.path)).catch(() => null);
  const root = await realpath(target);
  if (path === root || path?.startsWith(root + sep)) return join(target, location.path);
  throw unknown(location, `a file or directory ${location.path} in commit ${commit}`, path ?? 'nothing');
}

async function resolveCommit(repository: string, location: GitLocation, offline: boolean): Promise<string> {
  const git = (...args: readonly string[]) => run('git', [`--git-dir=${repository}`, ...harmless, ...args]);
  const find = (name: string) =>
    git('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`).then(
      ({ stdout }) => stdout.trim(),
      () => null,
    );
  const known = await find(location.revision);
  if (known !== null) return known;
  if (!offline) {
    // The clone may be older than the revision.
    await git('fetch', '--quiet', '--no-tags', 'origin', ...branchesAndTags).catch((cause: unknown) => {
      throw unknown(location, 'a git repository', errorMessage(cause).trim().slice(-300));
    });
    // From now on it stands for this commit, as those of the clone do.
    for (const kind of ['heads', 'tags']) {
      const commit = await find(`${fetched}/${kind}/${location.revision}`);
      if (commit !== null) await git('update-ref', `refs/${kind}/${location.revision}`, commit);
    }
  }
  const found = await find(location.revision);
  if (found !== null) return found;
  throw unknown(location, 'a branch, a tag or a commit', JSON.stringify(location.revision));
}

async function writeCommit(repository: string, commit: string, draft: string): Promise<void> {
  const view = await mkdtemp(join(tmpdir(), 'temper-commit-'));
  try {
    const options = await createView(repository, view);
    await mkdir(draft);
    // Nothing is awaited before the output is read: Node drops the output of a process that has ended without a reader.
    const git = spawn('git', [...options, 'archive', '--format=tar', commit], { stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(git, 'close');
    // It is awaited once the output has been read.
    ended.catch(() => undefined);
    const errors = buffer(git.stderr);
    const links = await unpackTar([git.stdout], draft).catch((cause: unknown) => {
      git.kill();
      throw cause;
    });
    const [exitCode] = await ended;
    if (exitCode !== 0) throw new Error((await errors).toString('utf8'));
    // Links are made last, those in directories first, so that nothing is written through one of them.
    for (const [name, linkTarget] of [...links].sort().reverse()) {
      await mkdir(dirname(join(draft, name)), { recursive: true });
      await symlink(linkTarget, join(draft, name));
    }
  } catch (cause) {
    const text = `${repository}: expected the files of commit ${commit}, got: ${errorMessage(cause).trim().slice(-300)}`;
    throw new TemperFailure('UnknownTask', text, { cause });
  } finally {
    await rm(view, { recursive: true, force: true });
  }
}

const unknown = ({ url, revision }: GitLocation, expected: string, got: string): TemperFailure =>
  new TemperFailure('UnknownTask', `git+${url}@${encodeURIComponent(revision)}: expected ${expected}, got ${got}`);
