import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requireSuccess, requireTaskSuccess } from '../../../../infra/grading/workspace/require-success.ts';
import type { ExecResult } from '../../../../infra/sandbox/sandbox.ts';

const result = (over: Partial<ExecResult>): ExecResult => ({
  exitCode: 0,
  stdout: Buffer.alloc(0),
  stderr: Buffer.alloc(0),
  timedOut: false,
  truncated: false,
  ...over,
});
const late = result({ exitCode: 137, timedOut: true });
const killed = result({ exitCode: 137 });

describe('a command before the agent or the tests', () => {
  it('passes if it succeeded', () => {
    requireSuccess(result({}), 'the base commit');
    requireTaskSuccess(result({}), 'set-up command "make"');
  });

  it('is no fault of the task if it is one of temper and ran out of time', () => {
    assert.throws(() => requireSuccess(late, 'the base commit in /work'), {
      type: 'SandboxUnavailable',
      message: /^the base commit in \/work ran out of time, .*; the stage is retried$/,
    });
  });

  it('is no fault of the task if it is one of temper and was killed', () => {
    assert.throws(() => requireSuccess(killed, 'the base commit in /work'), {
      type: 'SandboxUnavailable',
      message: /^the base commit in \/work was killed, .*; the stage is retried$/,
    });
  });

  it('is a fault of the task if it failed, or is one of the task and ran out of time or was killed', () => {
    const failed = result({ exitCode: 127, stderr: Buffer.from('git: not found\n') });
    assert.throws(() => requireSuccess(failed, 'the base commit'), {
      type: 'SetupFailed',
      message: 'the base commit ended with exit code 127: git: not found; does the image contain git and a shell?',
    });
    assert.throws(() => requireTaskSuccess(late, 'set-up command "make"'), {
      type: 'SetupFailed',
      message: 'set-up command "make" ran out of time: no output',
    });
    assert.throws(() => requireTaskSuccess(killed, 'set-up command "make"'), {
      type: 'SetupFailed',
      message: 'set-up command "make" ended with exit code 137: no output',
    });
  });
});
