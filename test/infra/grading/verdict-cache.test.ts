import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  createVerdictCache,
  type VerdictCache,
  type VerdictSubject,
  verdictKey,
} from '../../../infra/grading/verdict-cache.ts';
import type { BlobRef } from '../../../workflows/contracts/blob.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';
import { createFileStore, createRecords } from '../../helpers/store/file-store.ts';

const blob = (digit: string): BlobRef => ({ digest: digit.repeat(64), size: 1, mediaType: 'text/plain' });
const subject: VerdictSubject = {
  diff: { patch: blob('a'), baseCommit: 'b', files: 0, dropped: 0, tooLarge: false },
  task: {
    id: 'task',
    bundle: blob('c'),
    image: 'image',
    workdir: '/workspace',
    agentTimeoutSec: null,
    evaluationTimeoutSec: null,
    cpus: 1,
    memoryMb: 64,
    diskMb: 64,
  },
  imageId: 'sha256:1',
  kind: 'docker',
  timeoutMs: 1000,
};

describe('the key of a cached verdict', () => {
  it('differs for another diff, base, bundle, image, kind of sandbox, limit, network of the tests, step or grader', () => {
    const { diff, task } = subject;
    const others: readonly VerdictSubject[] = [
      { ...subject, diff: { ...diff, patch: blob('d') } },
      { ...subject, diff: { ...diff, baseCommit: 'e' } },
      { ...subject, task: { ...task, bundle: blob('d') } },
      { ...subject, imageId: 'sha256:2' },
      { ...subject, kind: 'local' },
      { ...subject, timeoutMs: 2000 },
      { ...subject, task: { ...task, testNetwork: { mode: 'public', hosts: [], ports: [443] } } },
      { ...subject, task: { ...task, testNetwork: { mode: 'public', hosts: [], ports: [80] } } },
      { ...subject, task: { ...task, step: 1 } },
      { ...subject, task: { ...task, step: 2 } },
    ];
    const keys = [subject, ...others].map((one) => verdictKey(one));
    assert.equal(new Set([...keys, verdictKey(subject, 'another')]).size, 12);
    assert.equal(verdictKey({ ...subject, task: { ...task, id: 'renamed' } }), verdictKey(subject));
  });

  it('differs for each snapshot, and does not exist for one that was too large to keep', () => {
    const snapshot = { kind: 'docker', parts: ['d', 'e'], entries: 1, bytes: 1 } as const;
    const others = [snapshot, { ...snapshot, parts: ['d'] }, { ...snapshot, parts: [] }];
    const keys = [subject, ...others.map((one) => ({ ...subject, snapshot: one }))].map((one) => verdictKey(one));
    assert.equal(new Set(keys).size, 4);
    const tooLarge = { ...subject.diff, tooLarge: true };
    assert.notEqual(verdictKey({ ...subject, diff: tooLarge, snapshot }), null, 'the diff is not what the tests get');
    assert.equal(verdictKey({ ...subject, snapshot: { ...snapshot, parts: [], above: 1 } }), null);
  });

  it('does not exist for a diff that was too large to keep, whose patch is empty', () => {
    assert.equal(verdictKey({ ...subject, diff: { ...subject.diff, tooLarge: true } }), null);
  });
});

describe('the cache of verdicts', () => {
  let home: string;
  let cache: VerdictCache;
  let verdict: Verdict;
  before(async () => {
    home = await mkdtemp(join(tmpdir(), 'temper-verdicts-'));
    const store = createFileStore(join(home, 'store'));
    cache = createVerdictCache({ records: createRecords(join(home, 'verdicts')), store });
    const log = await store.put(Buffer.from('ok 1'), 'text/plain');
    verdict = { kind: 'graded', value: 1, exitCode: 0, passed: 1, failed: 0, log, subject: '', grader: 'v1' };
  });
  after(() => rm(home, { recursive: true, force: true }));

  it('returns a kept verdict, and marks it as cached', async () => {
    await cache.keep('1'.repeat(64), verdict);
    assert.deepEqual(await cache.find('1'.repeat(64)), { ...verdict, cached: true });
    assert.equal(await cache.find('2'.repeat(64)), null);
  });

  for (const kind of ['timeout', 'no-reward', 'refused'] as const) {
    it(`keeps no verdict that another evaluation may contradict: ${kind}`, async () => {
      await cache.keep('3'.repeat(64), { ...verdict, kind, value: null });
      assert.equal(await cache.find('3'.repeat(64)), null);
    });
  }

  it('keeps no verdict on tests that ran into a limit, whatever their result', async () => {
    await cache.keep('5'.repeat(64), { ...verdict, flags: [{ trick: 'limit', evidence: 'memory' }] });
    assert.equal(await cache.find('5'.repeat(64)), null);
  });

  it('keeps no verdict on tests that used a network, and one on tests that had it and did not', async () => {
    const unused = { requests: 0, refused: 0, bytesIn: 0, bytesOut: 0, log: verdict.log };
    await cache.keep('6'.repeat(64), { ...verdict, network: { ...unused, requests: 1, refused: 1 } });
    assert.equal(await cache.find('6'.repeat(64)), null);
    await cache.keep('7'.repeat(64), { ...verdict, network: unused });
    assert.deepEqual(await cache.find('7'.repeat(64)), { ...verdict, network: unused, cached: true });
  });

  it('returns no verdict whose log is gone from the store', async () => {
    await cache.keep('4'.repeat(64), { ...verdict, log: blob('0') });
    assert.equal(await cache.find('4'.repeat(64)), null);
  });
});
