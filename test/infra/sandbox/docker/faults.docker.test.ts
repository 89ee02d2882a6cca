import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before } from 'node:test';
import Docker from 'dockerode';
import { createDockerProvider } from '../../../../infra/sandbox/docker/provider.ts';
import { type DaemonFault, type DaemonProxy, startDaemonProxy } from '../../../helpers/sandbox/daemon-proxy.ts';
import { faultContract } from '../contract-faults.ts';
import type { RetryAfter } from '../fault-bench.ts';

const directory = mkdtempSync(join(tmpdir(), 'temper-faulty-daemon-'));
const daemon = new Docker();
let proxy: DaemonProxy;

/** The faults of the next creations, in order. */
const creations: DaemonFault[] = [];
/** The answer to lists, unless it is the daemon's own. */
let listed: (() => Promise<string>) | null = null;

const ownContainers = async () => {
  const all = await daemon.listContainers({ all: true });
  return all.filter(({ Labels }) => Labels['temper.stack']?.startsWith(`faults-${process.pid}`));
};

before(async () => {
  proxy = await startDaemonProxy(directory, async ({ path }) => {
    if (path === '/containers/create') return creations.shift();
    if (path === '/containers/json' && listed !== null) return { status: 200, body: await listed() };
    return undefined;
  });
});
after(async () => {
  await proxy?.close();
  rmSync(directory, { recursive: true, force: true });
});

const answerLists = (answer: () => Promise<string>): (() => void) => {
  listed = answer;
  return () => {
    listed = null;
  };
};
const throttled = (retryAfterSec: RetryAfter): DaemonFault => ({
  status: 429,
  body: JSON.stringify({ message: 'too many requests' }),
  ...(retryAfterSec !== null && { headers: { 'Retry-After': String(retryAfterSec) } }),
});

faultContract({
  title: 'docker sandboxes',
  image: 'temper-tasks:bookworm',
  open: (stack) => createDockerProvider({ stack, docker: new Docker({ socketPath: join(directory, 'docker.sock') }) }),
  faults: {
    loseCreation: () => void creations.push('lose'),
    throttle: (times, retryAfterSec) =>
      void creations.push(...Array.from({ length: times }, () => throttled(retryAfterSec))),
    retryAfter: 'the client library passes no headers on',
    lagLists: async () => {
      const now = JSON.stringify(await ownContainers());
      return answerLists(async () => now);
    },
    vanish: (name) => daemon.getContainer(name).remove({ force: true }),
    cutStreams: () => proxy.cut(),
    endOf: 'the daemon ends no container by itself',
    skewClock: (ms) =>
      answerLists(async () => {
        const containers = await ownContainers();
        return JSON.stringify(containers.map((one) => ({ ...one, Created: one.Created + Math.round(ms / 1000) })));
      }),
  },
});
