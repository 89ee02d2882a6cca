import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createTasks } from '../../../../infra/tasks/tasks.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

describe('the format openenv', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-openenv-tasks-'));
  });
  after(() => rm(root, { recursive: true }));

  const about = { environment: 'guess', instruction: 'Guess the number.', image: 'debian:bookworm' };

  async function open(name: string, value: unknown) {
    const file = join(root, `${name}.openenv.json`);
    await writeFile(file, typeof value === 'string' ? value : JSON.stringify(value));
    const dataSets = { directory: join(root, 'cache'), offline: true };
    const tasks = createTasks({ store: createFileStore(root), roots: [root], dataSets });
    return { tasks, set: `openenv:${file}` };
  }

  it('makes a task of each seed, whose tools the agent needs and whose reset no sandbox gets', async () => {
    const { tasks, set } = await open('seeds', { ...about, seeds: 3, reward: 'sum' });
    assert.deepEqual(
      await tasks.list(set),
      [0, 1, 2].map((seed) => `${set}#guess-${seed}`),
    );
    const task = await tasks.resolve(`${set}#guess-2`);
    assert.deepEqual([task.id, task.image, task.hostTools], ['guess-2', 'debian:bookworm', ['environment']]);
    const { instruction, toolFiles, workspace, tests } = await tasks.open(task);
    assert.match(instruction, /^Guess the number\.\n\nUse the tool `environment`/);
    const played = JSON.parse(Buffer.from(toolFiles.get('environment.json')?.bytes ?? '').toString());
    assert.deepEqual(played, { environment: 'guess', reset: { seed: 2 }, reward: 'sum' });
    assert.deepEqual([[...workspace.keys()], [...tests.keys()]], [['README.md'], ['test.sh']]);
  });

  it('makes a task of each list of arguments, and takes the image of the address where the file has none', async () => {
    const { image: _, ...plain } = about;
    const { tasks, set } = await open('resets', { ...plain, resets: [{ level: 'hard' }] });
    const task = await tasks.resolve(`${set}?image=alpine:3#guess-0`);
    assert.equal(task.image, 'alpine:3');
    await assert.rejects(tasks.resolve(`${set}#guess-0`), { type: 'MalformedTask', message: /expected an image/ });
    await assert.rejects(tasks.resolve(`${set}#guess-1`), { type: 'UnknownTask' });
  });

  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ['text', '{', /expected a JSON file with an environment/],
    ['nothing', {}, /environment: .*instruction: expected a text/],
    ['both', { ...about, seeds: 1, resets: [{}] }, /expected seeds, a number, or resets, a list/],
    [
      'name',
      { ...about, environment: 'http://host', seeds: 1 },
      /expected the name of an environment in environments.json/,
    ],
    ['reward', { ...about, seeds: 1, reward: 'best' }, /reward: expected one of last, sum/],
    ['many', { ...about, seeds: 100_001 }, /seeds: /],
  ];
  for (const [name, value, message] of wrong) {
    it(`refuses a file that is wrong: ${name}`, async () => {
      const { tasks, set } = await open(name, value);
      await assert.rejects(tasks.list(set), { type: 'MalformedTask', message });
    });
  }
});
