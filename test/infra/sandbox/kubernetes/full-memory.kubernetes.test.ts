import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { SandboxFailure, wasEndedInside } from '../../../../infra/sandbox/failure.ts';
import { createKubernetesProvider } from '../../../../infra/sandbox/kubernetes/provider.ts';
import type { Sandbox, SandboxProvider, SandboxSpec } from '../../../../infra/sandbox/sandbox.ts';
import { drain } from '../../../../infra/sandbox/tar-entries.ts';
import { programsImage, taskImage } from '../../../helpers/kubernetes/cluster.ts';
import { openTestCluster, testNamespace } from '../../../helpers/kubernetes/namespace.ts';
import { fillSegments, python } from '../../../helpers/sandbox/fill-memory.ts';
import { until } from '../../../helpers/until.ts';
import { foreground, sh } from '../contract.ts';

/** The limit of one call. */
const limit = (): AbortSignal => AbortSignal.timeout(300_000);
const minute = { timeoutMs: 60_000 };
const stageAttempts = 6;
/** The cluster may be late to say what ended a container. Until then a stage fails as one that was cut. */
const lateMs = 120_000;

/** Fills queues of System V, which outlive their processes, until the kernel ends the program that does. */
const fillQueues = python(`
libc = ctypes.CDLL(None)
message = (ctypes.c_char * 8008)(1)
while (queue := libc.msgget(0, 0o1600)) >= 0:
    while libc.msgsnd(queue, message, ctypes.c_size_t(8000), 0o4000) == 0: pass
`);
/** Makes empty files in memory, each of which costs a kilobyte, until 1.2 MB are left. */
const fillRest = `limit=$(cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | tail -n 1)
used=/sys/fs/cgroup/memory.current; [ -r $used ] || used=/sys/fs/cgroup/memory/memory.usage_in_bytes
n=0; while [ $n -lt 30000 ] && read -r now <$used && [ $((limit - now)) -gt 1200000 ]; do n=$((n+1)); : >/dev/shm/$n; done`;
/** Repeats a stage as a rollout does. A keeper that the kernel has ended while it began may be the host's fault. */
async function stage(work: () => Promise<void>): Promise<void> {
  const endMs = Date.now() + lateMs;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SandboxFailure) || error.type !== 'SandboxUnavailable') throw error;
      if (attempt >= stageAttempts && Date.now() > endMs) throw error;
    }
  }
}

describe('a kubernetes sandbox whose agent fills its memory', { concurrency: 3 }, async () => {
  const namespace = await testNamespace('full');
  const { core } = openTestCluster();
  const stack = `full-${process.pid}`;
  const openIn = (within: string): SandboxProvider => {
    const opened = createKubernetesProvider({ stack, namespace: within, programs: programsImage, requests: 0.01 });
    after(() => opened.close());
    return opened;
  };
  const provider = openIn(namespace);
  const make = (name: string, by = provider): Promise<Sandbox> => {
    const expiresAtMs = Date.now() + 600_000;
    const labels = { stack, run: 'run', rollout: name, epoch: 1, purpose: 'agent', expiresAtMs } as const;
    const limits = { cpus: 1, memoryMb: 128, diskMb: 64, pids: 64 };
    const spec: SandboxSpec = { name, image: taskImage, labels, ...limits, workdir: '/workspace', mounts: [] };
    return by.ensure(spec, limit());
  };
  const podsOf = async (rollout: string): Promise<number> => {
    const labelSelector = `temper.rollout=${rollout}`;
    return (await core.listNamespacedPod({ namespace, labelSelector })).items.length;
  };
  const start = (sandbox: Sandbox, script: string) =>
    sandbox.start({ key: 'agent', argv: sh(script), env: {}, account: 'agent' }, limit());
  /** Starts an agent, and uses its sandbox as the stages after it do. */
  const use = async (sandbox: Sandbox, script: string): Promise<void> => {
    // A quick attack already reaches the call that starts it.
    await stage(async () => void (await start(sandbox, script)));
    await stage(async () => void (await sandbox.wait('agent', minute, limit())));
    await stage(() => sandbox.killProcesses('agent'));
    await stage(async () => {
      const { entries } = (await sandbox.changes?.read([], limit())) ?? assert.fail();
      for await (const { content } of entries()) await drain(content);
    });
  };

  const attacks: Readonly<Record<string, string>> = {
    'leaves less behind than the keeper needs': `${fillQueues}${fillQueues}`,
    'leaves less behind than the runtime needs': `${fillQueues}${fillQueues}${fillRest}`,
    'leaves segments of shared memory behind': fillSegments,
  };
  for (const [attack, script] of Object.entries(attacks)) {
    it(`counts an agent that ${attack} as having ended its sandbox, and keeps no witness`, async () => {
      const sandbox = await make(attack.replaceAll(' ', '-'));
      await sandbox.changes?.note(limit());
      await assert.rejects(use(sandbox, script), wasEndedInside);
      await until(async () => (await podsOf(sandbox.name)) === 1);
    });
  }

  it('counts it so by a command in another sandbox, where a quota leaves no room for a witness', async () => {
    const tight = await testNamespace('tight');
    const spec = { hard: { pods: '2' } };
    await core.createNamespacedResourceQuota({ namespace: tight, body: { metadata: { name: 'pods' }, spec } });
    await until(async () => {
      const { status } = await core.readNamespacedResourceQuota({ namespace: tight, name: 'pods' });
      return status?.hard?.pods === '2';
    });
    const inTight = openIn(tight);
    const [sandbox] = await Promise.all([make('fills', inTight), make('neighbour', inTight)]);
    await sandbox.changes?.note(limit());
    await assert.rejects(use(sandbox, fillSegments), wasEndedInside);
    assert.equal((await core.listNamespacedPod({ namespace: tight })).items.length, 2);
  });

  it('has the kernel end the processes of an agent before the keeper', async () => {
    const sandbox = await make('scores');
    for (const account of ['agent', 'grader'] as const) {
      const argv = sh('cat /proc/self/oom_score_adj');
      assert.equal(String((await sandbox.exec({ ...foreground, account, argv }, limit())).stdout), '1000\n');
    }
  });
});
