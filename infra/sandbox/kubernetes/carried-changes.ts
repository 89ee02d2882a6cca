import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { unpackBaseline } from '../carry/baseline.ts';
import { encodeChanges, type FrameReader, headerOf, readFrames } from '../carry/frames.ts';
import type { InsideRequest } from '../carry/inside.ts';
import { insideProgram } from '../carry/program.ts';
import { type CarriedEntry, mostCarriedFiles, ownPaths, type SandboxChanges } from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import { collect } from '../files.ts';
import { keeperDirectory } from '../shell/scripts.ts';
import type { Script, Shell } from '../shell/shell.ts';
import { node, programsDirectory } from './keeper/program.ts';

/** The largest list of the files that an agent may write, compressed. */
const baselineBytes = 64 * 2 ** 20;

/** The list of files is the keeper's, so that no agent reaches it. */
const baseline = `${keeperDirectory}/.baseline`;
const keep = `umask 077; cat >"$1.new" && mv "$1.new" "$1"`;
const show = '[ ! -e "$1" ] || cat "$1"';

const owner = z.union([z.literal('agent'), z.number()]);
const entryFrame = z.object({
  path: z.string().startsWith('/'),
  type: z.enum(['file', 'directory', 'symlink', 'link', 'fifo']),
  mode: z.number(),
  uid: owner,
  gid: owner,
  mtimeMs: z.number(),
  size: z.number(),
  target: z.exactOptional(z.string()),
});
const firstFrame = z.object({
  listings: z.array(z.object({ directory: z.string(), names: z.array(z.string()) })),
  added: z.array(z.string()),
  tooMany: z.boolean(),
});
const nextFrame = z.union([z.object({ end: z.literal(true) }), entryFrame]);
const writeResult = z.object({ refusal: z.string().nullable() });

/**
 * Creates the functions that carry a Pod's changes. A program that runs as the agent, from a read-only mount, finds what the agent
 * has changed and makes it again: whatever that program is led to do, the agent could have done itself.
 */
export function createCarriedChanges(shell: Shell): SandboxChanges {
  const script = async (what: InsideRequest['do'], leftOut: readonly string[] = []): Promise<Script> => {
    const fixed = [...ownPaths, programsDirectory, ...leftOut];
    const scope = { root: '', uid: shell.uidOf('agent'), starts: ['/'], fixed };
    const request: InsideRequest = { do: what, scope, mostFiles: mostCarriedFiles };
    const words = [...node, '--input-type=module', '--eval', await insideProgram(), JSON.stringify(request)];
    return { role: 'agent', text: 'exec "$@"', args: words, env: { NODE_OPTIONS: '' } };
  };
  const run = async (asked: Script, signal: AbortSignal): Promise<Buffer> => {
    const { exitCode, stdout, stderr, truncated } = await shell.run(
      { maxOutputBytes: baselineBytes, ...asked },
      signal,
    );
    if (exitCode === 0 && !truncated) return stdout;
    throw unreadable(shell.name, truncated ? 'too long a list' : stderr.toString('utf8').trim().slice(-500));
  };
  return {
    async note(signal) {
      const packed = await run(await script('note'), signal);
      unpackBaseline(packed);
      await run({ role: 'keeper', text: keep, args: [baseline], stdin: packed }, signal);
    },
    async read(leftOut, signal) {
      await shell.endAll('agent');
      const packed = await run({ role: 'keeper', text: show, args: [baseline] }, signal);
      const stream = await shell.stream(await script('read', leftOut));
      const frames = readFrames(stream);
      const first = await explained(shell.name, stream, signal, async () => {
        stream.end(packed);
        return firstFrame.parse(await frames.next());
      });
      if (first.tooMany) stream.destroy();
      return { ...first, entries: () => entriesOf(shell.name, stream, frames, signal) };
    },
    async write({ listings, added, entries }, signal) {
      const stream = await shell.stream(await script('write'));
      return explained(shell.name, stream, signal, async () => {
        const told = collect(stream);
        await pipeline(Readable.from(encodeChanges({ listings, added, tooMany: false }, entries)), stream);
        return writeResult.parse(JSON.parse((await told).toString('utf8'))).refusal;
      });
    },
    // The agent has no rights on programs of the image.
    changedPrograms: async () => [],
  };
}

async function* entriesOf(
  name: string,
  stream: Duplex,
  frames: FrameReader,
  signal: AbortSignal,
): AsyncIterable<CarriedEntry> {
  const stop = stopOnAbort(stream, signal);
  try {
    for (;;) {
      const found = await explained(name, stream, signal, async () => nextFrame.parse(await frames.next()));
      if ('end' in found) return;
      yield { header: headerOf(found), content: contentOf(name, frames.content(found.size), signal) };
    }
  } finally {
    stop();
    stream.destroy();
  }
}

async function* contentOf(
  name: string,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (cause) {
    signal.throwIfAborted();
    throw unreadable(name, errorMessage(cause), cause);
  }
}

/** Ends a stream with an abort, so that its reader waits no longer. Returns how to stop listening. */
function stopOnAbort(stream: Duplex, signal: AbortSignal): () => void {
  const stop = (): void => void stream.destroy(new Error('the work on its files was ended'));
  signal.addEventListener('abort', stop, { once: true });
  return () => signal.removeEventListener('abort', stop);
}

/** Does work on a stream of a Pod, which ends with an abort. Explains what broke it. */
async function explained<Result>(
  name: string,
  stream: Duplex,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const stop = stopOnAbort(stream, signal);
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    stream.destroy();
    if (cause instanceof TemperFailure) throw cause;
    throw unreadable(name, errorMessage(cause), cause);
  } finally {
    stop();
  }
}

function unreadable(name: string, evidence: string, cause?: unknown): SandboxFailure {
  const text = `the files of sandbox ${name} could not be carried; temper tries again`;
  return new SandboxFailure('SandboxUnavailable', text, { cause, evidence });
}
