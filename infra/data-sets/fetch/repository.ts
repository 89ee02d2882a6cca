import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { withLock } from '../../process/lock.mjs';
import { type FileTree, unpackTree } from '../../sandbox/files.ts';
import { sha256 } from '../../store/files.ts';
import { isThere } from './download.ts';
import { missing } from './hub.ts';

const run = promisify(execFile);
/** A mirror is only read: nothing that its configuration names is to run, whoever owns it. */
const harmless = ['-c', 'core.hooksPath=/dev/null', '-c', 'safe.directory=*'] as const;
/** Nothing of this host's own settings may change what a commit's files are. */
const exact = [...harmless, '-c', 'core.autocrlf=false', '-c', 'core.attributesFile=/dev/null'] as const;
const limits = { maxFiles: 100_000, maxBytes: 512 * 1024 * 1024 } as const;
const listingBytes = 256 * 1024 * 1024;

/** What a commit holds. */
export interface CommitFiles {
  readonly tree: FileTree;
  /** Symbolic links, by what they point to: a tree of files has none. */
  readonly links: ReadonlyMap<string, string>;
}

/**
 * All files of a commit of a bare or plain repository on this host, without its history. Throws TemperFailure
 * UnknownTask, or UnsupportedTask where they are too many.
 */
export async function filesAt(repository: string, commit: string): Promise<CommitFiles> {
  if (!/^[0-9a-f]{7,64}$/.test(commit)) {
    throw new TemperFailure('MalformedTask', `base_commit: expected a commit, got ${JSON.stringify(commit)}`);
  }
  const directory = await mkdtemp(join(tmpdir(), 'temper-commit-'));
  try {
    const view = await viewOf(repository, directory);
    const links = await linksAt(view, commit);
    return { tree: await archived(view, commit, [...links.keys()], repository), links };
  } catch (cause) {
    if (cause instanceof TemperFailure) throw cause;
    const reason = cause instanceof Error ? cause.message.trim().slice(-300) : String(cause);
    const text = `${repository}: expected the files of commit ${commit}, got: ${reason}`;
    throw new TemperFailure('UnknownTask', text, { cause });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/**
 * A repository of ours on the objects of another. What that one says of an archive is left aside: projects leave their
 * tests out of one, and put the date of it into files.
 */
async function viewOf(repository: string, directory: string): Promise<readonly string[]> {
  const where = ['-C', repository, ...harmless, 'rev-parse', '--path-format=absolute', '--git-path', 'objects'];
  const { stdout } = await run('git', where);
  await run('git', [...harmless, 'init', '-q', '--bare', '--template=', directory]);
  await writeFile(join(directory, 'objects/info/alternates'), stdout);
  await mkdir(join(directory, 'info'), { recursive: true });
  await writeFile(join(directory, 'info/attributes'), '* -export-ignore -export-subst\n');
  return [`--git-dir=${directory}`, ...exact];
}

async function linksAt(view: readonly string[], commit: string): Promise<ReadonlyMap<string, string>> {
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

async function archived(view: readonly string[], commit: string, without: readonly string[], repository: string) {
  const paths = ['.', ...without.map((path) => `:(exclude,literal)${path}`)];
  const args = [...view, 'archive', '--format=tar', commit, '--', ...paths];
  const git = spawn('git', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(git, 'close');
  const said = buffer(git.stderr);
  const tree = await unpackTree(git.stdout, limits).catch((cause: unknown) => {
    git.kill();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TemperFailure('UnsupportedTask', `${repository} at ${commit}: ${reason}`, { cause });
  });
  const [exitCode] = await ended;
  if (exitCode === 0) return tree;
  throw new Error((await said).toString('utf8'));
}

/** The mirror of a repository below a directory of mirrors: `owner/name` or `owner__name`, with `.git` or without. */
export async function mirrorOf(directory: string, repository: string): Promise<string> {
  const names = [repository, repository.replaceAll('/', '__')].flatMap((name) => [`${name}.git`, name]);
  for (const name of names) if (await isThere(join(directory, name))) return join(directory, name);
  throw new TemperFailure('UnknownTask', `${directory}: expected one of ${names.join(', ')}, got none`);
}

/** A bare clone of a repository, made once per host. */
export async function cloneOf(
  url: string,
  { directory, offline }: { readonly directory: string; readonly offline: boolean },
): Promise<string> {
  const target = join(directory, `${sha256(url).slice(0, 24)}.git`);
  if (await isThere(target)) return target;
  if (offline) throw missing(url, target);
  await mkdir(dirname(target), { recursive: true });
  await withLock(`${target}.lock`, async () => {
    if (await isThere(target)) return;
    const draft = `${target}.${process.pid}.part`;
    try {
      await run('git', [...harmless, 'clone', '--quiet', '--bare', '--', url, draft]);
      await rename(draft, target);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message.trim().slice(-300) : String(cause);
      throw new TemperFailure('UnknownTask', `${url}: expected a git repository, got: ${reason}`, { cause });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
  return target;
}
