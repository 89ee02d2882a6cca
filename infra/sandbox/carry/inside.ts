import { lchownSync, lstatSync, readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { CarriedEntry, CarriedLimits, Contents } from '../changes.ts';
import { applyChanges } from './apply-changes.ts';
import { packBaseline, unpackBaseline } from './baseline.ts';
import { joinContents } from './contents.ts';
import { findChanges, noteFiles, startsOf } from './find-changes.ts';
import { type BeginFrame, type EntryFrame, encodeChanges, headerOf, readFrames } from './frames.ts';
import { type CarryScope, reach } from './scan.ts';

// Runs in a Pod from its text: as the agent, whose rights bound what it reads and writes, or as the grader to get files of the agent.
//
//     inside <JSON of InsideRequest>

/** The work of one process: its input and output are the baseline, packed, or frames of changes; that of `give` are paths as JSON. */
export interface InsideRequest {
  readonly do: 'note' | 'read' | 'write' | 'give';
  readonly scope: CarryScope;
  readonly limits: CarriedLimits;
}

/** The result of a write, as JSON. */
export interface WriteResult {
  readonly refusal: string | null;
}

const request: InsideRequest = JSON.parse(process.argv[1] ?? '');
// Root sees the files that the runtime mounts, which belong to no image and cannot be replaced.
const mounts = request.scope.all ? mountPoints() : [];
const scope: CarryScope = { ...request.scope, fixed: [...request.scope.fixed, ...mounts] };

/** Returns where something is mounted, apart from the root directory. */
function mountPoints(): readonly string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  return lines.map((line) => line.split(' ')[4] ?? '').filter((path) => path.length > 1);
}

async function note(): Promise<void> {
  await send([packBaseline(await noteFiles(scope))]);
}

async function read(): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece);
  const packed = Buffer.concat(pieces);
  const baseline = packed.length === 0 ? null : unpackBaseline(packed);
  const starts = baseline === null ? scope.starts : startsOf(baseline);
  const { entries, tooMany, ...contents } = await findChanges({ ...scope, starts }, baseline, request.limits);
  await send(encodeChanges(contents, tooMany, tooMany ? none() : entries()));
}

async function write(): Promise<void> {
  const frames = readFrames(process.stdin);
  const contents = joinContents();
  for (;;) {
    const found = (await frames.next()) as Contents | BeginFrame;
    if ('begin' in found) break;
    contents.add(found);
  }
  async function* entries(): AsyncIterable<CarriedEntry> {
    for (;;) {
      const found = (await frames.next()) as EntryFrame | { readonly end: true };
      if ('end' in found) return;
      yield { header: headerOf(found), content: frames.content(found.size) };
    }
  }
  const result: WriteResult = { refusal: await applyChanges(scope, { ...contents, entries: entries() }) };
  // The sender of the rest would mistake the end of this process for a broken connection.
  await frames.skipRest();
  await send([Buffer.from(JSON.stringify(result))]);
}

/** Gives the grader files of the agent, each directory before what is in it, which only the new owner may then enter. */
async function give(): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece);
  const paths: readonly string[] = JSON.parse(Buffer.concat(pieces).toString());
  for (const path of paths) {
    // What is below a directory that stays closed is out of reach for the tests, with any owner.
    const found = reach(() => lstatSync(path, { throwIfNoEntry: false }));
    // A path that leads elsewhere by now may be anyone's file.
    if (found?.uid === request.scope.uid) lchownSync(path, process.getuid?.() ?? 0, found.gid);
  }
}

const send = (bytes: Iterable<Buffer> | AsyncIterable<Buffer>): Promise<void> =>
  pipeline(Readable.from(bytes), process.stdout);

async function* none(): AsyncIterable<CarriedEntry> {
  // If there are too many changes, none are carried.
}

await { note, read, write, give }[request.do]();
