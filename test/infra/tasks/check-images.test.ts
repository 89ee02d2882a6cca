import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createSetChecker } from '../../../infra/tasks/check-set.ts';
import { createDataSetFixture } from '../../helpers/tasks/data-set-fixture.ts';

it('counts the tasks that need an image, where no sandbox here has one', async () => {
  await using fixture = await createDataSetFixture();
  for (const [name, file] of Object.entries({ held: 'workspace/a', built: 'Dockerfile' })) {
    const toml = name === 'held' ? '[environment]\ndocker_image = "debian:12"\n' : '';
    const files = {
      'instruction.md': 'a',
      'task.toml': toml,
      'tests/test.sh': 'true',
      [`environment/${file}`]: 'FROM a\n',
    };
    for (const [path, text] of Object.entries(files)) await fixture.write(`set/${name}/${path}`, text);
  }
  const needing = async (withoutImages: string | null) => {
    const host = { cpus: 8, memoryMb: 8192, network: 'none', variables: {}, hasOwnTools: false } as const;
    const checker = createSetChecker({ ...host, withoutImages });
    for await (const found of fixture.tasks.scan(`harbor:${fixture.root}/set`)) await checker.add(found);
    const { needs, usable } = checker.result();
    const found = needs.filter(({ need }) => need === 'sandboxes with images');
    return [usable, ...found.map(({ count, what, example }) => [count, what, example])];
  };
  assert.deepEqual(await needing('they are refused'), [2, [1, 'they are refused', 'built']]);
  assert.deepEqual(await needing(null), [2]);
});
