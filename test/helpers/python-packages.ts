import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A Python package that a test needs. */
export interface PythonPackage {
  readonly name: string;
  readonly version: string;
  /** The packages that it needs for the test, without the large ones among its dependencies. */
  readonly needed: readonly string[];
}

const installMs = 600_000;

/**
 * Returns a Python with a version of a package, installed once below the user's cache, or the reason why there is
 * none.
 */
export async function pythonWith(
  wanted: PythonPackage,
): Promise<{ readonly python: string } | { readonly missing: string }> {
  const { name, version } = wanted;
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  // Another list of packages is another environment.
  const list = createHash('sha256').update(wanted.needed.join('\n')).digest('hex').slice(0, 8);
  const home = join(cache, `temper/python/${name}-${version}-${list}`);
  const python = join(home, 'bin/python');
  if (existsSync(join(home, '.ready'))) return { python };
  const found = await run('python3', ['-c', 'import sys; print(sys.version_info >= (3, 11))']).catch(() => null);
  if (found?.stdout.trim() !== 'True') return { missing: 'needs python3 of version 3.11 or later' };
  try {
    await install(home, wanted);
  } catch (error) {
    return { missing: `could not install ${name} ${version}: ${error instanceof Error ? error.message : error}` };
  }
  return { python };
}

async function install(home: string, { name, version, needed }: PythonPackage): Promise<void> {
  const options = { timeout: installMs };
  // A virtual environment cannot be moved, so a marker file shows that it is complete.
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await run('python3', ['-m', 'venv', home], options);
  const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check'];
  await run(join(home, 'bin/python'), [...pip, '--no-deps', `${name}==${version}`], options);
  await run(join(home, 'bin/python'), [...pip, ...needed], options);
  await writeFile(join(home, '.ready.new'), version);
  await rename(join(home, '.ready.new'), join(home, '.ready'));
}
