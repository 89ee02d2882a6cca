import { posix } from 'node:path';
import { Readable } from 'node:stream';
import type { Header } from 'tar-stream';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Snapshot } from '../../../workflows/contracts/snapshot.ts';
import type { CarriedEntry } from '../../sandbox/changes.ts';
import { collect } from '../../sandbox/files.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { drain, type TarEntry, tarEntries } from '../../sandbox/tar-entries.ts';
import type { Store } from '../../store/store.ts';
import { isWorthRetry, wasCutOff } from '../late.ts';
import { keepChanges, orUnread } from '../snapshot/keep-snapshot.ts';
import { cutOff, requireSuccess } from '../workspace/require-success.ts';

const timeoutMs = 120_000;
/** The largest size of all artifacts together, since one command prints them. */
const mostArtifactBytes = 128 * 2 ** 20;
const tarOverheadBytes = 16 * 2 ** 20;

/** Packs those of the paths that exist. Files that the agent itself cannot read are left out. */
const packScript = `
command -v tar >/dev/null || exit 127
cd / || exit 1
for path; do
  shift
  if [ -e "./$path" ]; then set -- "$@" "./$path"; fi
done
[ $# -gt 0 ] || exit 0
tar -c -f - "$@" || true
`;

export interface ArtifactOptions {
  /** Absolute paths. */
  readonly paths: readonly string[];
  /** The secrets of the agent's session, of which nothing is kept. */
  readonly secrets: readonly string[];
  /** The number of the activity attempt, from 1. */
  readonly attempt: number;
}

/**
 * Stores files of an agent's sandbox, by the paths that its task names, for tests in an image of their own. Artifacts that cannot
 * be packed in time are retried, and then count as too large.
 */
export function keepArtifacts(
  sandbox: Sandbox,
  store: Store,
  options: ArtifactOptions,
  signal: AbortSignal,
): Promise<Snapshot> {
  const keep = () => pack(sandbox, store, options, signal);
  return orUnread(sandbox, { attempt: options.attempt, keep }, signal);
}

async function pack(
  sandbox: Sandbox,
  store: Store,
  { paths, secrets, attempt }: ArtifactOptions,
  signal: AbortSignal,
): Promise<Snapshot> {
  const { kind } = sandbox;
  const args = paths.map((path) => path.slice(1));
  const packed = await sandbox.exec(
    {
      account: 'agent',
      cwd: '/',
      env: {},
      argv: ['sh', '-c', packScript, 'sh', ...args],
      timeoutMs,
      maxOutputBytes: mostArtifactBytes + tarOverheadBytes,
    },
    signal,
  );
  if (!packed.truncated && isWorthRetry(packed, attempt)) throw cutOff(packed, 'packing the artifacts with tar');
  if (packed.truncated || wasCutOff(packed)) {
    return { kind, parts: [], entries: 0, bytes: packed.stdout.byteLength, above: mostArtifactBytes };
  }
  requireSuccess(packed, 'packing the artifacts with tar');
  const entries = () => entriesOf(packed.stdout);
  const options = { secrets, mostBytes: mostArtifactBytes };
  return keepChanges({ kind, read: { listings: [], added: paths, entries } }, store, options, signal);
}

/** Yields the entries of a tar as carried ones. A hard link becomes a file of its own. */
async function* entriesOf(tar: Buffer): AsyncIterable<CarriedEntry> {
  if (tar.byteLength === 0) return;
  const linked = new Map<string, Buffer>();
  for await (const { header, content } of readable(tar)) {
    const name = nameOf(header.name);
    if (header.type === 'file') {
      const bytes = await collect(Readable.from(content));
      linked.set(name, bytes);
      yield carried(header, name, bytes);
    } else {
      await drain(content);
      const bytes = header.type === 'link' ? linked.get(nameOf(header.linkname ?? '')) : undefined;
      if (bytes !== undefined) yield carried({ ...header, type: 'file' }, name, bytes);
      else if (header.type === 'directory' || header.type === 'symlink') yield carried(header, name, Buffer.alloc(0));
    }
  }
}

/** Reads a tar archive. Throws a TemperFailure if tar cannot have made it: a root agent may have replaced the program. */
async function* readable(tar: Buffer): AsyncIterable<TarEntry> {
  try {
    yield* tarEntries(Readable.from([tar]));
  } catch (cause) {
    const text = `expected the artifacts as tar packs them, got something else: ${errorMessage(cause)}`;
    throw new TemperFailure('Internal', text, { cause });
  }
}

/** Returns the absolute path of an entry, which never leads above the root. */
const nameOf = (name: string): string => posix.resolve('/', name);

const carried = ({ type, mode, mtime, linkname }: Header, path: string, bytes: Buffer): CarriedEntry => ({
  header: {
    path,
    type: type as CarriedEntry['header']['type'],
    mode,
    uid: 'agent',
    gid: 'agent',
    mtime,
    size: bytes.byteLength,
    ...(type === 'symlink' && { target: linkname ?? '' }),
  },
  content: Readable.from(bytes.byteLength === 0 ? [] : [bytes]),
});
