import assert from 'node:assert/strict';
import { it } from 'node:test';
import { filesOfTests, taskOfTests } from '../../../infra/grading/artifacts/test-image.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { fillVariables } from '../../../infra/harbor/host-variables.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const environment = '[environment]\ndocker_image = "agent:1"\nworkdir = "/app"\ncpus = 2\nenv = { A = "1" }\n';
const tests = { 'tests/test.sh': 'true' };
const dockerfile = 'FROM python:3.12\nWORKDIR /judge\nCOPY . /tests\nENTRYPOINT ["serve"]\n';

const read = (verifier: string, files: Readonly<Record<string, string>> = tests, head = '') =>
  readHarborTask(
    treeOf({ 'task.toml': `${head}${environment}[verifier]\n${verifier}\n`, 'instruction.md': 'Do it.', ...files }),
  );

it('reads limits and a network of the tests alone, in the image of the task', () => {
  const { description, testImage, gradedIn } = read(
    '[verifier.environment]\ncpus = 1\nmemory_mb = 256\nnetwork_mode = "no-network"',
  );
  const { testSandbox, testNetwork } = description;
  assert.deepEqual(testSandbox, {
    image: 'agent:1',
    imageFrom: 'registry',
    workdir: '/app',
    cpus: 1,
    memoryMb: 256,
    diskMb: 2048,
  });
  assert.deepEqual([testImage, gradedIn, testNetwork], [null, 'fresh', undefined]);
  const like = read('environment_mode = "separate"').description;
  assert.ok(!('testSandbox' in like), 'the description of other tasks is as it was');
});

it('refuses artifacts of a service where the tests get nothing but artifacts', () => {
  const head = 'artifacts = ["a.txt", { source = "/out/rows", service = "db" }]\n';
  const message = /artifacts: expected files of the service main, .* got \/out\/rows of db; have the service write it/;
  for (const files of [tests, { 'tests/Dockerfile': dockerfile, ...tests }]) {
    assert.throws(() => read('environment_mode = "separate"', files, head), { type: 'UnsupportedTask', message });
  }
  // Other tests see the sandbox itself, so its author keeps them for people.
  assert.equal(read('', tests, head).keepsOutside, false);
});

it('reads a Dockerfile beside the tests, which then are in its image with the artifacts alone', () => {
  const files = { 'tests/Dockerfile': dockerfile, 'tests/test.sh': 'true' };
  const task = read(
    'environment_mode = "separate"',
    files,
    'artifacts = ["/srv/out", "a.txt", { source = "/srv/out" }]\n',
  );
  const { testSandbox } = task.description;
  assert.match(testSandbox?.image ?? '', /^temper-built:/);
  assert.deepEqual([testSandbox?.imageFrom, testSandbox?.workdir, testSandbox?.cpus], ['dockerfile', '/judge', 2]);
  assert.deepEqual([task.gradedIn, task.description.gradedIn], ['artifacts', 'artifacts']);
  assert.deepEqual(task.artifacts, ['/logs/artifacts', '/srv/out', '/app/a.txt']);
  assert.deepEqual(task.testImage?.entrypoint, ['serve', 'sh', '-c', 'sleep infinity']);
  assert.deepEqual([task.testImage?.env, task.env], [{ A: '1' }, { A: '1' }]);
  const judged = filesOfTests(task);
  assert.deepEqual([judged.tests.size, judged.workspace.size, judged.build?.files.size], [0, 0, 2]);
  assert.equal(read('timeout_sec = 5', files).testImage, null, 'tests in the agent’s environment have no other image');
});

it('reads an image by its name, which may hold all tests, with an environment of its own', () => {
  const task = read(
    `[verifier.environment]\ndocker_image = "judge:2"\nworkdir = "/j"\nenv = { B = "\${B}" }\nhealthcheck = { command = "true" }`,
    {},
  );
  const { image, imageFrom } = task.description.testSandbox ?? {};
  assert.deepEqual([image, imageFrom, task.testImage?.build], ['judge:2', 'registry', null]);
  assert.equal(task.testImage?.healthCheck?.command, 'true');
  assert.throws(() => fillVariables(task, {}), { type: 'UnsupportedTask', message: /the variable B/ });
  assert.deepEqual(fillVariables(task, { B: 'b' }).testImage?.env, { B: 'b' });
});

const composeFile = 'tests/docker-compose.yaml';
const mounting = (settings: string): string => `services:\n  main:\n${settings}`;
const mount = '    volumes: [{ type: bind, source: ./grader.py, target: /tests/grader.py, read_only: true }]\n';

