import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import { readHead } from '../../process/head-buffer.ts';
import { unpackBaseline } from '../carry/baseline.ts';
import { type JoinedContents, joinContents } from '../carry/contents.ts';
import { EndedEarly, encodeChanges, type FrameReader, headerOf, readFrames } from '../carry/frames.ts';
import type { InsideRequest } from '../carry/inside.ts';
import { insideProgram } from '../carry/program.ts';
import { type CarriedEntry, carriedLimits, ownPaths, type SandboxChanges, tooManyChanges } from '../changes.ts';
import { SandboxFailure } from '../failure.ts';
import { countOomKills, keeperDirectory } from '../shell/scripts.ts';
import type { Script } from '../shell/shell.ts';
import { node, programsDirectory } from './keeper/program.ts';
import type { PodShell } from './shell.ts';

/** The largest list of the files that an agent may write, compressed. */
const baselineBytes = 64 * 2 ** 20;

/** The longest result of a write: a path and the system's message about it. */
const resultBytes = 64 * 2 ** 10;
/** The time for all files of an agent that is root, which is less than an activity has. */
const carryMs = 20 * 60_000;

/** The list of files is the keeper's, so that no agent reaches it but one that is root, which may spoil its own snapshot with it. */
const baseline = `${keeperDirectory}/.baseline`;
/** The programs that an agent that is root counts as having changed, when work on its sandbox fails. */
const anything = ['programs or files, as it is root'];
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
const contentsFrame = z.object({
  listings: z.array(z.object({ directory: z.string(), names: z.array(z.string()) })),
  added: z.array(z.string()),
});
const firstFrames = z.union([z.object({ begin: z.literal(true), tooMany: z.boolean() }), contentsFrame]);
const nextFrame = z.union([z.object({ end: z.literal(true) }), entryFrame]);
const writeResult = z.object({ refusal: z.string().nullable() });

/** A sandbox, and whether its agent is root and has used it. */
interface Used {
  readonly name: string;
  readonly root: boolean;
  /** Tells whether the kernel has ended a process there for lack of memory since the work began. Absent where no agent can be the cause. */
  readonly wasShort?: () => Promise<boolean>;
}

/**
 * Creates the functions that carry a Pod's changes. A program that runs as the agent, from a read-only mount, finds what the agent
 * has changed and makes it again: whatever that program is led to do, the agent could have done itself.
 */
export function createCarriedChanges(shell: PodShell, root: boolean): SandboxChanges {
  const script = async (what: InsideRequest['do'], leftOut: readonly string[] = []): Promise<Script> => {
    const fixed = [...ownPaths, programsDirectory, ...leftOut];
    const scope = { root: '', uid: shell.uidOf('agent'), starts: ['/'], fixed, ...(root && { all: true as const }) };
    const request: InsideRequest = { do: what, scope, limits: carriedLimits };
    const words = [...node, '--input-type=module', '--eval', await insideProgram(), JSON.stringify(request)];
    return { role: 'agent', text: 'exec "$@"', args: words };
  };
  const before: Used = { name: shell.name, root: false };
  const used: Used = { name: shell.name, root };
  const run = async (asked: Script, { name, root: rooted }: Used, signal: AbortSignal): Promise<Buffer> => {
    const { exitCode, stdout, stderr, truncated } = await shell.run(
      { maxOutputBytes: baselineBytes, ...asked },
      signal,
    );
    if (exitCode === 0 && !truncated) return stdout;
    throw await unreadable(
      { name, root: rooted },
      truncated ? 'too long a list' : stderr.toString('utf8').trim().slice(-500),
    );
  };
  const oomKills = async (signal: AbortSignal): Promise<number> =>
    Number(await run({ role: 'keeper', text: countOomKills, args: [] }, used, signal));
  const give = async (paths: readonly string[], signal: AbortSignal): Promise<void> => {
    const stdin = Buffer.from(JSON.stringify(paths));
    const exitCode = await shell.runAsOwner({ ...(await script('give')), stdin }, signal);
    if (exitCode !== 0) throw await unreadable(used, `giving files to the grader ended with exit code ${exitCode}`);
  };
  return {
    async note(signal) {
      const packed = await run(await script('note'), before, signal);
      unpackBaseline(packed);
      await run({ role: 'keeper', text: keep, args: [baseline], stdin: packed }, before, signal);
    },
    async read(leftOut, signal) {
      await shell.endAll('agent');
      const packed = await run({ role: 'keeper', text: show, args: [baseline] }, used, signal);
      const before = await oomKills(signal);
      const read: Used = { ...used, wasShort: async () => (await oomKills(signal)) > before };
      const stream = limited(read, await shell.stream(await script('read', leftOut)));
      const frames = readFrames(stream);
      const contents = await explained(read, stream, signal, () => {
        stream.end(packed);
        return readContents(frames);
      });
      if (contents !== null) return { ...contents, entries: () => entriesOf(read, stream, frames, signal) };
      stream.destroy();
      return tooManyChanges;
    },
    async write({ listings, added, entries }, signal) {
      const stream = limited(used, await shell.stream(await script('write')));
      return explained(used, stream, signal, async () => {
        const told = readHead(stream, resultBytes);
        const given: string[] = [];
        const frames = encodeChanges({ listings, added }, false, notingGiven(entries, given));
        await pipeline(Readable.from(frames), stream);
        const { refusal } = writeResult.parse(JSON.parse((await told).toString('utf8')));
        if (refusal === null && given.length > 0) await give(given, signal);
        return refusal;
      });
    },
    // Without root the agent has no rights on programs of the image. With it, nothing in the sandbox is to be believed, and the
    // cluster does not tell what was changed.
    changedPrograms: async () => (root ? anything : []),
  };
}

