import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readHarborTask } from '../../../infra/harbor/harbor-task.ts';
import { isForgeable } from '../../../infra/tasks/forgeable.ts';
import { treeOf } from '../../helpers/sandbox/workspaces.ts';

const kept = '[grading]\nsandbox = "same"\nkeep_processes = true\n';
const image = '[environment]\ndocker_image = "debian:12"\n';
const forgeable = (toml: string, dockerfile?: string): boolean =>
  isForgeable(
    readHarborTask(
      treeOf({
        'task.toml': toml,
        'instruction.md': 'Do it.\n',
        'environment/workspace/work': 'open\n',
        ...(dockerfile !== undefined && { 'environment/Dockerfile': dockerfile }),
        'tests/test.sh': 'true\n',
      }),
    ),
  );

describe('a task whose tests run beside processes of its agent', () => {
  it('is forgeable if the agent is root', () => {
    assert.equal(forgeable(`${image}${kept}`), false);
    assert.equal(forgeable(`${image}${kept}[agent]\nuser = "root"\n`), true);
    assert.equal(forgeable(`${image}[grading]\nsandbox = "same"\n[agent]\nuser = "root"\n`), false);
  });

  it('is forgeable if its environment has a PATH with a directory that the agent can write', () => {
    for (const [path, expected] of [
      ['/opt/venv/bin:/usr/bin:/bin', false],
      ['/workspace-tools:/usr/bin', false],
      ['/workspace/.venv/bin:/usr/bin', true],
      ['/usr/bin:/home/agent/.local/bin', true],
      ['node_modules/.bin:/usr/bin', true],
      ['/usr/bin:', true],
    ] as const) {
      assert.equal(forgeable(`${image}env = { PATH = "${path}" }\n${kept}`), expected, path);
      assert.equal(forgeable(`${image}${kept}[verifier]\nenv = { PATH = "${path}" }\n`), expected, path);
    }
  });

  it('is forgeable if the last stage of its Dockerfile has such a PATH', () => {
    for (const [dockerfile, expected] of [
      ['FROM debian:12\nWORKDIR /app\nRUN make\n', false],
      ['FROM debian:12\nWORKDIR /app\nENV PATH=/opt/venv/bin:$PATH\n', false],
      ['FROM debian:12\nWORKDIR /app\nENV PATH="/app/.venv/bin:$PATH"\n', true],
      ['FROM debian:12\nWORKDIR /app\nENV PATH /app/node_modules/.bin:$PATH\n', true],
      [`FROM debian:12\nWORKDIR /app\nENV A=1 HOME_OF=/app\nENV PATH=\${HOME_OF}/bin:\${PATH}\n`, true],
      ['FROM debian:12 AS made\nENV PATH=/app/bin:$PATH\nFROM made\nWORKDIR /app\nENV PATH=/opt/bin:$PATH\n', true],
      ['FROM debian:12 AS made\nENV PATH=/app/bin:$PATH\nFROM debian:12\nWORKDIR /app\nRUN make\n', false],
    ] as const)
      assert.equal(forgeable(kept, dockerfile), expected, dockerfile);
  });
});
