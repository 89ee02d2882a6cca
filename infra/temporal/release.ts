import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { EnvHttpProxyAgent, request } from 'undici';

export const temporalCliVersion = '1.8.2';

const releaseBase = `https://github.com/temporalio/cli/releases/download/v${temporalCliVersion}`;
const connectTimeoutMs = 10_000;
const idleTimeoutMs = 30_000;
const maxRedirects = 5;

/** SHA-256 digests of the release's archives, from its checksums.txt. */
const checksums: Readonly<Record<string, string>> = {
  linux_amd64: 'd8421bda989e6514b4bdb4d63a9012a8a05a806892e881a5aad8510496349a94',
  linux_arm64: '83600a8fac6e3da54093e5da6918d399f501532b9f1172235603f9606f4ac6e4',
  darwin_amd64: '489d7f5420cae02b559774ac23df035141954c33a51dba96f5759a0ddccdf1b6',
  darwin_arm64: 'dacdc3587682c04cf27e67c8878ca2d755230b6ad63c0c6ebddd7348ae90ed94',
};

const platforms: Readonly<Record<string, string>> = {
  'linux-x64': 'linux_amd64',
  'linux-arm64': 'linux_arm64',
  'darwin-x64': 'darwin_amd64',
  'darwin-arm64': 'darwin_arm64',
};

export interface ReleaseSource {
  readonly baseUrl: string;
  /** SHA-256 digests by platform, as it appears in the archive's name. */
  readonly checksums: Readonly<Record<string, string>>;
  /** Environment with the proxy settings: `HTTPS_PROXY` and its siblings. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function officialRelease(env: ReleaseSource['env']): ReleaseSource {
  return { baseUrl: releaseBase, checksums, env };
}

/** Downloads the CLI of this platform, checks its digest, and renames the executable to `target`. */
export async function downloadTemporal(source: ReleaseSource, target: string, signal?: AbortSignal): Promise<void> {
  const platform = platforms[`${process.platform}-${process.arch}`];
  const expected = platform === undefined ? undefined : source.checksums[platform];
  if (platform === undefined || expected === undefined) {
    throw new Error(`there is no official build for ${process.platform}-${process.arch}`);
  }
  const url = `${source.baseUrl}/temporal_cli_${temporalCliVersion}_${platform}.tar.gz`;
  const scratch = await mkdtemp(`${target}.download-`);
  try {
    const archive = join(scratch, 'archive.tar.gz');
    await fetchTo(url, archive, source.env, signal);
    await verify(archive, expected, url);
    const executable = join(scratch, 'temporal');
    await unpack(archive, executable);
    await chmod(executable, 0o755);
    await rename(executable, target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function fetchTo(url: string, file: string, env: ReleaseSource['env'], signal?: AbortSignal): Promise<void> {
  const dispatcher = new EnvHttpProxyAgent({
    ...proxies(env),
    connect: { timeout: connectTimeoutMs },
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
  });
  try {
    let location = url;
    for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
      const answer = await request(location, { dispatcher, ...(signal === undefined ? {} : { signal }) });
      if (answer.statusCode === 200) return await pipeline(answer.body, createWriteStream(file));
      await answer.body.dump();
      const next = answer.headers.location;
      if (answer.statusCode < 300 || answer.statusCode >= 400 || typeof next !== 'string') {
        throw new Error(`expected ${location} to answer 200, got ${answer.statusCode}`);
      }
      location = new URL(next, location).href;
    }
    throw new Error(`expected ${url} to be at most ${maxRedirects} redirects away`);
  } finally {
    await dispatcher.close();
  }
}

function proxies(env: ReleaseSource['env']): { httpProxy?: string; httpsProxy?: string; noProxy?: string } {
  const httpProxy = env.http_proxy ?? env.HTTP_PROXY;
  const httpsProxy = env.https_proxy ?? env.HTTPS_PROXY;
  const noProxy = env.no_proxy ?? env.NO_PROXY;
  return {
    ...(httpProxy ? { httpProxy } : {}),
    ...(httpsProxy ? { httpsProxy } : {}),
    ...(noProxy ? { noProxy } : {}),
  };
}

async function verify(archive: string, expected: string, url: string): Promise<void> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(archive), hash);
  const got = hash.digest('hex');
  if (got !== expected)
    throw new Error(`expected ${url} to have the sha256 ${expected}, got ${got}; the download was discarded`);
}

async function unpack(archive: string, executable: string): Promise<void> {
  const entries = extract();
  const reading = pipeline(createReadStream(archive), createGunzip(), entries);
  let found = false;
  for await (const entry of entries) {
    const wanted = entry.header.name === 'temporal' && entry.header.type === 'file';
    if (wanted) await pipeline(entry, createWriteStream(executable));
    else entry.resume();
    found ||= wanted;
  }
  await reading;
  if (!found) throw new Error('the archive has no file named temporal');
}
