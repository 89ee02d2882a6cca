import assert from 'node:assert/strict';
import { it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { openInstruct as openInstructFormat } from '../../../../infra/data-sets/formats/open-instruct.ts';
import { collect } from '../../../../infra/sandbox/files.ts';
import { createDataSetFixture, failure, packed } from '../../../helpers/tasks/data-set-fixture.ts';

const openInstruct: Readonly<Record<string, string>> = {
  'one/instruction.md': 'Do one.',
  'one/tests/test.sh': '#!/bin/bash\n',
  'one/tests/data/in.txt': 'in',
  'one/environment/seeds/src/a.py': 'a\n',
  'one/image.txt': 'built:1\n',
  'one/setup.sh': '#!/bin/bash\npip install x\n',
  'two/instruction.md': 'Do two.',
  'two/tests/test.sh': '#!/bin/bash\n',
};

async function archive(files: Readonly<Record<string, string>>, link?: string): Promise<Uint8Array> {
  const tar = pack();
  const bytes = collect(tar);
  for (const [name, text] of Object.entries(files)) tar.entry({ name }, text);
  if (link !== undefined) tar.entry({ name: 'one/link', type: 'symlink', linkname: link });
  tar.finalize();
  return gzipSync(await bytes);
}

it('reads the same tasks from open-instruct’s directories and from their archive', async () => {
  await using fixture = await createDataSetFixture();
  for (const [path, text] of Object.entries(openInstruct)) await fixture.write(`dir/${path}`, text);
  const file = await fixture.write('published/task-data.tar.gz', await archive(openInstruct));
  const { task, workspace, setup, tests, grading } = await packed(
    fixture.tasks,
    `open-instruct:${fixture.root}/dir?image=base:1#one`,
  );
  assert.deepEqual([task.image, task.workdir, grading], ['built:1', '/workspace', null]);
  assert.deepEqual([...workspace.keys()], ['src/a.py']);
  assert.deepEqual(setup, ['#!/bin/bash\npip install x\n']);
  assert.deepEqual([...tests.keys()].sort(), ['data/in.txt', 'test.sh']);
  for (const source of [file, `${fixture.root}/published`]) {
    const again = await fixture.tasks.resolve(`open-instruct:${source}?image=base:1#one`);
    assert.equal(again.bundle.digest, task.bundle.digest);
    assert.equal((await fixture.tasks.resolve(`open-instruct:${source}?image=base:1#two`)).image, 'base:1');
  }
  await assert.rejects(
    fixture.tasks.resolve(`open-instruct:${file}#two`),
    failure(
      'MalformedTask',
      /two\/image\.txt: expected an image, got nothing; write the file, or name an image for all tasks with \?image=/,
    ),
  );
});

it('rejects an id that occurs in two archives, since one task would hide the other', async () => {
  await using fixture = await createDataSetFixture();
  for (const name of ['a', 'b']) await fixture.write(`${name}/one/instruction.md`, 'Do one.');
  const never = (): never => assert.fail('expected to ask for nothing');
  const paths = [`${fixture.root}/a`, `${fixture.root}/b`];
  await assert.rejects(
    openInstructFormat.open({ paths, options: {}, checkOut: never, unpack: never }),
    failure('MalformedTask', /expected a unique id, got one, which .*\/a\/one has too/),
  );
});

it('rejects an archive that leaves its directory or contains a link, and a file that is not an archive', async () => {
  await using fixture = await createDataSetFixture();
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ['dots', await archive({ '../../evil/instruction.md': 'x' }), /expected a relative path that stays in its tree/],
    [
      'link',
      await archive(openInstruct, '/etc/passwd'),
      /expected only files and directories, got a symlink: one\/link/,
    ],
    ['text', Buffer.from('no archive'), /expected a tar\.gz of task directories, got: incorrect header/],
  ];
  for (const [name, bytes, message] of cases) {
    const file = await fixture.write(`${name}/task-data.tar.gz`, bytes);
    await assert.rejects(fixture.tasks.list(`open-instruct:${file}`), failure('MalformedTask', message));
  }
  await fixture.write('empty/readme.txt', '');
  await assert.rejects(
    fixture.tasks.list(`open-instruct:${fixture.root}/empty`),
    failure('UnknownTask', /expected directories that contain instruction\.md, also in groups, got none/),
  );
});
