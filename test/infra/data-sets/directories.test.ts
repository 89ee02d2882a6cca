import assert from 'node:assert/strict';
import { it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { openInstruct as openInstructFormat } from '../../../infra/data-sets/formats/open-instruct.ts';
import { collect } from '../../../infra/sandbox/files.ts';
import { dataSetPlace, failure, packed } from '../../helpers/tasks/data-set.ts';

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

it('open-instruct’s directories and their archive are the same tasks', async () => {
  await using place = await dataSetPlace();
  for (const [path, text] of Object.entries(openInstruct)) await place.write(`dir/${path}`, text);
  const file = await place.write('published/task-data.tar.gz', await archive(openInstruct));
  const { task, workspace, setup, tests, grading } = await packed(
    place.tasks,
    `open-instruct:${place.root}/dir?image=base:1#one`,
  );
  assert.deepEqual([task.image, task.workdir, grading], ['built:1', '/workspace', null]);
  assert.deepEqual([...workspace.keys()], ['src/a.py']);
  assert.deepEqual(setup, ['#!/bin/bash\npip install x\n']);
  assert.deepEqual([...tests.keys()].sort(), ['data/in.txt', 'test.sh']);
  for (const source of [file, `${place.root}/published`]) {
    const again = await place.tasks.resolve(`open-instruct:${source}?image=base:1#one`);
    assert.equal(again.bundle.digest, task.bundle.digest);
    assert.equal((await place.tasks.resolve(`open-instruct:${source}?image=base:1#two`)).image, 'base:1');
  }
  await assert.rejects(
    place.tasks.resolve(`open-instruct:${file}#two`),
    failure(
      'MalformedTask',
      /two\/image\.txt: expected an image, got nothing; write one, or name one for all as \?image=/,
    ),
  );
});

it('an id that two archives have is refused, since one of its tasks would hide the other', async () => {
  await using place = await dataSetPlace();
  for (const name of ['a', 'b']) await place.write(`${name}/one/instruction.md`, 'Do one.');
  const never = (): never => assert.fail('expected to ask for nothing');
  const paths = [`${place.root}/a`, `${place.root}/b`];
  await assert.rejects(
    openInstructFormat.open({ paths, options: {}, checkOut: never, unpack: never }),
    failure('MalformedTask', /expected an id that no other task has, got one as in /),
  );
});

it('an archive that leads out of its directory, holds a link or is none is refused', async () => {
  await using place = await dataSetPlace();
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    ['dots', await archive({ '../../evil/instruction.md': 'x' }), /expected a relative path that stays in its tree/],
    [
      'link',
      await archive(openInstruct, '/etc/passwd'),
      /expected files and directories alone, got a symlink: one\/link/,
    ],
    ['text', Buffer.from('no archive'), /expected a tar\.gz of task directories, got: incorrect header/],
  ];
  for (const [name, bytes, message] of cases) {
    const file = await place.write(`${name}/task-data.tar.gz`, bytes);
    await assert.rejects(place.tasks.list(`open-instruct:${file}`), failure('MalformedTask', message));
  }
  await place.write('empty/readme.txt', '');
  await assert.rejects(
    place.tasks.list(`open-instruct:${place.root}/empty`),
    failure('UnknownTask', /expected directories with a instruction\.md, got none/),
  );
});
