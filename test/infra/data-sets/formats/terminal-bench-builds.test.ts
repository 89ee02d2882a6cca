import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, type DataSetFixture, packed, textIn } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

const compose = (client: string): string => `services:\n  client:\n    ${client}\n`;

async function read({ write, tasks, root }: DataSetFixture, name: string, files: Readonly<Record<string, string>>) {
  for (const [path, text] of Object.entries({ ...terminalBench, Dockerfile: 'FROM other\n', ...files })) {
    await write(`${name}/${name}/${path}`, text);
  }
  const { build, task, beside } = await packed(tasks, `terminal-bench:${root}/${name}#${name}`);
  return { files: build?.files ?? new Map(), workdir: task.workdir, network: build?.network?.mode, beside };
}

it('builds the client from a folder of the task, or by the text of the compose file', async () => {
  await using fixture = await createDataSetFixture();
  const inline = 'build:\n      context: .\n      dockerfile_inline: "FROM debian:12\\nWORKDIR /inline\\nRUN true\\n"';
  const written = await read(fixture, 'inline', { 'docker-compose.yaml': compose(inline) });
  assert.equal(textIn(written.files, 'Dockerfile'), 'FROM debian:12\nWORKDIR /inline\nRUN true\n');
  assert.deepEqual([written.workdir, written.network, written.files.has('solution.sh')], ['/inline', 'public', false]);
  const below = await read(fixture, 'below', {
    'in/Dockerfile': 'FROM debian\nWORKDIR /own\nCOPY . .\n',
    'in/tests/own.py': 'of the image',
    'docker-compose.yaml': compose('build: ./in\n    volumes: ["./in/tests:/more"]'),
  });
  const copied = 'COPY [".temper-mounted/0","/more/"]\n';
  assert.equal(textIn(below.files, 'Dockerfile'), `FROM debian\nWORKDIR /own\nCOPY . .\n${copied}`);
  const paths = ['.temper-mounted/0/own.py', 'Dockerfile', 'tests/own.py'];
  assert.deepEqual([[...below.files.keys()].sort(), below.workdir], [paths, '/own']);
});

it('builds the client without a network where the compose file says so, with and without services', async () => {
  await using fixture = await createDataSetFixture();
  const built = { Dockerfile: 'FROM debian:12\nCOPY . /all\nRUN true\n' };
  const offline = compose('build: {context: ., network: none}');
  const single = await read(fixture, 'single', { ...built, 'docker-compose.yaml': offline });
  assert.deepEqual([single.network, single.beside], ['none', null]);
  assert.equal(single.files.has('docker-compose.yaml'), false);
  const served = await read(fixture, 'served', {
    ...built,
    'docker-compose.yaml': `${offline}  db: {image: postgres}\n`,
  });
  assert.deepEqual([served.network, served.beside?.services.map(({ name }) => name)], ['none', ['db']]);
});
