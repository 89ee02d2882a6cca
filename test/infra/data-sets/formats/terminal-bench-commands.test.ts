import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createDataSetFixture, packed } from '../../../helpers/tasks/data-set-fixture.ts';
import { terminalBench } from '../../../helpers/tasks/terminal-bench-task.ts';

it('runs what the compose file starts, with the entry point of the image or its own', async () => {
  await using fixture = await createDataSetFixture();
  const cases = [
    ['waits', 'command: sleep infinity', null],
    ['text', 'command: /start.sh', ['/entry.sh', '/bin/sh', '-c', '/start.sh']],
    ['words', 'command: [sh, -c, "nginx && sleep infinity"]', ['/entry.sh', 'sh', '-c', 'nginx && sleep infinity']],
    ['own', 'entrypoint: [/own.sh, $T_BENCH_TEST_DIR]', ['/own.sh', '/tests']],
  ] as const;
  for (const [name, service] of cases) {
    const dockerfile = `FROM debian\n${name === 'waits' ? '' : 'ENTRYPOINT ["/entry.sh"]\n'}`;
    const files = {
      ...terminalBench,
      Dockerfile: dockerfile,
      'docker-compose.yaml': `services:\n  client: {build: ., ${service}}\n`,
    };
    for (const [path, text] of Object.entries(files)) await fixture.write(`tb/${name}/${path}`, text);
  }
  for (const [name, , entrypoint] of cases)
    assert.deepEqual((await packed(fixture.tasks, `terminal-bench:${fixture.root}/tb#${name}`)).entrypoint, entrypoint);
});
