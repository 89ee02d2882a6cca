import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { judgeArtifacts } from '../../../../infra/grading/artifacts/judge-artifacts.ts';
import { keepArtifacts } from '../../../../infra/grading/artifacts/keep-artifacts.ts';
import { createLocalProvider } from '../../../../infra/sandbox/local/provider.ts';
import type { Store } from '../../../../infra/store/store.ts';
import { allIn, scriptOf } from '../../../adversarial/hostile-trees.ts';
import { type SandboxMaker, sandboxMaker, treeOf, workspaceTask } from '../../../helpers/sandbox/workspaces.ts';
import { createFileStore } from '../../../helpers/store/file-store.ts';

const workdir = '/workspace';
const tests = treeOf({
  'expected.txt': 'right\n',
  'test.sh': `find /tmp/out -type l | sort; cmp /tmp/out/answer /tests/expected.txt
if [ $? -eq 0 ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
`,
});

interface Case {
  readonly name: string;
  readonly script: string;
  readonly reward: number;
  /** The links that the tests see. */
  readonly links?: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: 'climbs after another link',
    script: 'mkdir d; ln -s .. d/L; ln -s d/L/../../tests/expected.txt answer',
    reward: 0,
    links: ['/tmp/out/d/L'],
  },
  {
    name: 'climbs after another link from the root',
    script: 'mkdir d; ln -s .. d/L; ln -s /tmp/out/d/L/../../tests/expected.txt answer',
    reward: 0,
    links: ['/tmp/out/d/L'],
  },
  { name: 'leads out', script: 'ln -s ../../tests/expected.txt answer; ln -s /tests t', reward: 0 },
  {
    name: 'leads to an artifact, through another link',
    script: 'mkdir -p d/deep; echo right >d/right; ln -s ../../d d/deep/up; ln -s /tmp/out/d/deep/up/right answer',
    reward: 1,
    links: ['/tmp/out/answer', '/tmp/out/d/deep/up'],
  },
];

describe('an artifact that is a link', () => {
  const { signal } = new AbortController();
  let root: string;
  let store: Store;
  let maker: SandboxMaker;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'temper-artifacts-'));
    store = createFileStore(join(root, 'store'));
    maker = sandboxMaker(createLocalProvider({ root, stack: 'artifacts' }), 'artifacts', 'none');
  });
  after(async () => {
    await maker?.[Symbol.asyncDispose]();
    await rm(root, { recursive: true, force: true });
  });

  it('is scored beside every hostile tree', async () => {
    const agent = await maker.make();
    const argv = ['bash', '-c', scriptOf(allIn('/tmp/out'))] as const;
    await agent.exec({ account: 'agent', env: {}, argv: [...argv], timeoutMs: 60_000, maxOutputBytes: 1000 }, signal);
    const options = { paths: ['/tmp/out', '/workspace'], secrets: ['s~secret'], attempt: 1 };
    const { unread, entries } = await keepArtifacts(agent, store, options, signal);
    assert.equal(unread, undefined);
    assert.ok(entries > 100, String(entries));
  });

  for (const { name, script, reward, links = [] } of cases) {
    it(`is worth ${reward} for the tests if it ${name}`, async () => {
      const [agent, fresh] = [await maker.make(), await maker.make()];
      const argv = ['sh', '-c', `mkdir /tmp/out; cd /tmp/out; ${script}`] as const;
      const limits = { timeoutMs: 60_000, maxOutputBytes: 1000, env: {} };
      const done = await agent.exec({ ...limits, account: 'agent', argv: [...argv] }, signal);
      assert.equal(done.exitCode, 0, String(done.stderr));
      const artifacts = await keepArtifacts(
        agent,
        store,
        { paths: ['/tmp/out'], secrets: ['s~secret'], attempt: 1 },
        signal,
      );
      const patch = await store.put(Buffer.alloc(0), 'text/x-diff');
      const diff = { patch, baseCommit: 'none', files: 0, dropped: 0, tooLarge: false };
      const task = { ...workspaceTask(new Map()), tests };
      const work = {
        task,
        diff,
        artifacts,
        workdir,
        diskMb: 256,
        timeoutMs: 60_000,
        path: null,
        subject: 'none',
        attempt: 1,
        onSetUp: () => undefined,
      };
      const { verdict } = await judgeArtifacts(fresh, store, work, signal);
      const log = String(await store.get(verdict.log.digest));
      assert.deepEqual([verdict.kind, verdict.value], ['graded', reward], log);
      assert.deepEqual(
        log.split('\n').filter((line) => line.startsWith('/tmp/out')),
        links,
      );
    });
  }
});
