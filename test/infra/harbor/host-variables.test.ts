import assert from 'node:assert/strict';
import { it } from 'node:test';
import { text } from '../../../infra/harbor/harbor-files.ts';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { fillVariables, neededVariables } from '../../../infra/harbor/host-variables.ts';
import { failure } from '../../helpers/tasks/data-set-fixture.ts';

it('gives a task those variables of the host that it may have, and names the others', () => {
  const env = `env = { KEY = "\${KEY}", MODEL = "\${MODEL:-small}", A = "\${B" }`;
  const tree = new Map([
    ['task.toml', text(`[environment]\ndocker_image = "i"\n[verifier]\n${env}\n`)],
    ['instruction.md', text('Do it.\n')],
    ['tests/test.sh', text('true\n')],
  ]);
  const task = readHarborTask(tree);
  assert.deepEqual(neededVariables(task), ['KEY']);
  assert.deepEqual(fillVariables(task, { KEY: 'k', MODEL: 'large' }).testEnv, { KEY: 'k', MODEL: 'large', A: `\${B` });
  assert.deepEqual(fillVariables(task, { KEY: '' }).testEnv, { KEY: '', MODEL: 'small', A: `\${B` });
  assert.throws(
    () => fillVariables(task, { MODEL: 'large' }),
    failure('UnsupportedTask', /expected the variable KEY of this host, .*; name it in TEMPER_TASK_VARIABLES/),
  );
});

it('gives services those variables of the host that tasks may have', () => {
  const compose = `services:
  main: {environment: {OWN: "\${OWN}"}}
  api:
    image: api:1
    environment: [KEY, "TOKEN=$TOKEN", "MODEL=\${MODEL:-small}", "LIMIT=\${CPUS}", "PRICE=$$5"]
`;
  const tree = new Map([
    ['task.toml', text('[environment]\ndocker_image = "i"\ncpus = 1\n')],
    ['instruction.md', text('Do it.\n')],
    ['tests/test.sh', text('true\n')],
    ['environment/docker-compose.yaml', text(compose)],
  ]);
  const task = readHarborTask(tree);
  assert.deepEqual(neededVariables(task), ['OWN', 'KEY', 'TOKEN']);
  const { env, beside } = fillVariables(task, { OWN: 'o', KEY: 'k', TOKEN: 't' });
  assert.equal(env.OWN, 'o');
  assert.deepEqual(beside?.services[0]?.env, { KEY: 'k', TOKEN: 't', MODEL: 'small', LIMIT: '1', PRICE: '$5' });
  assert.throws(
    () => fillVariables(task, { OWN: 'o', KEY: 'k' }),
    failure('UnsupportedTask', /variable TOKEN of this/),
  );
});
