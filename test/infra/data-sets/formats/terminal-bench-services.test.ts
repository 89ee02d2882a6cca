import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, failure, packed } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

const compose = (client: string, api = '{build: ./api}'): string => `services:
  client:
    ${client}
    container_name: \${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    depends_on: [api]
  api: ${api}
`;
const files = {
  ...terminalBench,
  'api/Dockerfile': 'FROM debian\nCOPY serve /serve\n',
  'api/serve': 'serve\n',
  'api/tests/own.py': 'a test of the service itself\n',
};

async function read(client: string, api?: string, more: Readonly<Record<string, string>> = {}) {
  await using fixture = await createDataSetFixture();
  for (const [path, text] of Object.entries({ ...files, 'docker-compose.yaml': compose(client, api), ...more })) {
    await fixture.write(`tb/services/${path}`, text);
  }
  return await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#services`);
}

it('reads the services of a terminal-bench task, whose tests then run in the sandbox of the agent', async () => {
  const { task, beside, gradedIn, build } = await read('build: .\n    image: $NAME', undefined, {
    Dockerfile: 'FROM debian\nCOPY . /all\nRUN true\n',
  });
  assert.deepEqual(task.services, [{ name: 'api', cpus: 1, memoryMb: 1024 }]);
  assert.deepEqual([beside?.names, gradedIn], [['main', 'client'], 'same']);
  const [api] = beside?.services ?? [];
  assert.ok(typeof api?.image === 'object' && 'files' in api.image);
  assert.deepEqual([...api.image.files.keys()].sort(), ['Dockerfile', 'serve', 'tests/own.py']);
  // The client's image holds what its Dockerfile copies: not the compose file, which may have passwords.
  assert.ok(build?.files.has('api/serve'));
  assert.equal(build?.files.has('docker-compose.yaml'), false);
});

it('refuses files of one name in the folder of the client and in those of services', async () => {
  const more = { 'in/Dockerfile': 'FROM debian\nCOPY . /all\n', 'in/api/serve': 'other\n' };
  const { build } = await read('build: ./in', '{build: ./api}', { ...more, 'in/api/serve': 'serve\n' });
  assert.equal(String(build?.files.get('Dockerfile')?.bytes), 'FROM debian\nCOPY . /all\n');
  await assert.rejects(
    read('build: ./in', '{build: ./api}', more),
    failure(
      'UnsupportedTask',
      /services\.client\.build\.context: expected a folder with no file of .*, got api\/serve/,
    ),
  );
});

it('builds a service by the text of its compose file', async () => {
  const { beside } = await read('build: .', '{build: {dockerfile_inline: "FROM debian:12\\nCOPY api /api\\n"}}', {
    Dockerfile: 'FROM debian\nRUN true\n',
  });
  const [api] = beside?.services ?? [];
  assert.ok(typeof api?.image === 'object' && 'files' in api.image);
  assert.equal(String(api.image.files.get('Dockerfile')?.bytes), 'FROM debian:12\nCOPY api /api\n');
  assert.ok(api.image.files.has('api/serve') && !api.image.files.has('solution.sh'));
});

it('builds a service from the folder of the task, without its tests and its solution', async () => {
  const more = { Dockerfile: 'FROM debian\nENTRYPOINT ["serve"]\nCOPY . /all\n', 'seed.sql': 'select 1;\n' };
  const { task, beside, entrypoint, workspace } = await read(
    'image: debian:bookworm',
    '{build: ., volumes: ["./seed.sql:/seed.sql"]}',
    more,
  );
  assert.deepEqual([task.image, entrypoint, workspace.size], ['debian:bookworm', null, 0]);
  const [api] = beside?.services ?? [];
  assert.ok(typeof api?.image === 'object' && 'files' in api.image);
  const paths = [...api.image.files.keys()];
  assert.ok(paths.includes('seed.sql') && paths.includes('Dockerfile'));
  assert.deepEqual(
    paths.filter((path) => /^(?:tests|solution|run-tests|task\.yaml|docker-compose)/.test(path)),
    [],
  );
});

it('refuses what a service cannot have, by its field', async () => {
  const refused = (api: string, message: RegExp) =>
    assert.rejects(read('image: debian:bookworm', api), failure('UnsupportedTask', message));
  await refused(
    '{image: a, volumes: ["./tests:/tests"]}',
    /services\.api\.volumes: expected files of the task other than its tests and solution, got \.\/tests/,
  );
  await refused('{image: a, privileged: true}', /services\/docker-compose\.yaml: services\.api\.privileged: expected/);
  await refused('{build: ./none}', /services\.api\.build: expected a Dockerfile in the context, got none\/Dockerfile/);
});
