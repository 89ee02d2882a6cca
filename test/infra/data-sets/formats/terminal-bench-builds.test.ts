import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, packed, textIn } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

const compose = (client: string): string => `services:\n  client:\n    ${client}\n`;

it('builds the client from a folder of the task, or by the text of the compose file', async () => {
  await using fixture = await createDataSetFixture();
  const write = async (name: string, files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries({ ...terminalBench, Dockerfile: 'FROM other\n', ...files })) {
      await fixture.write(`${name}/${name}/${path}`, text);
    }
    const { build, task } = await packed(fixture.tasks, `terminal-bench:${fixture.root}/${name}#${name}`);
    return { files: build?.files ?? new Map(), workdir: task.workdir };
  };
  const inline = 'build:\n      context: .\n      dockerfile_inline: "FROM debian:12\\nWORKDIR /inline\\nRUN true\\n"';
  const written = await write('inline', { 'docker-compose.yaml': compose(inline) });
  assert.equal(textIn(written.files, 'Dockerfile'), 'FROM debian:12\nWORKDIR /inline\nRUN true\n');
  assert.deepEqual([written.workdir, written.files.has('solution.sh')], ['/inline', false]);
  const below = await write('below', {
    'in/Dockerfile': 'FROM debian\nWORKDIR /own\nCOPY . .\n',
    'in/tests/own.py': 'of the image',
    'docker-compose.yaml': compose('build: ./in\n    volumes: ["./in/tests:/more"]'),
  });
  const copied = 'COPY [".temper-mounted/0","/more/"]\n';
  assert.equal(textIn(below.files, 'Dockerfile'), `FROM debian\nWORKDIR /own\nCOPY . .\n${copied}`);
  const paths = ['.temper-mounted/0/own.py', 'Dockerfile', 'tests/own.py'];
  assert.deepEqual([[...below.files.keys()].sort(), below.workdir], [paths, '/own']);
});
