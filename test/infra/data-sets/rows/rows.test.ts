import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { ByteWriter, type ColumnSource, parquetWrite } from 'hyparquet-writer';
import { openJsonLines } from '../../../../infra/data-sets/rows/jsonl.ts';
import { openParquet } from '../../../../infra/data-sets/rows/parquet.ts';
import type { RowFile } from '../../../../infra/data-sets/rows/row.ts';
import {
  createDataSetFixture,
  type DataSetFixture,
  failure,
  packed,
  sweRow,
} from '../../../helpers/tasks/data-set-fixture.ts';

let fixture: DataSetFixture;
before(async () => {
  fixture = await createDataSetFixture();
});
after(() => fixture[Symbol.asyncDispose]());

type Options = Omit<Parameters<typeof parquetWrite>[0], 'writer' | 'columnData'>;

async function parquet(columnData: ColumnSource[], options: Options = {}): Promise<Uint8Array> {
  const writer = new ByteWriter();
  await parquetWrite({ writer, columnData, ...options });
  return new Uint8Array(writer.getBuffer());
}

const columnsOf = (rows: readonly Readonly<Record<string, unknown>>[]): ColumnSource[] =>
  Object.keys(rows[0] ?? {}).map((name) => ({ name, data: rows.map((row) => row[name]) }));

async function collect(file: RowFile) {
  const rows: { readonly number: number; readonly position: number; readonly value: unknown }[] = [];
  for await (const row of file.rows()) rows.push({ number: row.number, position: row.position, value: row.read() });
  return rows;
}

it('reads a Parquet file group by group, with lists, numbers and times as in JSON', async () => {
  const rows = Array.from({ length: 25 }, (_, index) => ({
    id: `row ${index}`,
    size: BigInt(index),
    list: ['a', `${index}`],
  }));
  const columns = [
    ...columnsOf(rows.map(({ id, size }) => ({ id, size }))),
    { name: 'list', data: rows.map(({ list }) => list), type: 'JSON' as const },
  ];
  const file = openParquet(await fixture.write('groups.parquet', await parquet(columns, { rowGroupSize: 10 })));
  const found = await collect(file);
  assert.deepEqual(
    found.map(({ value }) => value),
    rows.map(({ size, ...row }) => ({ ...row, size: Number(size) })),
  );
  for (const one of [0, 9, 10, 24]) {
    assert.deepEqual((await file.at({ number: one + 1, position: one })).read(), found[one]?.value);
  }
  await assert.rejects(
    file.at({ number: 26, position: 25 }),
    failure('MalformedTask', /row 26: expected a row, got none/),
  );
});

for (const [codec, compress] of [
  ['GZIP', gzipSync],
  ['ZSTD', zstdCompressSync],
] as const) {
  it(`reads a Parquet file compressed with ${codec}`, async () => {
    const bytes = await parquet([{ name: 'id', data: ['a', 'b'] }], {
      codec,
      compressors: { [codec]: (input: Uint8Array) => compress(input) },
    });
    const found = await collect(openParquet(await fixture.write(`${codec}.parquet`, bytes)));
    assert.deepEqual(
      found.map(({ value }) => value),
      [{ id: 'a' }, { id: 'b' }],
    );
  });
}

it('rejects a file that is not Parquet by its name', async () => {
  const path = await fixture.write('text.parquet', 'this is a text and no Parquet file at all');
  await assert.rejects(
    collect(openParquet(path)),
    failure('MalformedTask', /text\.parquet: expected a Parquet file, got: /),
  );
});

it('makes byte-identical tasks from the same rows in JSON Lines, JSON and Parquet', async () => {
  const rows = ['a', 'b', 'c'].map((instance_id) => ({ ...sweRow, instance_id }));
  const files = [
    await fixture.writeRows('same/rows.jsonl', rows),
    await fixture.write('same/rows.json', JSON.stringify(rows)),
    await fixture.write('same/rows.parquet', await parquet(columnsOf(rows))),
  ];
  const bundles = await Promise.all(
    files.map(async (file) => {
      const addresses = await fixture.tasks.list(`swe-bench:${file}`);
      return Promise.all(addresses.map(async (address) => (await packed(fixture.tasks, address)).task.bundle.digest));
    }),
  );
  assert.equal(bundles[0]?.length, 3);
  assert.deepEqual(bundles[1], bundles[0]);
  assert.deepEqual(bundles[2], bundles[0]);
});

