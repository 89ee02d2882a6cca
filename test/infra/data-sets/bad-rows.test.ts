import assert from 'node:assert/strict';
import { it } from 'node:test';
import { dataSetPlace, failure, sweRow } from '../../helpers/tasks/data-set.ts';

const bad: readonly (readonly [string, object, string, RegExp])[] = [
  [
    'a missing field',
    { problem_statement: undefined },
    'MalformedTask',
    /rows\.jsonl: row 2: problem_statement: expected the text of the issue, got nothing/,
  ],
  ['a field of another type', { base_commit: 7 }, 'MalformedTask', /row 2: base_commit: expected a commit, got 7/],
  [
    'a list that is none',
    { FAIL_TO_PASS: 'tests/a.py' },
    'MalformedTask',
    /row 2: FAIL_TO_PASS: expected a list of test names, got "tests\/a\.py"/,
  ],
  [
    'a list that holds something else',
    { PASS_TO_PASS: ['a', 5] },
    'MalformedTask',
    /row 2: PASS_TO_PASS\.1: expected test name, got 5/,
  ],
  [
    'nothing to pass',
    { FAIL_TO_PASS: '[]' },
    'MalformedTask',
    /FAIL_TO_PASS: expected at least one test name, got "\[\]"/,
  ],
  [
    'two wrong fields',
    { repo: ' ', patch: 1 },
    'MalformedTask',
    /repo: expected a repository.*; patch: expected a patch, or nothing, got 1/,
  ],
  [
    'a repository whose tests nobody described',
    { repo: 'some/thing' },
    'UnsupportedTask',
    /row 2: log_parser: expected it in the row, or one of the repositories astropy\/astropy,.*got repo "some\/thing"/,
  ],
];
for (const [what, fields, type, message] of bad) {
  it(`${what} is refused as ${type} by file, row and field, and hides no other row`, async () => {
    await using place = await dataSetPlace();
    const rows = [sweRow, { ...sweRow, instance_id: 'bad', ...fields }, { ...sweRow, instance_id: 'last' }];
    const set = `swe-bench:${await place.writeRows('rows.jsonl', rows)}`;
    await assert.rejects(place.tasks.resolve(`${set}#bad`), failure(type, message));
    const fine: string[] = [];
    for await (const { id, read } of place.tasks.scan(set))
      await read().then(
        () => fine.push(id),
        () => {},
      );
    assert.deepEqual(fine, [sweRow.instance_id, 'last']);
  });
}

it('a line that is no JSON and a row without an id are known by their numbers', async () => {
  await using place = await dataSetPlace();
  const lines = [JSON.stringify(sweRow), '{"instance_id": "cut', '', JSON.stringify({ ...sweRow, instance_id: null })];
  const set = `swe-bench:${await place.write('rows.jsonl', `${lines.join('\n')}\n`)}`;
  assert.deepEqual(
    (await place.tasks.list(set)).map((address) => address.slice(set.length)),
    [`#${sweRow.instance_id}`, '#row-2', '#row-3'],
  );
  await assert.rejects(
    place.tasks.resolve(`${set}#row-2`),
    failure('MalformedTask', /row 2: expected JSON, got "\{\\"inst/),
  );
  await assert.rejects(
    place.tasks.resolve(`${set}#row-3`),
    failure('MalformedTask', /row 3: instance_id: expected the name/),
  );
});

it('broken rows of several files hide no row, and are known by their files too', async () => {
  await using place = await dataSetPlace();
  const good = (id: string): string => JSON.stringify({ ...sweRow, instance_id: id });
  await place.write('set/a.jsonl', `{"instance_id": "cut\n${good('x__x-1')}\n`);
  await place.write('set/b.jsonl', `{"instance_id": "cut\n${good('x__x-2')}\n`);
  const set = `swe-bench:${place.root}/set`;
  assert.deepEqual(
    (await place.tasks.list(set)).map((address) => address.slice(set.length)),
    ['#a.jsonl-row-1', '#x__x-1', '#b.jsonl-row-1', '#x__x-2'],
  );
  assert.equal((await place.tasks.resolve(`${set}#x__x-2`)).id, 'x__x-2');
  await assert.rejects(
    place.tasks.resolve(`${set}#b.jsonl-row-1`),
    failure('MalformedTask', /b\.jsonl: row 1: expected JSON/),
  );
});

it('two rows of one id are refused: an address could not tell them apart', async () => {
  await using place = await dataSetPlace();
  const set = `swe-bench:${await place.writeRows('rows.jsonl', [sweRow, { ...sweRow, repo: 'a/b' }])}`;
  await assert.rejects(
    place.tasks.list(set),
    failure('MalformedTask', /row 2: expected an id that no other row has, got pallets__flask-5014 as in row 1/),
  );
});

it('an address is refused with what it should have been', async () => {
  await using place = await dataSetPlace();
  const file = await place.writeRows('rows.jsonl', [sweRow]);
  const refused: readonly (readonly [string, RegExp])[] = [
    [`swe-bunch:${file}`, /expected generated:.* with a format of swe-bench, swe-gym,.*got "swe-bunch:/],
    ['swe-bench:rows.jsonl#a', /a place \/<path>, https:\/\/… or hub:/],
    [`swe-bench:${file}?imag=x#a`, /expected <format>:<place>\[\?image=\|repositories=\|split=\|sha256=…\]/],
    [`swe-bench:${file}?sha256=no#a`, /sha256: expected 64 hexadecimal digits/],
    [`swe-bench:${file}`, /expected one task, got a data set; name one as .*rows\.jsonl#<id>/],
    [`swe-bench:${file}#other`, /expected one of 1 tasks \(pallets__flask-5014\), got another id/],
    [`swe-bench:${place.root}/none.jsonl#a`, /none\.jsonl: there is no such/],
    ['swe-bench:/etc/passwd#a', /expected a path below one of the task roots/],
    [`swe-bench:${place.root}#a`, /expected one of 1 tasks/],
  ];
  for (const [address, message] of refused) {
    await assert.rejects(place.tasks.resolve(address), failure('UnknownTask', message), address);
  }
});
