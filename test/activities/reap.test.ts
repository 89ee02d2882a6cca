import assert from 'node:assert/strict';
import { it } from 'node:test';
import { createPlaces, type Places } from '../../activities/host/places.ts';
import { createReaper } from '../../activities/host/reap.ts';
import type { SandboxInfo, SandboxKind, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';

const stack = 'reaped';
const gone: SandboxInfo = {
  name: 'gone',
  kind: 'local',
  running: false,
  createdAtMs: 0,
  labels: { stack, run: 'run', rollout: 'r', epoch: 1, purpose: 'agent', expiresAtMs: 1 },
};

const unexpired = (rollout: string): SandboxInfo => ({
  ...gone,
  name: rollout,
  labels: { ...gone.labels, rollout, expiresAtMs: Number.POSITIVE_INFINITY },
});
const nothing = { remove: async () => true, clearLeftovers: async () => undefined, evictImages: async () => [] };

type Reaped = Pick<SandboxProvider, 'list' | 'remove' | 'clearLeftovers' | 'evictImages'>;

const silent = {
  list: () => {
    throw new Error('the server does not answer');
  },
};

/** Where the server does not answer, only what has outlived its time is removed. */
function reaperOf(places: Places, providers: ReadonlyMap<SandboxKind, Reaped>, workflow: object = silent) {
  return createReaper({ stack, places, providers: { seen: async () => providers } }, { workflow } as never);
}

it('what one kind of sandbox can not remove keeps neither another from it, nor images and places', async () => {
  const done: string[] = [];
  const images = (name: string) => async () => {
    done.push(`images of ${name}`);
    return [];
  };
  const full = async () => {
    throw new TemperFailure('DiskFull', 'no space left to write');
  };
  let left: readonly SandboxInfo[] = [gone];
  const removing = async (name: string) => {
    done.push(`removed ${name}`);
    left = [];
    return true;
  };
  const clearing = async () => void done.push('cleared leftovers');
  const places = createPlaces(2);
  places.take(gone.labels, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false });
  places.take({ rollout: 'never-provisioned', epoch: 1 }, { expiresAtMs: 1, sweep: false });
  const providers = new Map([
    ['docker' as const, { list: full, remove: removing, clearLeftovers: full, evictImages: images('docker') }],
    [
      'local' as const,
      { list: async () => left, remove: removing, clearLeftovers: clearing, evictImages: images('local') },
    ],
  ]);
  const reaper = reaperOf(places, providers);
  await assert.rejects(reaper.reap(AbortSignal.timeout(10_000)), { type: 'DiskFull', message: /no space left/ });
  assert.deepEqual(done, ['removed gone', 'cleared leftovers', 'images of docker', 'images of local']);
  assert.equal(places.taken, 0);
});

it('a sandbox that was released while it was being listed holds no place, and those that are there hold theirs', async () => {
  const places = createPlaces(4);
  const [released, live] = [unexpired('released'), unexpired('live')];
  places.take(released.labels, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false });
  // What the daemon answers is as old as the question; its release comes between the two.
  const list = async () => {
    places.giveBack(released.labels);
    return [released, live];
  };
  await reaperOf(places, new Map([['docker', { ...nothing, list }]])).reap(AbortSignal.timeout(10_000));
  assert.equal(places.taken, 1);
  places.giveBack(live.labels);
  assert.equal(places.taken, 0);
});

it('what is removed gives its place back, also beside one that can not be removed', async () => {
  const places = createPlaces(4);
  const remove = async (name: string) => {
    if (name === 'stuck') throw new Error('busy');
    return true;
  };
  const list = async () => [unexpired('stuck'), unexpired('over')];
  const status = { name: 'COMPLETED' };
  const ended = {
    async *list() {
      yield { workflowId: 'over', status };
    },
    getHandle: () => ({ describe: async () => ({ raw: {}, runId: 'over', status }) }),
  };
  const reaper = reaperOf(places, new Map([['local', { ...nothing, list, remove }]]), ended);
  await assert.rejects(reaper.reap(AbortSignal.timeout(10_000)), /busy/);
  assert.equal(places.taken, 1);
  places.giveBack(unexpired('stuck').labels);
  assert.equal(places.taken, 0);
});
