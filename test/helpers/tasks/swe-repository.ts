import { execFile } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
type Files = Readonly<Record<string, string>>;

/** A mirror of a repository `owner/name` in a directory of mirrors, with a bug at its only commit. */
export interface SweRepository {
  readonly commit: string;
  /** Returns the patch that changes the files of the commit to these. */
  patchTo(files: Files): Promise<string>;
}

/** Creates such a repository with git. `links` are the targets of symbolic links by path. */
export async function createSweRepository(
  mirrors: string,
  name: string,
  files: Files,
  links: Files = {},
): Promise<SweRepository> {
  const directory = join(mirrors, name);
  const who = ['-c', 'user.name=test', '-c', 'user.email=test@localhost'];
  const git = async (...args: readonly string[]) =>
    (await run('git', ['-C', directory, ...who, ...args], { encoding: 'utf8' })).stdout;
  const write = async (all: Files): Promise<void> => {
    for (const [path, text] of Object.entries(all)) {
      await mkdir(dirname(join(directory, path)), { recursive: true });
      await writeFile(join(directory, path), text);
    }
  };
  await rm(directory, { recursive: true, force: true });
  await write(files);
  for (const [path, target] of Object.entries(links)) await symlink(target, join(directory, path));
  await git('init', '-q', '-b', 'main');
  await git('add', '-A');
  await git('commit', '-q', '-m', 'with a bug');
  return {
    commit: (await git('rev-parse', 'HEAD')).trim(),
    async patchTo(changed) {
      await write(changed);
      await git('add', '-A');
      const patch = await git('diff', '--cached', '--binary');
      await git('reset', '-q', '--hard');
      return patch;
    },
  };
}
