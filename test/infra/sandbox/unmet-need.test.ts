import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createLocalProvider } from '../../../infra/sandbox/local/provider.ts';
import type { SandboxNeeds, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { unmetNeed, waitingLeftMs } from '../../../infra/sandbox/unmet-need.ts';

const root = mkdtempSync(join(tmpdir(), 'need-'));
after(() => rmSync(root, { recursive: true, force: true }));

/** A kind that gives nothing beyond a sandbox. */
const bare = createLocalProvider({ root, stack: 'need' });
const modest: SandboxNeeds = { task: 'fix-gcd', image: 'some:image', paths: ['/tests'], filesInImage: false };

const cases: readonly {
  readonly what: string;
  readonly needs: Partial<SandboxNeeds>;
  readonly given: Partial<SandboxProvider>;
  readonly refusal: RegExp;
}[] = [
  { what: 'root', needs: { root: true }, given: { givesRoot: true }, refusal: /root .* local .*use Docker or Kub/ },
  {
    what: 'GPUs',
    needs: { gpus: 2 },
    given: { givesGpus: true },
    refusal: /gpus = 2\), which local .*Docker and GPUs/,
  },
  { what: 'services', needs: { services: ['db'] }, given: { runsServices: true }, refusal: /\(db\), which local / },
  {
    what: 'files in memory',
    needs: { inMemory: '/ram' },
    given: { givesTmpfs: true },
    refusal: /\(\/ram\), which local /,
  },
  { what: 'names of hosts', needs: { hosts: ['api'] }, given: { givesHosts: true }, refusal: /\(api\), which local / },
];

describe('a kind of sandbox', () => {
  it('suits a task that needs nothing special', () => {
    assert.equal(unmetNeed(bare, { ...modest, gpus: 0, services: [], hosts: [], root: false }), undefined);
  });

  for (const { what, needs, given, refusal } of cases) {
    it(`that lacks ${what} does not suit a task that needs this, and the reason names both`, () => {
      const reason = unmetNeed(bare, { ...modest, ...needs });
      assert.equal(reason?.type, 'UnsupportedTask');
      assert.match(reason.message, /task fix-gcd/);
      assert.match(reason.message, refusal);
      assert.equal(unmetNeed({ ...bare, ...given }, { ...modest, ...needs }), undefined);
    });
  }

  it('leaves less time for waits for an engine to a task that it suits without them', () => {
    const hour = { ...bare, longestLifetimeMs: 3_600_000 };
    const needs = { ...modest, lifetimeMs: 6_900_000, waitingMs: 3_600_000 };
    assert.equal(unmetNeed(hour, needs), undefined);
    assert.equal(waitingLeftMs(hour, needs), 300_000);
    assert.equal(waitingLeftMs(bare, needs), 3_600_000);
    const longer = { ...needs, lifetimeMs: 7_300_000 };
    assert.match(unmetNeed(hour, longer)?.message ?? '', /needs a sandbox for 3700 s .* live for 3600 s at most/);
  });

  it('gives the first of several reasons', () => {
    const reason = unmetNeed({ ...bare, longestLifetimeMs: 1 }, { ...modest, hosts: ['api'], lifetimeMs: 2 });
    assert.match(reason?.message ?? '', /names hosts/);
  });
});
