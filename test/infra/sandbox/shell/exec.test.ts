import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SandboxFailure } from '../../../../infra/sandbox/failure.ts';
import type { StoredSpec } from '../../../../infra/sandbox/labels.ts';
import type { SandboxLabels } from '../../../../infra/sandbox/sandbox.ts';
import { createReports } from '../../../../infra/sandbox/shell/reports.ts';
import { createShellSandbox } from '../../../../infra/sandbox/shell/sandbox.ts';
import * as scripts from '../../../../infra/sandbox/shell/scripts.ts';
import type { Script, ScriptResult, Shell } from '../../../../infra/sandbox/shell/shell.ts';

const cut = new SandboxFailure('SandboxUnavailable', 'the connection is cut');
const gone = new SandboxFailure('SandboxLost', 'the sandbox is gone');

/** A sandbox whose foreground commands and whose way to end them are the test's. */
function createSandboxOfTest(run: () => Promise<ScriptResult>, end: () => Promise<ScriptResult>) {
  const shell = {
    name: 'one',
    quietTasks: null,
    run: ({ text }: Script) => (text === scripts.killMarked ? end() : run()),
  } as unknown as Shell;
  const spec = { pids: 10, diskMb: 10, workdir: '/work' } as StoredSpec;
  const reports = createReports().of('one');
  return createShellSandbox({ kind: 'local', shell, labels: {} as SandboxLabels, spec, reports });
}

const request = { account: 'agent', argv: ['sleep', '60'], env: {}, timeoutMs: 1, maxOutputBytes: 100 } as const;

describe('a foreground command that runs out of its time', () => {
  it('fails with the reason why it could not be ended, even if it never returns', { timeout: 120_000 }, async () => {
    const sandbox = createSandboxOfTest(
      () => new Promise(() => undefined),
      () => Promise.reject(cut),
    );
    await assert.rejects(sandbox.exec(request, new AbortController().signal), cut);
  });

  it('fails with its own error at once, whatever becomes of its end', { timeout: 120_000 }, async () => {
    const ran = Promise.withResolvers<ScriptResult>();
    const ended = Promise.withResolvers<ScriptResult>();
    const sandbox = createSandboxOfTest(
      () => ran.promise,
      () => {
        ran.reject(gone);
        return ended.promise;
      },
    );
    await assert.rejects(sandbox.exec(request, new AbortController().signal), gone);
    ended.reject(cut);
  });
});
