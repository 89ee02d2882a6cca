import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, failure, sweRow } from '../../../helpers/tasks/data-set-fixture.ts';

const bad: readonly (readonly [string, object, string, RegExp])[] = [
  [
    'a missing field',
    { problem_statement: undefined },
    'MalformedTask',
    /rows\.jsonl: row 2: problem_statement: expected the text of the issue, got nothing/,
  ],
  ['a field of another type', { base_commit: 7 }, 'MalformedTask', /row 2: base_commit: expected a commit, got 7/],
  [
    'an invalid list',
    { FAIL_TO_PASS: 'tests/a.py' },
    'MalformedTask',
    /row 2: FAIL_TO_PASS: expected a list of test names, got "tests\/a\.py"/,
  ],
  [
    'a list with an entry of another type',
    { PASS_TO_PASS: ['a', 5] },
    'MalformedTask',
    /row 2: PASS_TO_PASS\.1: expected test name, got 5/,
  ],
  [
    'no test to pass',
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
    'a repository without a known test command',
    { repo: 'some/thing' },
    'UnsupportedTask',
    /row 2: log_parser: expected it in the row, or one of the repositories astropy\/astropy,.*got repo "some\/thing"/,
  ],
];
for (const [what, fields, type, message] of bad) {
  it(`rejects a row with ${what} as ${type} by file, row and field, and does not hide other rows`, async () => {
    await using fixture = await createDataSetFixture();
    const rows = [sweRow, { ...sweRow, instance_id: 'bad', ...fields }, { ...sweRow, instance_id: 'last' }];
    const set = `swe-bench:${await fixture.writeRows('rows.jsonl', rows)}`;
    await assert.rejects(fixture.tasks.resolve(`${set}#bad`), failure(type, message));
    const fine: string[] = [];
    for await (const { id, read } of fixture.tasks.scan(set))
      await read().then(
        () => fine.push(id),
        () => {},
      );
    assert.deepEqual(fine, [sweRow.instance_id, 'last']);
  });
}

it('lists invalid JSON and a row without an id by their row numbers', async () => {
  await using fixture = await createDataSetFixture();
  const lines = [JSON.stringify(sweRow), '{"instance_id": "cut', '', JSON.stringify({ ...sweRow, instance_id: null })];
  const set = `swe-bench:${await fixture.write('rows.jsonl', `${lines.join('\n')}\n`)}`;
  assert.deepEqual(
    (await fixture.tasks.list(set)).map((address) => address.slice(set.length)),
    [`#${sweRow.instance_id}`, '#row-2', '#row-3'],
  );
  await assert.rejects(
    fixture.tasks.resolve(`${set}#row-2`),
    failure('MalformedTask', /row 2: expected JSON, got "\{\\"inst/),
  );
  await assert.rejects(
    fixture.tasks.resolve(`${set}#row-3`),
    failure('MalformedTask', /row 3: instance_id: expected the name/),
  );
});

it('lists broken rows of several files by file and row number, and does not hide other rows', async () => {
  await using fixture = await createDataSetFixture();
  const good = (id: string): string => JSON.stringify({ ...sweRow, instance_id: id });
  await fixture.write('set/a.jsonl', `{"instance_id": "cut\n${good('x__x-1')}\n`);
  await fixture.write('set/b.jsonl', `{"instance_id": "cut\n${good('x__x-2')}\n`);
  const set = `swe-bench:${fixture.root}/set`;
  assert.deepEqual(
    (await fixture.tasks.list(set)).map((address) => address.slice(set.length)),
    ['#a.jsonl-row-1', '#x__x-1', '#b.jsonl-row-1', '#x__x-2'],
  );
  assert.equal((await fixture.tasks.resolve(`${set}#x__x-2`)).id, 'x__x-2');
  await assert.rejects(
    fixture.tasks.resolve(`${set}#b.jsonl-row-1`),
    failure('MalformedTask', /b\.jsonl: row 1: expected JSON/),
  );
});

it('rejects two rows with the same id, which an address could not tell apart', async () => {
  await using fixture = await createDataSetFixture();
  const set = `swe-bench:${await fixture.writeRows('rows.jsonl', [sweRow, { ...sweRow, repo: 'a/b' }])}`;
  await assert.rejects(
    fixture.tasks.list(set),
    failure('MalformedTask', /row 2: expected a unique id, got pallets__flask-5014, which row 1 has too/),
  );
});

it('rejects an invalid address and describes a valid one', async () => {
  await using fixture = await createDataSetFixture();
  const file = await fixture.writeRows('rows.jsonl', [sweRow]);
  const refused: readonly (readonly [string, RegExp])[] = [
    [`swe-bunch:${file}`, /expected generated:.* with a format of harbor, swe-bench, swe-gym,.*got "swe-bunch:/],
    [
      'swe-bench:rows.jsonl#a',
      /a location \/<path>, https:\/\/…, hub:.*, git\+https:\/\/….* or one of terminal-bench@2\.0/,
    ],
    [
      `swe-bench:${file}?imag=x#a`,
      /expected <format>:<location>\[\?image=\|repositories=\|split=\|sha256=\|shell=\|grading=\|user=\|processes=…\]/,
    ],
    [`swe-bench:${file}?sha256=no#a`, /sha256: expected 64 hexadecimal digits/],
    [`swe-bench:${file}`, /expected one task, got a data set; name one as .*rows\.jsonl#<id>/],
    [`swe-bench:${file}#other`, /expected one of 1 tasks \(pallets__flask-5014\), got "other"/],
    [`swe-bench:${fixture.root}/none.jsonl#a`, /none\.jsonl: no such file or directory/],
    ['swe-bench:/etc/passwd#a', /expected a path below one of the task roots/],
    [`swe-bench:${fixture.root}#a`, /expected one of 1 tasks .*, got "a"/],
  ];
  for (const [address, message] of refused) {
    await assert.rejects(fixture.tasks.resolve(address), failure('UnknownTask', message), address);
  }
});
