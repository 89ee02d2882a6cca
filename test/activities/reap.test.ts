import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import { cancelOrphans } from '../../activities/control/reap.ts';
import { createReaper } from '../../activities/host/reap.ts';
import { createSlots, type Slots } from '../../activities/host/slots.ts';
import { createKeptResults, type KeptResults } from '../../infra/sandbox/kept-results.ts';
import type { SandboxInfo, SandboxKind, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { searchAttributes } from '../../workflows/contracts/search-attributes.ts';

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

type Reaped = Pick<SandboxProvider, 'list' | 'remove' | 'renew' | 'clearLeftovers' | 'evictImages'>;

const status = (name: string) => ({ name });
/** A server on which these rollouts have a state, and all others are unknown. */
const serverWith = (states: Readonly<Record<string, 'RUNNING' | 'COMPLETED'>>) => ({
  async *list() {
    for (const [runId, name] of Object.entries(states)) yield { workflowId: runId, runId, status: status(name) };
  },
  getHandle: (id: string) => ({ describe: async () => ({ raw: {}, runId: id, status: status(states[id] ?? '') }) }),
});

const network = { places: { clear: async () => undefined } };
const noResults: Pick<KeptResults<object>, 'list' | 'remove'> = { list: async () => [], remove: async () => undefined };

/** Creates a reaper. With the default server, which knows no rollout, it removes expired sandboxes only. */
function reaperOf(
  slots: Slots,
  providers: ReadonlyMap<SandboxKind, Reaped>,
  workflow: object = serverWith({}),
  {
    token = null,
    sharesJournals = false,
    results = noResults,
  }: {
    readonly token?: string | null;
    readonly sharesJournals?: boolean;
    readonly results?: typeof noResults;
  } = {},
) {
  const host = {
    stack,
    fence: () => token,
    sharesJournals,
    slots,
    network,
    results,
    providers: { seen: async () => providers },
  };
  let nowMs = 0;
  const reaper = createReaper(host, { workflow } as never, () => nowMs);
  return {
    /** Looks a minute after the last look. */
    look: () => {
      nowMs += 60_000;
      return reaper.reap(AbortSignal.timeout(120_000));
    },
  };
}

it('removes other sandboxes, images and slots although one kind of sandbox cannot be removed', async () => {
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
  const slots = createSlots(2);
  slots.take(gone.labels, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false });
  slots.take({ rollout: 'never-provisioned', epoch: 1 }, { expiresAtMs: 1, sweep: false });
  const providers = new Map([
    ['docker' as const, { list: full, remove: removing, clearLeftovers: full, evictImages: images('docker') }],
    [
      'local' as const,
      { list: async () => left, remove: removing, clearLeftovers: clearing, evictImages: images('local') },
    ],
  ]);
  const reaper = reaperOf(slots, providers);
  const failed = { type: 'DiskFull', message: /no space left/ };
  await assert.rejects(reaper.look(), failed);
  assert.deepEqual(done, ['cleared leftovers', 'images of docker', 'images of local']);
  done.length = 0;
  await assert.rejects(reaper.look(), failed);
  assert.deepEqual(done, ['removed gone', 'cleared leftovers', 'images of docker', 'images of local']);
  assert.equal(slots.taken, 0);
});

it('takes no slot for a sandbox that was released while it was being listed', async () => {
  const slots = createSlots(4);
  const [released, live] = [unexpired('released'), unexpired('live')];
  slots.take(released.labels, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false });
  // The daemon's answer is as old as the request; the release happens between the two.
  const list = async () => {
    slots.release(released.labels);
    return [released, live];
  };
  await reaperOf(slots, new Map([['docker', { ...nothing, list }]])).look();
  assert.equal(slots.taken, 1);
  slots.release(live.labels);
  assert.equal(slots.taken, 0);
});

it('takes no slot for a sandbox that was removed less than a minute before it is listed', async () => {
  let nowMs = 0;
  const slots = createSlots(4, { now: () => nowMs });
  const names = ['removed', 'left', 'made again'];
  const [removed, left, again] = names.map(unexpired);
  assert.ok(removed && left && again);
  for (const { labels } of [removed, left, again]) slots.take(labels, { expiresAtMs: 1, sweep: false });
  slots.release(removed.labels);
  slots.release(left.labels, 'left');
  slots.release(again.labels);
  slots.take(again.labels, { expiresAtMs: Number.POSITIVE_INFINITY, sweep: false });
  const reaper = reaperOf(slots, new Map([['e2b', { ...nothing, list: async () => [removed, left, again] }]]));
  const taken = async (): Promise<readonly string[]> => {
    await reaper.look();
    return names.filter((rollout) => slots.isTakenBy({ rollout, epoch: 1 }));
  };
  assert.deepEqual(await taken(), ['left', 'made again']);
  nowMs = 60_000;
  assert.deepEqual(await taken(), ['left', 'made again']);
  // It was not removed after all.
  nowMs = 60_001;
  assert.deepEqual(await taken(), names);
});

it('releases the slot of a removed sandbox although another cannot be removed', async () => {
  const slots = createSlots(4);
  const remove = async (name: string) => {
    if (name === 'stuck') throw new Error('busy');
    return true;
  };
  const list = async () => [unexpired('stuck'), unexpired('over')];
  const ended = serverWith({ stuck: 'COMPLETED', over: 'COMPLETED' });
  const reaper = reaperOf(slots, new Map([['local', { ...nothing, list, remove }]]), ended);
  assert.deepEqual((await reaper.look()).suspected, ['stuck', 'over']);
  await assert.rejects(reaper.look(), /busy/);
  assert.equal(slots.taken, 1);
  slots.release(unexpired('stuck').labels);
  assert.equal(slots.taken, 0);
});