it('reads a JSON object of rows as these, and one whose members are fields as the only row', async () => {
  const byId = { a: { ...sweRow, instance_id: 'a' }, b: { ...sweRow, instance_id: 'b' } };
  const several = `swe-bench:${await fixture.write('objects/several.json', JSON.stringify(byId))}`;
  assert.deepEqual(await fixture.tasks.list(several), [`${several}#a`, `${several}#b`]);
  const single = `swe-bench:${await fixture.write('objects/single.json', JSON.stringify({ ...byId.a, more: {} }))}`;
  assert.deepEqual(await fixture.tasks.list(single), [`${single}#a`]);
  const none = `swe-bench:${await fixture.write('objects/none.json', '{}')}`;
  assert.deepEqual(await fixture.tasks.list(none), []);
});

it('reads the files of a split from a directory, in order', async () => {
  for (const [name, id] of [
    ['train-00001-of-00002', 'second'],
    ['train-00000-of-00002', 'first'],
    ['test-00000-of-00001', 'other'],
  ] as const) {
    await fixture.write(`shards/${name}.parquet`, await parquet(columnsOf([{ ...sweRow, instance_id: id }])));
  }
  const ids = async (split: string) => {
    const set = `swe-bench:${fixture.root}/shards${split}`;
    return (await fixture.tasks.list(set)).map((address) => address.slice(set.length + 1));
  };
  assert.deepEqual(await ids('?split=train'), ['first', 'second']);
  assert.deepEqual(await ids(''), ['other', 'first', 'second']);
});

it('reports a file that changes while it is in use, and then reads it again', async () => {
  const set = `swe-bench:${await fixture.writeRows('changing.jsonl', [sweRow, { ...sweRow, instance_id: 'b' }])}`;
  assert.equal((await fixture.tasks.list(set)).length, 2);
  await fixture.writeRows('changing.jsonl', [{ ...sweRow, instance_id: 'c' }]);
  await assert.rejects(
    fixture.tasks.resolve(`${set}#${sweRow.instance_id}`),
    failure('MalformedTask', /row 1: expected task pallets__flask-5014, got c: the file changed while it was in use/),
  );
  assert.equal((await fixture.tasks.resolve(`${set}#c`)).id, 'c');
});

it('finds lines of any content and length by their positions', async () => {
  const value = fc.record(
    { text: fc.string({ unit: 'binary', maxLength: 200 }), long: fc.constantFrom('', 'ß'.repeat(150_000)) },
    { noNullPrototype: true },
  );
  const blank = fc.constantFrom('\n', '\n\n', '\r\n', '\n \n');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(value, blank), { maxLength: 12 }), fc.boolean(), async (lines, ended) => {
      const content = lines.map(
        ([one, end], index) => `${JSON.stringify(one)}${index === lines.length - 1 && !ended ? '' : end}`,
      );
      const file = openJsonLines(await fixture.write('any.jsonl', content.join('')));
      const found = await collect(file);
      assert.deepEqual(
        found.map((row) => row.value),
        lines.map(([one]) => one),
      );
      for (const row of found) assert.deepEqual((await file.at(row)).read(), row.value);
    }),
    { numRuns: 10 },
  );
});

/** A program that iterates over a file and finds its last row, in a heap too small for all rows. */
const program = `
  const { dataSetFormats } = await import(process.argv[1]);
  const dataSet = await dataSetFormats['swe-bench'].open({ paths: [process.argv[2]], options: {} });
  console.log((await dataSet.ids()).length, (await dataSet.find('task-99999')).id);
`;
const formats = join(import.meta.dirname, '../../../../infra/data-sets/formats/index.ts');

it('iterates over a hundred thousand rows and finds one of them without holding all in memory', async () => {
  const padding = 'x'.repeat(1_000);
  const lines = (from: number): string =>
    Array.from({ length: 1_000 }, (_, one) => `{"instance_id":"task-${from + one}","padding":"${padding}"}\n`).join('');
  const path = await fixture.write(
    'many.jsonl',
    Buffer.concat(Array.from({ length: 100 }, (_, part) => Buffer.from(lines(part * 1_000)))),
  );
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--max-old-space-size=96',
    '--input-type=module',
    '-e',
    program,
    formats,
    path,
  ]);
  assert.equal(stdout, '100000 task-99999\n');
});
