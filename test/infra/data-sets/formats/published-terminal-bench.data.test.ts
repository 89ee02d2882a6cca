import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { unpackArchive } from '../../../../infra/data-sets/fetch/archive.ts';
import { createTasks, type Tasks } from '../../../../infra/tasks/tasks.ts';
import type { Task } from '../../../../workflows/contracts/task.ts';
import { optionalData } from '../../../helpers/optional-data.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

/** The sets, with the workdir and the CPUs of their tasks. */
const sets: Readonly<Record<string, readonly [string, number]>> = {
  aider_polyglot: ['/app', 1],
  deveval: ['/app', 1],
  evoeval: ['/app', 1],
  livecodebenchpro: ['/app', 1],
  'swebench-verified': ['/testbed', 1],
};

describe('published tasks of terminal-bench', () => {
  let home: string;
  let root: string;
  let tasks: Tasks;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-published-'));
    root = join(await unpackArchive(optionalData.publishedTasks, home), 'wild');
    const dataSets = { directory: join(home, 'cache'), offline: true };
    tasks = createTasks({ store: createFileStore(join(home, 'store')), roots: [home], dataSets });
  });
  after(() => rm(home, { recursive: true, force: true }));

  /** Resolves all tasks of a set; a refused one is its message. */
  async function resolved(address: string): Promise<readonly (Task | string)[]> {
    const all = await tasks.list(address);
    return Promise.all(all.map((one) => tasks.resolve(one).catch((error: Error) => error.message)));
  }

  it('load', async () => {
    for (const [set, expected] of Object.entries(sets)) {
      const found = await resolved(`terminal-bench:${root}/${set}`);
      assert.equal(found.length, 5);
      for (const task of found) {
        assert.deepEqual(typeof task === 'string' ? task : [task.workdir, task.cpus], expected);
        const besideAgent = typeof task !== 'string' && task.gradedIn === 'same';
        assert.equal(besideAgent, set === 'deveval', 'tests in the agent’s shell run in its sandbox');
      }
    }
  });

  it('load with their own text, without tests and solution in the workspace, and all in a fresh shell', async () => {
    for (const task of await resolved(`terminal-bench:${root}/deveval?shell=fresh`))
      assert.equal(typeof task, 'object');
    for (const task of await resolved(`terminal-bench:${root}/livecodebenchpro`)) {
      assert.ok(typeof task !== 'string', String(task));
      const { instruction, build } = await tasks.open(task);
      assert.match(instruction, /create a C\+\+17 solution file at \/app\/main\.cpp[\s\S]*### Input/);
      const files = [...(build?.files ?? [])];
      assert.deepEqual(
        files
          .filter(([path]) => /^\.temper-mounted\/0\/(?:tests\/|run-tests|solution|task)/.test(path))
          .map(([path]) => path),
        [],
      );
      assert.equal(files.find(([path]) => path === 'solution.sh')?.[1].bytes.length, 0);
    }
  });
});