it('keeps the expired slot and the expired sandbox of a rollout that is live, and renews it at its provider', async () => {
  const slots = createSlots(4);
  const removed: string[] = [];
  slots.take({ rollout: 'waits', epoch: 1 }, { expiresAtMs: 1, sweep: false });
  slots.take({ rollout: 'ended', epoch: 1 }, { expiresAtMs: 1, sweep: false });
  const remove = async (name: string) => removed.push(name) > 0;
  const sandbox = { ...gone, name: 'works', labels: { ...gone.labels, rollout: 'works' } };
  const server = serverWith({ waits: 'RUNNING', works: 'RUNNING', ended: 'COMPLETED' });
  const renewed: string[] = [];
  const renew = async (name: string) => renewed.push(name) > 0;
  const provider = { ...nothing, list: async () => [sandbox], remove, renew };
  const reaper = reaperOf(slots, new Map([['local', provider]]), server);
  await reaper.look();
  await reaper.look();
  assert.deepEqual(renewed, ['works', 'works']);
  assert.deepEqual(removed, []);
  assert.deepEqual([slots.taken, slots.isTakenBy({ rollout: 'waits', epoch: 1 })], [2, true]);
});

/** A sandbox of a host that came back as its second generation. */
const earlier = (rollout: string, changes: Partial<SandboxInfo['labels']> = {}): SandboxInfo => {
  const { name, labels } = unexpired(rollout);
  return { ...gone, name: `${name}-${changes.epoch ?? 1}`, labels: { ...labels, fence: 'box/1', ...changes } };
};

it('leaves the agents of its earlier life to hosts that may have adopted them, until their rollouts have left them', async () => {
  const list = async () => [
    earlier('adopted'),
    earlier('again'),
    earlier('again', { epoch: 2, fence: 'other/1' }),
    earlier('graded', { purpose: 'evaluation' }),
    earlier('new', { fence: 'box/2' }),
  ];
  const server = serverWith({ adopted: 'RUNNING', again: 'RUNNING', graded: 'RUNNING', new: 'RUNNING' });
  const look = async (kind: SandboxKind, sharesJournals: boolean) => {
    const slots = createSlots(9);
    const providers = new Map([[kind, { ...nothing, list }]]);
    const { removed } = await reaperOf(slots, providers, server, { token: 'box/2', sharesJournals }).look();
    return { removed, taken: slots.taken };
  };
  // Of the sandboxes that all hosts see, or the hosts of one machine, it counts its own.
  assert.deepEqual(await look('e2b', true), { removed: ['again-1', 'graded-1'], taken: 1 });
  assert.deepEqual(await look('e2b', false), { removed: ['adopted-1', 'again-1', 'graded-1'], taken: 1 });
  assert.deepEqual(await look('local', true), { removed: ['adopted-1', 'again-1', 'graded-1'], taken: 1 });
});

it('removes kept results, and unfinished ones, of rollouts that are over or have been unknown for a day', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'temper-results-'));
  t.after(() => rm(directory, { recursive: true }));
  const results = createKeptResults(directory, 3_600_000);
  const age = async (rollout: string, hours: number, suffix = ''): Promise<void> => {
    await results.keep({ rollout, epoch: 1 }, {});
    const file = join(directory, `${rollout}.1.json`);
    if (suffix !== '') await rename(file, `${file}${suffix}`);
    const seconds = Date.now() / 1000 - hours * 3_600;
    await utimes(`${file}${suffix}`, seconds, seconds);
  };
  for (const [tag, suffix] of [
    ['', ''],
    ['.new', '.0a1b.tmp'],
  ] as const) {
    for (const rollout of ['live', 'over', 'unknown']) await age(`${rollout}${tag}`, 1, suffix);
    await age(`forgotten${tag}`, 24, suffix);
  }
  await results.keep({ rollout: 'over', epoch: 2 }, {});
  const server = serverWith({ live: 'RUNNING', 'live.new': 'RUNNING', over: 'COMPLETED', 'over.new': 'COMPLETED' });
  let looks = 0;
  const list: typeof results.list = (minAgeMs) => {
    looks += 1;
    return results.list(minAgeMs);
  };
  await reaperOf(createSlots(1), new Map(), server, { results: { ...results, list } }).look();
  assert.equal(looks, 1);
  const left = (await results.list(0)).map(({ rollout, epoch }) => `${rollout} ${epoch}`);
  // The second epoch's result is too new: its rollout may not be visible yet.
  assert.deepEqual(left.sort(), ['live 1', 'live.new 1', 'over 2', 'unknown 1', 'unknown.new 1']);
});

it('cancels the groups of a closed run although the list also names one that the server does not have', async () => {
  const typedSearchAttributes = new TypedSearchAttributes([{ key: searchAttributes.run, value: 'closed' }]);
  const unknown = (workflowId: string) => new WorkflowNotFoundError('not found', workflowId, undefined);
  const cancelled: string[] = [];
  const workflow = {
    async *list({ query }: { readonly query: string }) {
      if (!query.includes('"group"')) return;
      for (const workflowId of ['never-was', 'open']) yield { workflowId, runId: workflowId, typedSearchAttributes };
    },
    getHandle: (workflowId: string) => ({
      describe: () => Promise.reject(unknown(workflowId)),
      cancel: async () => {
        if (workflowId === 'never-was') throw unknown(workflowId);
        cancelled.push(workflowId);
      },
    }),
  };
  const client = { workflow } as unknown as Client;
  assert.deepEqual(await cancelOrphans(client), { groups: ['open'], rollouts: [] });
  assert.deepEqual(cancelled, ['open']);
});