/** Reads the contents of changes; null if they exceed the limits, or the Pod says so. */
async function readContents(frames: FrameReader): Promise<JoinedContents | null> {
  const contents = joinContents();
  for (;;) {
    const found = firstFrames.parse(await frames.next());
    if ('begin' in found) return found.tooMany ? null : contents;
    if (!contents.add(found)) return null;
  }
}

/** Passes entries on, and notes the paths of those that the grader gets. Each directory comes before what is in it. */
async function* notingGiven(entries: AsyncIterable<CarriedEntry>, given: string[]): AsyncIterable<CarriedEntry> {
  for await (const entry of entries) {
    if (entry.header.toGrader) given.push(entry.header.path);
    yield entry;
  }
}

/** Breaks the stream of an agent that is root after a while, since it may have the program wait for ever. */
function limited({ root }: Used, stream: Duplex): Duplex {
  if (!root) return stream;
  const stop = () => stream.destroy(new Error(`the files were not carried within ${carryMs / 60_000} minutes`));
  const timer = setTimeout(stop, carryMs);
  return stream.once('close', () => clearTimeout(timer));
}

async function* entriesOf(
  sandbox: Used,
  stream: Duplex,
  frames: FrameReader,
  signal: AbortSignal,
): AsyncIterable<CarriedEntry> {
  const stop = stopOnAbort(stream, signal);
  try {
    for (;;) {
      const found = await explained(sandbox, stream, signal, async () => nextFrame.parse(await frames.next()));
      if ('end' in found) return;
      yield { header: headerOf(found), content: contentOf(sandbox, frames.content(found.size), signal) };
    }
  } finally {
    stop();
    stream.destroy();
  }
}

async function* contentOf(
  sandbox: Used,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  try {
    yield* bytes;
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof TemperFailure) throw cause;
    throw await unreadable(sandbox, errorMessage(cause), cause);
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
  sandbox: Used,
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
    throw await unreadable(sandbox, errorMessage(cause), cause);
  } finally {
    stop();
  }
}

/**
 * Returns the failure of work on files. It is the agent's doing, and scored, if it is root and has used the sandbox; see
 * `blamingBrokenPrograms`. So it is if what it has left fills the memory, so that the kernel ends the program that reads, or if the
 * program ends or says something else although its connection holds; see `usingWhatAgentLeft`.
 */
async function unreadable({ name, root, wasShort }: Used, evidence: string, cause?: unknown): Promise<SandboxFailure> {
  const text = `the files of sandbox ${name} could not be carried`;
  if (root) return new SandboxFailure('Internal', text, { cause, evidence });
  if (await wasShort?.()) {
    const full = `${text}, since what its agent has left fills its memory`;
    return new SandboxFailure('SandboxLost', full, { cause, evidence, loss: 'out-of-memory' });
  }
  const isProgram = cause instanceof EndedEarly || cause instanceof SyntaxError || cause instanceof z.ZodError;
  if (isProgram) return new SandboxFailure('Internal', text, { cause, evidence });
  return new SandboxFailure('SandboxUnavailable', `${text}; temper tries again`, { cause, evidence });
}
