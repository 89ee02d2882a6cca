import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { exists } from '../../process/exists.ts';
import { unpackTree } from '../../sandbox/files.ts';
import { sha256 } from '../../store/files.ts';
import type { CommitFiles } from '../data-set.ts';
import { createCached, notCached } from './cache.ts';

const run = promisify(execFile);
/** Git options that keep the configuration of an untrusted repository from running programs. */
export const harmless = ['-c', 'core.hooksPath=/dev/null', '-c', 'safe.directory=*'] as const;
/** Git options that keep this host's settings from changing the files of a commit. */
const exact = [...harmless, '-c', 'core.autocrlf=false', '-c', 'core.attributesFile=/dev/null'] as const;
const limits = { maxFiles: 100_000, maxBytes: 512 * 1024 * 1024 } as const;
const listingBytes = 256 * 1024 * 1024;

/**
 * Reads all files of a commit of a repository on this host, bare or not, without its history. Throws TemperFailure
 * UnknownTask, or UnsupportedTask when the files exceed the limits.
 */
export async function filesAtCommit(repository: string, commit: string): Promise<CommitFiles> {
  if (!/^[0-9a-f]{7,64}$/.test(commit)) {
    throw new TemperFailure('MalformedTask', `base_commit: expected a commit, got ${JSON.stringify(commit)}`);
  }
  const directory = await mkdtemp(join(tmpdir(), 'temper-commit-'));
  try {
    const view = await createView(repository, directory);
    const links = await readLinks(view, commit);
    return { tree: await readFiles(view, commit, [...links.keys()], repository), links };
  } catch (cause) {
    if (cause instanceof TemperFailure) throw cause;
    const reason = errorMessage(cause).trim().slice(-300);
    const text = `${repository}: expected the files of commit ${commit}, got: ${reason}`;
    throw new TemperFailure('UnknownTask', text, { cause });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * Creates a repository of temper's own that borrows the objects of another, and returns the git options to use it. Its
 * attributes override those of the project, which may exclude tests from an archive or write the date into files.
 */
export async function createView(repository: string, directory: string): Promise<readonly string[]> {
  const findObjects = ['-C', repository, ...harmless, 'rev-parse', '--path-format=absolute', '--git-path', 'objects'];
  const { stdout } = await run('git', findObjects);
  await run('git', [...harmless, 'init', '-q', '--bare', '--template=', directory]);
  await writeFile(join(directory, 'objects/info/alternates'), stdout);
  await mkdir(join(directory, 'info'), { recursive: true });
  await writeFile(join(directory, 'info/attributes'), '* -export-ignore -export-subst\n');
  return [`--git-dir=${directory}`, ...exact];
}

async function readLinks(view: readonly string[], commit: string): Promise<ReadonlyMap<string, string>> {
  const options = { maxBuffer: listingBytes };
  const { stdout } = await run('git', [...view, 'ls-tree', '-r', '-z', commit], options);
  const links = new Map<string, string>();
  for (const line of stdout.split('\0')) {
    const [, object, path] = /^120000 blob ([0-9a-f]+)\t(.+)$/s.exec(line) ?? [];
    if (object === undefined || path === undefined) continue;
    links.set(path, (await run('git', [...view, 'cat-file', 'blob', object])).stdout);
  }
  return links;
}

async function readFiles(view: readonly string[], commit: string, links: readonly string[], repository: string) {
  const paths = ['.', ...links.map((path) => `:(exclude,literal)${path}`)];
  const args = [...view, 'archive', '--format=tar', commit, '--', ...paths];
  const git = spawn('git', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(git, 'close');
  const errors = buffer(git.stderr);
  const tree = await unpackTree(git.stdout, limits).catch((cause: unknown) => {
    git.kill();
    throw new TemperFailure('UnsupportedTask', `${repository} at ${commit}: ${errorMessage(cause)}`, { cause });
  });
  const [exitCode] = await ended;
  if (exitCode === 0) return tree;
  throw new Error((await errors).toString('utf8'));
}

/** Finds the mirror of a repository in a directory of mirrors: `owner/name` or `owner__name`, with or without `.git`. */
export async function findMirror(directory: string, repository: string): Promise<string> {
  const names = [repository, repository.replaceAll('/', '__')].flatMap((name) => [`${name}.git`, name]);
  for (const name of names) if (await exists(join(directory, name))) return join(directory, name);
  throw new TemperFailure('UnknownTask', `${directory}: expected one of ${names.join(', ')}, got none`);
}

/** Makes a bare clone of a repository, once per host, and returns its path. */
export async function cloneOnce(
  url: string,
  { directory, offline }: { readonly directory: string; readonly offline: boolean },
): Promise<string> {
  const target = join(directory, `${sha256(url).slice(0, 24)}.git`);
  if (await exists(target)) return target;
  if (offline) throw notCached(url, target);
  await createCached(target, async (draft) => {
    try {
      await run('git', [...harmless, 'clone', '--quiet', '--bare', '--', url, draft]);
    } catch (cause) {
      const reason = errorMessage(cause).trim().slice(-300);
      throw new TemperFailure('UnknownTask', `${url}: expected a git repository, got: ${reason}`, { cause });
    }
  });
  return target;
}
