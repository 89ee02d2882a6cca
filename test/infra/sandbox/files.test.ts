import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { it } from 'node:test';
import fc from 'fast-check';
import { type Header, pack } from 'tar-stream';
import { collect, type FileTree, packTree, relativeSegments, unpackTree } from '../../../infra/sandbox/files.ts';
import { drain, tarEntries } from '../../../infra/sandbox/tar-entries.ts';
import { countTurns } from '../../helpers/event-loop.ts';

const limits = { maxFiles: 100, maxBytes: 1_000_000 };
const owner = { uid: 1_000, gid: 1_000 };
const unpack = (bytes: Buffer, most = limits): Promise<FileTree> => unpackTree(Readable.from([bytes]), most);

const tarOf = (header: Partial<Header> & Pick<Header, 'name'>, text?: string): Promise<Buffer> => {
  const tar = pack();
  const packed = collect(tar);
  if (text === undefined) tar.entry(header);
  else tar.entry(header, text);
  tar.finalize();
  return packed;
};

it('packs and unpacks any tree unchanged', async () => {
  const name = fc.stringMatching(/^[a-zA-Z0-9 _.é-]{1,40}$/).filter((text) => !/^\.{1,2}$/.test(text));
  const entry = fc.record({ mode: fc.constantFrom(0o644, 0o755, 0o600), bytes: fc.uint8Array({ maxLength: 3_000 }) });
  const files = fc.array(fc.tuple(fc.array(name, { minLength: 1, maxLength: 4 }), entry), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(files, async (drawn) => {
      // Each file has a directory of its own, so that no name is both a file and a directory.
      const tree: FileTree = new Map(drawn.map(([path, file], index) => [[`d${index}`, ...path].join('/'), file]));
      const back = await unpack(await packTree(tree, owner));
      assert.deepEqual([...back.keys()].toSorted(), [...tree.keys()].toSorted());
      for (const [path, { mode, bytes }] of tree) {
        assert.equal(back.get(path)?.mode, mode);
        assert.deepEqual(Buffer.from(back.get(path)?.bytes ?? []), Buffer.from(bytes));
      }
    }),
    { numRuns: 50 },
  );
});

it('rejects names that leave the tree', async () => {
  for (const name of ['/etc/passwd', '../x', 'a/../../x', 'a/..', '..']) {
    assert.throws(() => relativeSegments(name), { name: 'FileRefused', reason: 'outside' }, name);
    await assert.rejects(unpack(await tarOf({ name }, 'x')), { name: 'FileRefused', reason: 'outside' }, name);
  }
  for (const name of ['', '.', 'a\0b']) assert.throws(() => relativeSegments(name), { reason: 'outside' });
});

it('rejects links and devices', async () => {
  for (const type of ['symlink', 'link', 'fifo', 'character-device'] as const) {
    await assert.rejects(
      unpack(await tarOf({ name: 'x', type, linkname: '/etc/passwd' })),
      { reason: 'not-a-file' },
      type,
    );
  }
});

it('rejects a tree beyond its limits and an incomplete tar', async () => {
  const bytes = await tarOf({ name: 'big' }, 'x'.repeat(5_000));
  await assert.rejects(unpack(bytes, { maxFiles: 1, maxBytes: 4_999 }), { reason: 'too-large' });
  await assert.rejects(unpack(bytes, { maxFiles: 0, maxBytes: 10_000 }), { reason: 'too-large' });
  await assert.rejects(unpack(bytes.subarray(0, 3_000)));
});

it('lets others have the event loop while it reads a tar that arrives in one piece', async () => {
  const tar = pack();
  const packed = collect(tar);
  for (let index = 0; index < 5_000; index += 1) tar.entry({ name: String(index) }, '');
  tar.finalize();
  const bytes = await packed;
  const { result, turns } = await countTurns(async () => {
    let entries = 0;
    for await (const { content } of tarEntries(Readable.from([bytes]))) {
      await drain(content);
      entries += 1;
    }
    return entries;
  });
  assert.equal(result, 5_000);
  assert.ok(turns >= bytes.length / 2 ** 16, `${turns} turns`);
});
