import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { applyChanges } from '../../../../infra/sandbox/carry/apply-changes.ts';
import { packBaseline, unpackBaseline } from '../../../../infra/sandbox/carry/baseline.ts';
import { joinContents, piecesOf } from '../../../../infra/sandbox/carry/contents.ts';
import { findChanges, noteFiles, startsOf } from '../../../../infra/sandbox/carry/find-changes.ts';
import { largestFrame } from '../../../../infra/sandbox/carry/frames.ts';
import type { CarryScope } from '../../../../infra/sandbox/carry/scan.ts';
import type { CarriedEntry } from '../../../../infra/sandbox/changes.ts';
import { drain } from '../../../../infra/sandbox/tar-entries.ts';
import { itemsATurn } from '../../../../infra/sandbox/turns.ts';
import { countTurns } from '../../../helpers/event-loop.ts';

const uid = process.getuid?.() ?? 0;

function scopeIn(t: TestContext): CarryScope & { readonly at: (path: string) => string } {
  const root = mkdtempSync(join(tmpdir(), 'carry-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'place'));
  return { root, uid, starts: ['/place'], fixed: [], at: (path) => join(root, 'place', path) };
}

const put = (scope: ReturnType<typeof scopeIn>, files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(scope.at(path), '..'), { recursive: true });
    writeFileSync(scope.at(path), text);
  }
};

async function pathsOf(entries: AsyncIterable<CarriedEntry>): Promise<readonly string[]> {
  const paths: string[] = [];
  for await (const { header, content } of entries) {
    paths.push(header.path.replace('/place', ''));
    await drain(content);
  }
  return paths.sort();
}

it('carries files of every owner for an agent that is root', { skip: uid !== 0 && 'it needs root' }, async (t) => {
  const open = () => ({ ...scopeIn(t), all: true as const });
  const [from, to] = [open(), open()];
  for (const scope of [from, to]) put(scope, { kept: 'kept', closed: 'before', gone: 'gone', held: 'held' });
  for (const scope of [from, to]) chownSync(scope.at('held'), 99, 99);
  const baseline = await noteFiles(from);
  writeFileSync(from.at('closed'), 'after', { mode: 0o600 });
  writeFileSync(from.at('held'), 'taken');
  put(from, { theirs: 'theirs' });
  chownSync(from.at('theirs'), 99, 98);
  chmodSync(from.at('theirs'), 0o4750);
  rmSync(from.at('gone'));
  const found = await findChanges(from, baseline);
  assert.equal(await applyChanges(to, { ...found, entries: found.entries() }), null);
  assert.deepEqual([readFileSync(to.at('closed'), 'utf8'), readFileSync(to.at('held'), 'utf8')], ['after', 'taken']);
  const { uid: owner, gid, mode } = statSync(to.at('theirs'));
  assert.deepEqual([owner, gid, mode & 0o7777, statSync(to.at('held')).uid], [99, 98, 0o4750, 99]);
  assert.equal(existsSync(to.at('gone')), false);
});

it('finds what was written, moved or swapped since the baseline, whatever times and sizes it shows', async (t) => {
  const scope = scopeIn(t);
  put(scope, { kept: 'kept', same: 'aaaa', 'old/in': 'in', 'one/x': 'x1', 'two/x': 'x2' });
  const baseline = unpackBaseline(packBaseline(await noteFiles(scope)));
  assert.deepEqual(startsOf(baseline), ['/place']);
  const { mtime, atime } = statSync(scope.at('same'));
  writeFileSync(scope.at('same'), 'bbbb');
  utimesSync(scope.at('same'), atime, mtime);
  renameSync(scope.at('old'), scope.at('new'));
  renameSync(scope.at('one'), scope.at('swap'));
  renameSync(scope.at('two'), scope.at('one'));
  renameSync(scope.at('swap'), scope.at('two'));

  const { listings, added, entries } = await findChanges(scope, baseline);

  assert.deepEqual(await pathsOf(entries()), ['', '/new', '/new/in', '/one', '/one/x', '/same', '/two', '/two/x']);
  assert.deepEqual(added, ['/place/new']);
  const names = listings.find(({ directory }) => directory === '/place')?.names;
  assert.deepEqual([...(names ?? [])].sort(), ['kept', 'new', 'one', 'same', 'two']);
});

