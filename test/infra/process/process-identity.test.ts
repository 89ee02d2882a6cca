import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { isRunning, processIdentity } from '../../../infra/process/process-identity.mjs';
import { until } from '../../helpers/until.ts';

/** Ends the first thread of the process (system call 60 is `exit` on x86-64, 93 on arm64) while another one waits for its input. */
const outlived = `
  use threads;
  threads->create(sub { <STDIN>; require POSIX; POSIX::_exit(0) })->detach;
  syscall(${process.arch === 'arm64' ? 93 : 60}, 0);
`;

describe('a process', { skip: process.platform !== 'linux' }, () => {
  it('runs until its last thread has ended, since that holds its files', async () => {
    const child = spawn('perl', ['-e', outlived], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    const identity = processIdentity(child.pid ?? 0);
    try {
      await until(async () => / Z /.test(await readFile(`/proc/${child.pid}/stat`, 'utf8')));
      assert.ok(isRunning(identity));
    } finally {
      child.stdin.end('\n');
    }
    await ended;
    assert.ok(!isRunning(identity));
  });
});
