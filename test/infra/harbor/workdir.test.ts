import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const read = (toml: string, dockerfile = 'FROM debian\nRUN make\n') =>
  readHarborTask(
    treeOf({
      'task.toml': `version = "1.0"\n${toml}`,
      'instruction.md': 'Do it.\n',
      'tests/test.sh': 'true\n',
      'environment/Dockerfile': dockerfile,
    }),
  );

describe('the workdir of a task', () => {
  it('is refused by its name where it is more than the work of a task', () => {
    for (const path of ['/', '/usr', '/etc', '/home', '/root', '/tmp/', '/var/../usr//bin', '/proc/self', '/dev/shm'])
      for (const task of [
        () => read(`[environment]\nworkdir = "${path}"\n`),
        () => read('', `FROM debian\nRUN make\nWORKDIR ${path}\n`),
      ])
        assert.throws(task, {
          type: 'UnsupportedTask',
          message: /^expected a workdir of the task's own, got \/[^;]*; move the work to a directory such as \/app/,
        });
  });

  it('may be a directory of its own anywhere', () => {
    for (const path of [
      '/app',
      '/root/work',
      '/home/dev',
      '/etc/nginx',
      '/usr/src/app',
      '/tmp/work',
      '/opt',
      '/var/www',
    ])
      assert.equal(read(`[environment]\nworkdir = "${path}"\n`).description.workdir, path);
    assert.equal(read('[environment]\nworkdir = "/app/../srv/./x/"\n').description.workdir, '/srv/x');
  });
});