it('adds the files that a compose file mounts into the container of the tests to their image', () => {
  const files = { [composeFile]: mounting(mount), 'tests/grader.py': 'print(1)\n', ...tests };
  const task = read('[verifier.environment]\ndocker_image = "judge:2"\nworkdir = "/j"', files);
  const { image, imageFrom, workdir } = task.description.testSandbox ?? {};
  assert.match(image ?? '', /^temper-built:/);
  assert.deepEqual([imageFrom, workdir, task.testImage?.entrypoint], ['dockerfile', '/j', null]);
  const built = [...(task.testImage?.build?.files ?? [])].map(([path, { bytes }]) => [path, String(bytes)]);
  assert.deepEqual(built, [
    ['Dockerfile', 'FROM judge:2\nCOPY [".temper-mounted/0","/tests/grader.py"]\n'],
    ['.temper-mounted/0', 'print(1)\n'],
  ]);
  const beside = read('environment_mode = "separate"', { ...files, 'tests/Dockerfile': dockerfile });
  const { bytes } = beside.testImage?.build?.files.get('Dockerfile') ?? {};
  assert.match(String(bytes), /^FROM python:3\.12\n[\s\S]*COPY \["\.temper-mounted\/0","\/tests\/grader\.py"\]\n$/);
  assert.equal(read('', files).testImage, null, 'Harbor does not read the file of shared tests');
  const same = read('[verifier.environment]\ndocker_image = "judge:2"', { ...tests, [composeFile]: 'services: {}' });
  assert.equal(same.description.testSandbox?.image, 'judge:2');
});

it('has the image, source and limits of the tests in place of the agent’s', () => {
  const task = {
    image: 'agent:1',
    imageFrom: 'registry',
    cpus: 2,
    hosts: [{ name: 'here.test', address: '127.0.0.1' }],
    testSandbox: { image: 'temper-tasks:bookworm', cpus: 1 },
  };
  const { hosts } = task;
  assert.deepEqual(taskOfTests(task as unknown as Task), { image: 'temper-tasks:bookworm', cpus: 1, hosts });
});

it('refuses what tests of their own environment cannot have, by the field', () => {
  const own = '[verifier.environment]\ndocker_image = "judge:2"';
  const servicesBeside = { ...tests, [composeFile]: 'services:\n  db:\n    image: postgres:16\n' };
  const mounts = { ...tests, [composeFile]: mounting(mount) };
  const refused: readonly (readonly [string, RegExp, Readonly<Record<string, string>>?, string?])[] = [
    ['environment_mode = "shared"\n[verifier.environment]', /no such table, since environment_mode is "shared"/],
    [
      '[verifier.environment]\ngpus = 1',
      /verifier\.environment\.gpus: expected at most the 0 of the environment, got 1/,
    ],
    ['[verifier.environment]\nos = "windows"', /verifier\.environment\.os: expected linux, got windows/],
    ['[verifier.environment]\nworkdir = "/x"', /verifier\.environment\.workdir: expected \/app without an image/],
    ['[verifier.environment]\nenv = { A = "1" }', /verifier\.environment\.env: .* use verifier\.env/],
    [`${own}\n[grading]\nsandbox = "snapshot"`, /no grading\.sandbox beside an image of the tests, got "snapshot"/],
    [`${own}\n[grading]\nown_workdir = true`, /no code_as_agent and own_workdir/],
    [`${own}\n[tools]\nhost = ["answer"]`, /no host tool answer/],
    [own, /docker-compose\.yaml: expected files of tests\/ for one container .*, got services/, servicesBeside],
    [own, /got command/, { ...tests, [composeFile]: mounting('    command: serve\n') }],
    [own, /services\.main\.volumes: expected files that the task has, got \.\/grader\.py, which is missing/, mounts],
    ['environment_mode = "separate"', /an image of the tests for the mounts/, { ...mounts, 'tests/grader.py': '1' }],
    [own, /tests that write a reward/, { ...tests, 'grading.json': '{"failToPass": ["a"], "logParser": "tap"}' }],
    [
      `${own}\n[[steps]]\nname = "one"`,
      /one piece of work beside an image of the tests, got 1 steps/,
      { ...tests, 'steps/one/instruction.md': 'Do.' },
    ],
  ];
  for (const [verifier, message, files] of refused) assert.throws(() => read(verifier, files), { message }, verifier);
});

it('reads how many GPUs a task and its tests have, and of which types', () => {
  const gpusOf = (fields: string) => {
    const files = { 'task.toml': `${environment}${fields}`, 'instruction.md': 'Do it.', ...tests };
    const { gpus, gpuTypes } = readHarborTask(treeOf(files)).description;
    return [gpus, gpuTypes];
  };
  assert.deepEqual(gpusOf('gpus = 2'), [2, undefined]);
  assert.deepEqual(gpusOf('gpus = 0\ngpu_types = ["H100"]'), [undefined, undefined]);
  assert.deepEqual(gpusOf(''), [undefined, undefined]);
  const some = 'gpus = 2\ngpu_types = ["H100", "T4"]\n';
  const ofTests = '[verifier.environment]\ngpus = 1\ngpu_types = ';
  assert.deepEqual(gpusOf(`${some}${ofTests}["T4", "H100"]`), [2, ['H100', 'T4']]);
  const message = /verifier\.environment\.gpu_types: expected those of the environment \(H100, T4\), got L4/;
  assert.throws(() => gpusOf(`${some}${ofTests}["L4"]`), { message });
});
