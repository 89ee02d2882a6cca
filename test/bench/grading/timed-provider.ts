import type { Sandbox, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import type { Clock } from './clock.ts';

/** The name under which the wait for the tests is counted. */
export const testsTime = 'in the tests';

/** Returns a provider whose calls, and those of its sandboxes, are timed by their purpose. */
export function timedProvider(provider: SandboxProvider, clock: Clock): SandboxProvider {
  return {
    ...provider,
    ensure: async (spec, signal) =>
      timedSandbox(await clock.time('create', () => provider.ensure(spec, signal)), clock),
    remove: (name) => clock.time('remove', () => provider.remove(name)),
  };
}

function timedSandbox(sandbox: Sandbox, clock: Clock): Sandbox {
  const { name, kind, labels, twoUids } = sandbox;
  return {
    name,
    kind,
    labels,
    twoUids,
    putFiles: (files, signal) => clock.time('copy in', () => sandbox.putFiles(files, signal)),
    readFile: (path, maxBytes, signal) => clock.time('copy out', () => sandbox.readFile(path, maxBytes, signal)),
    exec: (request, signal) => clock.time('git and set-up', () => sandbox.exec(request, signal)),
    start: (request, signal) => clock.time('start the tests', () => sandbox.start(request, signal)),
    status: (key) => sandbox.status(key),
    wait: (key, options, signal) => clock.time(testsTime, () => sandbox.wait(key, options, signal)),
    ageMs: (key, signal) => sandbox.ageMs(key, signal),
    readLog: (key, range) => clock.time('copy out', () => sandbox.readLog(key, range)),
    noteTimeOver: (key) => clock.time('end processes', () => sandbox.noteTimeOver(key)),
    kill: (key) => clock.time('end processes', () => sandbox.kill(key)),
    killProcesses: (account) => clock.time('end processes', () => sandbox.killProcesses(account)),
    diskUsage: () => clock.time('look at the disk', () => sandbox.diskUsage()),
  };
}