it('follows no link that leads out of the scope, neither when it reads nor when it writes', async (t) => {
  const [from, to] = [scopeIn(t), scopeIn(t)];
  const outside = scopeIn(t);
  put(outside, { secret: 'secret' });
  symlinkSync(outside.at(''), from.at('out'));
  const { entries, ...read } = await findChanges(from, null);
  assert.deepEqual(await pathsOf(entries()), ['', '/out']);
  assert.equal(await applyChanges(to, { ...read, entries: entries() }), null);
  assert.ok(lstatSync(to.at('out')).isSymbolicLink());

  const header = { type: 'file', mode: 0o644, uid: 'agent', gid: 'agent', mtime: new Date(0), size: 0 } as const;
  const through = async function* (path: string): AsyncIterable<CarriedEntry> {
    yield { header: { ...header, path }, content: (async function* () {})() };
  };
  const refused = await applyChanges(to, { listings: [], added: [], entries: through('/place/out/planted') });
  assert.match(refused ?? '', /\/place\/out is no directory/);
  assert.ok(!existsSync(outside.at('planted')));
  const lists = [{ directory: '/place/out', names: [] }];
  assert.equal(
    await applyChanges(to, { listings: lists, added: ['/place/out/secret'], entries: through('/place/a') }),
    null,
  );
  assert.equal(readFileSync(outside.at('secret'), 'utf8'), 'secret');
});

it('keeps a file that takes the place of a directory, and the other way round', async (t) => {
  const [from, to] = [scopeIn(t), scopeIn(t)];
  for (const scope of [from, to]) put(scope, { 'directory/in': 'in', file: 'file' });
  const baseline = await noteFiles(from);
  rmSync(from.at('directory'), { recursive: true });
  rmSync(from.at('file'));
  put(from, { directory: 'a file', 'file/in': 'now in a directory' });
  const { entries, ...read } = await findChanges(from, baseline);
  assert.equal(await applyChanges(to, { ...read, entries: entries() }), null);
  assert.equal(readFileSync(to.at('directory'), 'utf8'), 'a file');
  assert.equal(readFileSync(to.at('file/in'), 'utf8'), 'now in a directory');
});

it('never touches fixed paths', async (t) => {
  const [from, to] = [scopeIn(t), scopeIn(t)];
  put(from, { own: 'agent', 'above/own/x': 'agent', other: 'other' });
  put(to, { own: 'ours', 'above/own/x': 'ours', 'above/lost': 'lost' });
  const fixed = ['/place/own', '/place/above/own'];
  const { entries, ...read } = await findChanges({ ...from, fixed }, null);
  assert.deepEqual(await pathsOf(entries()), ['', '/above', '/other']);
  rmSync(from.at('above'), { recursive: true });
  writeFileSync(from.at('above'), 'in the way');
  const later = await findChanges({ ...from, fixed: [] }, null);
  assert.equal(
    await applyChanges({ ...to, fixed }, { ...read, added: ['/place/above'], entries: later.entries() }),
    null,
  );
  assert.deepEqual([readFileSync(to.at('own'), 'utf8'), readFileSync(to.at('above/own/x'), 'utf8')], ['ours', 'ours']);
  assert.ok(!existsSync(to.at('above/lost')));
});

