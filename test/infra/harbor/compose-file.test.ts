import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';

const complete: Readonly<Record<string, string>> = {
  'task.toml': 'version = "1.0"\n[environment]\ndocker_image = "base:1"\n',
  'instruction.md': 'Do it.\n',
  'tests/test.sh': '#!/bin/bash\n',
};

const treeOf = (files: Readonly<Record<string, string>>) =>
  new Map(
    Object.entries({ ...complete, ...files }).map(([path, text]) => [path, { mode: 0o644, bytes: Buffer.from(text) }]),
  );

const failure = (type: string, message: RegExp) => (error: unknown) =>
  error instanceof TemperFailure && error.type === type && message.test(error.message)
    ? true
    : assert.fail(`expected ${type} ${message}, got ${error}`);

const composed = `services:
  main:
    build: {context: "\${CONTEXT_DIR}"}
    image: \${MAIN_IMAGE_NAME}
    command: [sh, -c, sleep infinity]
    environment: {TEST_DIR: "\${TEST_DIR}", GREETING: from compose, PORT: 1}
    volumes: ["\${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}", "shared:/shared"]
    depends_on: {api: {condition: service_healthy}}
  db:
    image: postgres:16
    volumes: [./seed.sql:/docker-entrypoint-initdb.d/seed.sql:ro, shared:/shared]
    mem_limit: 256m
    cpus: 0.5
  api:
    build: {context: ./api, dockerfile: Dockerfile.api}
    depends_on: [db]
  worker: {image: "\${MAIN_IMAGE_NAME}", command: worker}
volumes: {shared: {}}
`;
const composedFiles = {
  'environment/docker-compose.yaml': composed,
  'environment/seed.sql': 'select 1;\n',
  'environment/api/Dockerfile.api': 'FROM debian\nCOPY serve /serve\n',
  'environment/api/serve': 'serve\n',
};

it('reads the services of a compose file with the files that they are made from', () => {
  const toml = 'version = "1.0"\n[environment]\ndocker_image = "base:1"\n[environment.env]\nPORT = "2"\n';
  const { description, beside, env, entrypoint } = readHarborTask(treeOf({ 'task.toml': toml, ...composedFiles }));
  assert.deepEqual(description.services, [
    { name: 'db', cpus: 0.5, memoryMb: 256 },
    { name: 'api', cpus: 1, memoryMb: 1024 },
    { name: 'worker', cpus: 1, memoryMb: 1024 },
  ]);
  assert.deepEqual([description.image, entrypoint], ['base:1', null]);
  assert.deepEqual(env, { TEST_DIR: '/tests', GREETING: 'from compose', PORT: '2' });
  const [db, api, worker] = beside?.services ?? [];
  assert.deepEqual([db?.image, worker?.image], [{ image: 'postgres:16', from: 'registry' }, 'main']);
  assert.deepEqual(
    db?.files.map(({ tree, at }) => [at, [...tree.keys()]]),
    [['/docker-entrypoint-initdb.d', ['seed.sql']]],
  );
  const build = typeof api?.image === 'object' && 'files' in api.image ? api.image : assert.fail('api has no build');
  assert.match(build.image, /^temper-built:[0-9a-f]{40}$/);
  assert.deepEqual([...build.files.keys()].sort(), ['Dockerfile', 'Dockerfile.api', 'serve']);
  assert.deepEqual(beside?.names, ['main']);
  assert.deepEqual(beside?.volumes, [{ name: 'shared', target: '/shared', readOnly: false }]);
});

it('leaves a file of another name to the Dockerfile that copies it, as Harbor does', () => {
  const files = { 'environment/Dockerfile': 'FROM debian\nCOPY docker-compose.yml /app/\n' };
  const { beside, build } = readHarborTask(
    treeOf({ ...files, 'task.toml': 'version = "1.0"\n', 'environment/docker-compose.yml': composed }),
  );
  assert.equal(beside, null);
  assert.ok(build?.files.has('docker-compose.yml'));
});

it('takes the health check of the main service, if the task has none itself', () => {
  const main = `services: {main: {healthcheck: {test: [CMD, test, -e, "it's"], interval: 2s, retries: 9}}}\n`;
  const { healthCheck, beside } = readHarborTask(treeOf({ 'environment/docker-compose.yaml': main }));
  assert.equal(beside, null);
  const expected = { timeoutSec: 30, startPeriodSec: 0, startIntervalSec: 2, retries: 9 };
  assert.deepEqual(healthCheck, { command: `'test' '-e' 'it'\\''s'`, intervalSec: 2, ...expected });
});

it("runs the tests of a task with services in the agent's own sandbox, unless it says otherwise", () => {
  const gradedIn = (table: string, files = {}) =>
    readHarborTask(
      treeOf({ 'task.toml': `version = "1.0"\n[environment]\ndocker_image = "base:1"\n${table}`, ...files }),
    ).gradedIn;
  assert.equal(gradedIn('', composedFiles), 'same');
  assert.equal(gradedIn('[grading]\nsandbox = "snapshot"\n', composedFiles), 'snapshot');
  assert.equal(gradedIn('[verifier]\nenvironment_mode = "separate"\n', composedFiles), 'fresh');
  assert.equal(gradedIn(''), 'snapshot-or-fresh');
});

const refused: readonly (readonly [
  what: string,
  compose: string,
  files: Readonly<Record<string, string>>,
  message: RegExp,
])[] = [
  [
    'more rights than a container',
    'db: {image: "db:1", privileged: true}',
    {},
    /environment\/docker-compose\.yaml: services\.db\.privileged: expected a key that a sandbox supports, got true/,
  ],
  [
    'files mounted into the main container',
    'main: {volumes: ["./data:/data"]}',
    {},
    /services\.main\.volumes: expected no files: COPY them in environment\/Dockerfile, got \.\/data/,
  ],
  [
    'missing files',
    'db: {image: "db:1", volumes: ["./seed.sql:/seed.sql"]}',
    {},
    /services\.db\.volumes: expected files that the task has, got \.\/seed\.sql, which is missing/,
  ],
  [
    'a missing Dockerfile',
    'db: {build: ./db}',
    {},
    /services\.db\.build: expected a Dockerfile in the context, got db\/Dockerfile, which is missing/,
  ],
  [
    'a Dockerfile that makes the daemon download something',
    'db: {build: ./db}',
    { 'environment/db/Dockerfile': 'FROM debian\nADD http://example.com/x /x\n' },
    /services\.db\.build: expected a Dockerfile that can be built, got .*http:\/\/example\.com/,
  ],
];
for (const [what, compose, files, message] of refused) {
  it(`refuses a compose file with ${what}`, () => {
    const tree = treeOf({ 'environment/docker-compose.yaml': `services:\n  ${compose}\n`, ...files });
    assert.throws(() => readHarborTask(tree), failure('UnsupportedTask', message));
  });
}
