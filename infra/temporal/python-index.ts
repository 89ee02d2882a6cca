import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DownloadOptions, downloadText, withoutPassword } from './download.ts';

const publicIndex = 'https://pypi.org/simple';

type Env = DownloadOptions['env'];

/** Returns the URL of a file of a package, as the index of Python packages links it that pip would use on this machine. */
export async function findPythonFile(
  project: string,
  file: string,
  options: DownloadOptions,
  signal?: AbortSignal,
): Promise<string> {
  const index = await pythonIndex(options.env);
  const { text, from } = await downloadText(`${index.replace(/\/+$/, '')}/${project}/`, options, signal);
  for (const [, , href = ''] of text.matchAll(/<a\b[^>]*?\bhref\s*=\s*(["'])(.*?)\1/gis)) {
    const link = new URL(href.replaceAll('&amp;', '&'), from);
    if (link.pathname.split('/').at(-1) !== file) continue;
    const page = new URL(from);
    if (link.host === page.host && link.username === '') {
      link.username = page.username;
      link.password = page.password;
    }
    return link.href;
  }
  throw new Error(`${withoutPassword(from)} lists no file named ${file}`);
}

/** The index that pip uses: of `PIP_INDEX_URL`, of its configuration files, or the public one. */
async function pythonIndex(env: Env): Promise<string> {
  if (env.PIP_INDEX_URL) return env.PIP_INDEX_URL;
  for (const file of pipFiles(env)) {
    const text = await readFile(file, 'utf8').catch(() => '');
    const found = indexIn(text);
    if (found !== undefined) return found;
  }
  return publicIndex;
}

/** Pip's configuration files, the one that wins first. */
function pipFiles(env: Env): readonly string[] {
  const home = env.HOME ?? '/';
  return [
    ...(env.PIP_CONFIG_FILE ? [env.PIP_CONFIG_FILE] : []),
    join(env.XDG_CONFIG_HOME || join(home, '.config'), 'pip/pip.conf'),
    join(home, '.pip/pip.conf'),
    '/etc/pip.conf',
  ];
}

/** Reads the index from the section `[global]` of a configuration file of pip. */
function indexIn(text: string): string | undefined {
  const [, section = ''] = /^\[global\]([^[]*)/m.exec(text) ?? [];
  return /^\s*index[-_]url\s*[=:]\s*(\S+)/m.exec(section)?.[1];
}
