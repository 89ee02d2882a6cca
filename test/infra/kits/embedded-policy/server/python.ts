import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The packages that the SDK needs, without `transformers`, which only its tokenizers need. */
const needed = [
  'anyio<5',
  'click',
  'distro<2',
  'httpx[http2]<1',
  'numpy',
  'orjson',
  'protobuf>=4.21',
  'pydantic<3',
  'pyqwest',
  'rich',
  'sniffio',
  'typing-extensions<5',
  'zstandard',
];
const installMs = 600_000;

/**
 * Returns a Python with a version of the official Tinker SDK, installed once below the user's cache, or the reason why there is
 * none.
 */
export async function pythonWithTinker(
  sdkVersion: string,
): Promise<{ readonly python: string } | { readonly missing: string }> {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
  const home = join(cache, `temper/python/tinker-${sdkVersion}`);
  const python = join(home, 'bin/python');
  if (existsSync(join(home, '.ready'))) return { python };
  const version = await run('python3', ['-c', 'import sys; print(sys.version_info >= (3, 11))']).catch(() => null);
  if (version?.stdout.trim() !== 'True') return { missing: 'needs python3 of version 3.11 or later' };
  try {
    await install(home, sdkVersion);
  } catch (error) {
    return { missing: `could not install tinker ${sdkVersion}: ${error instanceof Error ? error.message : error}` };
  }
  return { python };
}

async function install(home: string, sdkVersion: string): Promise<void> {
  const options = { timeout: installMs };
  // A virtual environment cannot be moved, so a marker file shows that it is complete.
  await rm(home, { recursive: true, force: true });
  await mkdir(home, { recursive: true });
  await run('python3', ['-m', 'venv', home], options);
  const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check'];
  await run(join(home, 'bin/python'), [...pip, '--no-deps', `tinker==${sdkVersion}`], options);
  await run(join(home, 'bin/python'), [...pip, ...needed], options);
  await writeFile(join(home, '.ready.new'), sdkVersion);
  await rename(join(home, '.ready.new'), join(home, '.ready'));
}