it('says so if there are too many files, and reads a file of any claimed size as it was found', async (t) => {
  const scope = scopeIn(t);
  put(scope, { a: 'a', b: 'b', c: 'c' });
  assert.equal((await findChanges(scope, null, { files: 3, characters: 100 })).tooMany, true);
  const { tooMany, entries } = await findChanges(scope, null, { files: 4, characters: 100 });
  assert.equal(tooMany, false);
  for await (const { header, content } of entries()) {
    if (header.path !== '/place/a') continue;
    // It becomes shorter after it was found.
    truncateSync(scope.at('a'), 0);
    const chunks: Uint8Array[] = [];
    for await (const chunk of content) chunks.push(chunk);
    assert.deepEqual(Buffer.concat(chunks), Buffer.from([0]));
  }
});

it('counts the names of files that are not carried', async (t) => {
  const scope = scopeIn(t);
  execFileSync('mkfifo', [scope.at('pipe-1'), scope.at('pipe-2')]);
  const named = '/place'.length + 2 * 'pipe-1'.length;
  assert.equal((await findChanges(scope, null, { files: 100, characters: named })).tooMany, false);
  assert.equal((await findChanges(scope, null, { files: 100, characters: named - 1 })).tooMany, true);
});

it('writes nothing through a link that takes the place of a directory it has made', async (t) => {
  const [to, outside] = [scopeIn(t), scopeIn(t)];
  const common = { mode: 0o755, uid: 'agent', gid: 'agent', mtime: new Date(0), size: 0 } as const;
  const headers = [
    { ...common, path: '/place/a', type: 'directory' },
    { ...common, path: '/place/a/b', type: 'directory' },
    { ...common, path: '/place/a/b/first', type: 'file' },
    { ...common, path: '/place/a', type: 'symlink', target: outside.root },
    { ...common, path: '/place/a/place/second', type: 'file' },
  ] as const;
  const entries = async function* (): AsyncIterable<CarriedEntry> {
    for (const header of headers) yield { header, content: (async function* () {})() };
  };
  const refused = await applyChanges(to, { listings: [], added: [], entries: entries() });
  assert.match(refused ?? '', /\/place\/a\/place is no directory/);
  assert.ok(!existsSync(outside.at('second')));
});

it('lets others have the event loop while it lists a directory of very many files', async (t) => {
  const scope = scopeIn(t);
  for (let index = 0; index < 5_000; index += 1) writeFileSync(scope.at(String(index)), '');
  const { result, turns } = await countTurns(() => findChanges(scope, null, { files: 100, characters: 2 ** 20 }));
  assert.equal(result.tooMany, true);
  assert.ok(turns >= 5_000 / itemsATurn, `${turns} turns`);
});

it('puts contents together again from small pieces, and says when they exceed a limit', () => {
  const names = Array.from({ length: 5_000 }, (_, index) => `name-${index}`);
  const contents = {
    listings: [
      { directory: '/empty', names: [] },
      { directory: '/many', names },
      { directory: '/one', names: ['a'] },
    ],
    added: names.map((name) => `/added/${name}`),
  };
  const pieces = [...piecesOf(contents)];
  assert.ok(pieces.every((piece) => JSON.stringify(piece).length < largestFrame / 10));
  const joined = joinContents();
  for (const piece of pieces) assert.ok(joined.add(piece));
  assert.deepEqual({ listings: joined.listings, added: joined.added }, contents);
  const items = pieces.reduce((sum, { listings }) => sum + listings.length, 1 + 2 * names.length);
  const within = (files: number) => {
    const limited = joinContents({ files, characters: 2 ** 20 });
    return pieces.map((piece) => limited.add(piece)).at(-1);
  };
  assert.deepEqual([within(items), within(items - 1)], [true, false]);
  assert.deepEqual([...piecesOf({ listings: [], added: [] })], [{ listings: [], added: [] }]);
});

it('counts pieces that hold nothing, which could be sent without end', () => {
  const limited = joinContents({ files: 3, characters: 2 ** 20 });
  const piece = { listings: [], added: [] };
  assert.deepEqual([piece, piece, piece, piece].map(limited.add), [true, true, true, false]);
  assert.deepEqual(limited.listings, []);
});
