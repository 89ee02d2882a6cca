import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  endingOf,
  KeeperEnd,
  KeeperLate,
  mayBeDoneAgain,
  mayBeDoneInside,
  needsNoRetry,
} from '../../../../infra/sandbox/kubernetes/keeper-failure.ts';

/** A report as the API server sends it at the end of a command that failed without an exit code. */
const internal = (words: string): string => {
  const message = `Internal error occurred: error executing command in container: ${words}`;
  const details = { causes: [{ message }] };
  return JSON.stringify({ metadata: {}, status: 'Failure', message, reason: 'InternalError', details, code: 500 });
};
const exited = (code: number): string => {
  const message = `command terminated with non-zero exit code: command terminated with exit code ${code}`;
  const details = { causes: [{ reason: 'ExitCode', message: `${code}` }] };
  return JSON.stringify({ metadata: {}, status: 'Failure', message, reason: 'NonZeroExitCode', details });
};
const started = 'failed to exec in container: failed to start exec "4e36":';
const refused = 'OCI runtime exec failed: exec failed: unable to start container process:';

/** The reports of containerd 2.4, runc 1.1 and Kubernetes 1.37: the ending, and whether an agent may have caused it, without and with root. */
const reports: readonly (readonly [string, ReturnType<typeof endingOf>, boolean, boolean])[] = [
  [exited(137), 'killed', true, true],
  [
    internal(`${started} ${refused} read init-p: connection reset by peer (possibly OOM-killed)`),
    'not-started',
    true,
    true,
  ],
  [internal(`${started} ${refused} error executing setns process: signal: broken pipe`), 'not-started', true, true],
  // A keeper ends so when its input was closed, as by a runtime that was restarted, and when it has an error.
  ['{"metadata":{},"status":"Success"}', 'ended', false, true],
  [exited(1), 'ended', false, true],
  // The node is overloaded, restarts its runtime or ends the container for a reason that the Pod's status tells.
  [internal('failed to exec in container: failed to load task: context deadline exceeded'), 'unclear', false, false],
  [internal(`${started} ${refused} context deadline exceeded`), 'unclear', false, false],
  [internal('rpc error: code = Unavailable desc = connection error: transport is closing'), 'unclear', false, false],
  [internal(`${started} ${refused} cannot exec in a stopped state`), 'unclear', false, false],
  [internal('container is in CONTAINER_EXITED state'), 'unclear', false, false],
  ['', 'unclear', false, false],
  ['no JSON', 'unclear', false, false],
];

it('blames what runs in a sandbox for the end of a keeper by what the cluster reports, and never by an overloaded node', () => {
  for (const [report, ending, anyAgent, rootAgent] of reports) {
    assert.equal(endingOf(report), ending, report);
    const end = new KeeperEnd('', report, true);
    assert.deepEqual([mayBeDoneInside(end, false), mayBeDoneInside(end, true)], [anyAgent, rootAgent], report);
    assert.equal(needsNoRetry(end), ending === 'killed', report);
    assert.equal(needsNoRetry(new KeeperEnd('', report, false)), false, report);
  }
});

it('blames what runs in a sandbox for a keeper that is late only where another one was just ended', () => {
  const late = new KeeperLate('not open within 30 s');
  assert.deepEqual([mayBeDoneInside(late, false), mayBeDoneAgain(late, false)], [false, true]);
  const busy = new KeeperEnd('', internal('failed to exec in container: context deadline exceeded'), false);
  assert.deepEqual([mayBeDoneInside(busy, false), mayBeDoneAgain(busy, false)], [false, false]);
});
