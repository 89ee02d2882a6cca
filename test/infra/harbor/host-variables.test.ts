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
