import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { taskOfTests } from '../../../infra/grading/artifacts/test-image.ts';
import { text } from '../../../infra/harbor/harbor-files.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { needs } from '../../../infra/tasks/task-needs.ts';
import { createDataSetFixture, failure } from '../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../helpers/tasks/terminal-bench-task.ts';

const read = (main: string, toml = '', test = 'true\n') =>
  readHarborTask(
    new Map([
      ['task.toml', text(`[environment]\ndocker_image = "i"\nworkdir = "/app/work"\nmemory_mb = 512\n${toml}`)],
      ['instruction.md', text('Do it.\n')],
      ['tests/test.sh', text(test)],
      ['environment/docker-compose.yaml', text(`services: {main: {${main}}}\n`)],
    ]),
  );

describe('the memory of a task', () => {
  it('has the directories and the shared memory of its compose file, within its limit', () => {
    const { description } = read(
      'tmpfs: [/run, "/cache/:size=64m,mode=700", "/half:size=50%"], shm_size: 256m, volumes: [{type: tmpfs, target: /big, tmpfs: {size: 8g}}]',
    );
    assert.equal(description.sharedMemoryMb, 256);
    assert.deepEqual(description.tmpfs, [
      { path: '/run', sizeMb: 512 },
      { path: '/cache', sizeMb: 64 },
      { path: '/half', sizeMb: 512 },
      { path: '/big', sizeMb: 512 },
    ]);
  });

  it('takes a directory at /dev/shm as shared memory, and the usual size as nothing', () => {
    const { description } = read('tmpfs: "/dev/shm:size=128m"');
    assert.deepEqual([description.sharedMemoryMb, description.tmpfs], [128, undefined]);
    assert.equal(read('shm_size: 64m').description.sharedMemoryMb, undefined);
  });

  for (const [main, toml, message] of [
    [
      'tmpfs: /app/work/build',
      '',
      /tmpfs: expected no directory in memory in or above the workdir \/app\/work, .*build/,
    ],
    ['tmpfs: /app', '', /in or above the workdir/],
    ['tmpfs: /', '', /services\.main\.tmpfs: expected absolute directories, got \//],
    [
      'tmpfs: /logs',
      '',
      /services\.main\.tmpfs: expected no directory in memory at \/logs\/verifier, which temper uses/,
    ],
    ['tmpfs: /home', '', /at \/home\/agent, which temper uses/],
    ['tmpfs: relative', '', /expected absolute directories, got relative/],
    ['tmpfs: "/x:size=big"', '', /tmpfs: expected a size such as "512m"/],
    ['shm_size: 1g', '', /shm_size: expected at most the memory of the sandbox, 512 MB, got 1024 MB/],
    ['', 'tmpfs = [{ path = "/tests/x" }]\n', /tmpfs: expected no directory in memory at \/tests, which temper uses/],
  ] as const) {
    it(`is refused for ${main}${toml}`, () =>
      assert.throws(() => read(main, toml), failure('UnsupportedTask', message)));
  }

  it('is that of its task.toml, too, and not that of tests in an image of their own', () => {
    const own = 'shared_memory_mb = 128\ntmpfs = [{ path = "/cache", size_mb = 32 }]\n';
    const { description } = read('', own);
    assert.deepEqual([description.sharedMemoryMb, description.tmpfs], [128, [{ path: '/cache', sizeMb: 32 }]]);
    const sandbox = { image: 't', workdir: '/', cpus: 1, memoryMb: 64, diskMb: 64 };
    const bundle = { digest: 'a', size: 1, mediaType: 'application/x-tar' };
    const { sharedMemoryMb, tmpfs } = taskOfTests({ ...description, id: 'a', bundle, testSandbox: sandbox });
    assert.deepEqual([sharedMemoryMb, tmpfs], [undefined, undefined]);
  });

  it('is empty for tests in a fresh sandbox, which a check of the set says', () => {
    const need = needs['files in memory for the tests'];
    const test = 'grep -q right /cache/answer\n';
    const snapshot = read('tmpfs: /cache', '', test);
    assert.deepEqual([need.isNeeded(snapshot), need.place?.(snapshot)], [true, 'tests/test.sh: /cache']);
    assert.equal(need.isNeeded(read('tmpfs: /cache', '[grading]\nsandbox = "same"\n', test)), false);
    assert.equal(need.isNeeded(read('tmpfs: /cache', '', 'ls /cached\n')), false);
  });

  it('is read from a task of terminal-bench', async () => {
    await using fixture = await createDataSetFixture();
    const compose = 'services: {client: {image: debian, tmpfs: "/run:size=16m", shm_size: 256m}}\n';
    for (const [path, content] of Object.entries({ ...terminalBench, 'docker-compose.yaml': compose })) {
      await fixture.write(`tb/memory/${path}`, content);
    }
    const { sharedMemoryMb, tmpfs } = await fixture.tasks.resolve(`terminal-bench:${fixture.root}/tb#memory`);
    assert.deepEqual([sharedMemoryMb, tmpfs], [256, [{ path: '/run', sizeMb: 16 }]]);
  });
});
