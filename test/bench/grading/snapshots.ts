import Docker from 'dockerode';
import { openSnapshot } from '../../../infra/grading/snapshot/archive.ts';
import { keepSnapshot } from '../../../infra/grading/snapshot/keep-snapshot.ts';
import type { Sandbox, SandboxProvider, SandboxSpec } from '../../../infra/sandbox/sandbox.ts';
import type { Store } from '../../../infra/store/store.ts';

/** The way of an agent's changes into the sandbox of its tests, in seconds, beside a commit of a Docker container. */
export interface SnapshotFigures {
  readonly changedMb: number;
  /** Size of the snapshot in the store, in MB. */
  readonly storedMb: number;
  readonly keepSec: number;
  readonly writeSec: number;
  /** The most memory of this process beyond what it had before, in MB. */
  readonly memoryMb: number;
  /** Null in other sandboxes than Docker's. */
  readonly commitSec: number | null;
}

export interface SnapshotBench {
  readonly provider: SandboxProvider;
  readonly store: Store;
  readonly specOf: (name: string) => SandboxSpec;
}

const minutes = 10 * 60_000;

/** Measures a snapshot of as many MB, half of which is random. */
export async function measureSnapshot(
  { provider, store, specOf }: SnapshotBench,
  changedMb: number,
  signal: AbortSignal,
): Promise<SnapshotFigures> {
  const names = ['agent', 'tests'].map((purpose) => `temper-bench-snapshot-${process.pid}-${changedMb}-${purpose}`);
  try {
    const [agent, fresh] = await Promise.all(names.map((name) => provider.ensure(specOf(name), signal)));
    if (agent === undefined || fresh === undefined) throw new Error('expected two sandboxes');
    await agent.changes?.note(signal);
    await change(agent, changedMb, signal);
    const memory = watchMemory();
    const options = { secrets: ['a~secret'], leftOut: [], mostBytes: 2 ** 32, attempt: 1 };
    const [snapshot, keepSec] = await timed(() => keepSnapshot(agent, store, options, signal));
    const [refusal, writeSec] = await timed(async () =>
      fresh.changes?.write(await openSnapshot(store, snapshot), signal),
    );
    const memoryMb = memory.grownMb();
    if (refusal !== null) throw new Error(`expected the snapshot to be written, got ${refusal}`);
    let stored = 0;
    for (const part of snapshot.parts) stored += (await store.get(part)).byteLength;
    const storedMb = stored / 2 ** 20;
    const commitSec = provider.kind === 'docker' ? await commit(agent.name) : null;
    return { changedMb, storedMb, keepSec, writeSec, memoryMb, commitSec };
  } finally {
    for (const name of names) await provider.remove(name);
  }
}

async function change(sandbox: Sandbox, changedMb: number, signal: AbortSignal): Promise<void> {
  const script = `mkdir -p ~/made; i=0; while [ $i -lt ${Math.ceil(changedMb / 2)} ]; do i=$((i+1))
head -c 1048576 /dev/urandom >~/made/random$i; yes $i | head -c 1048576 >~/made/text$i; done`;
  const limits = { timeoutMs: minutes, maxOutputBytes: 4096 };
  const argv = ['sh', '-c', script] as const;
  const { exitCode, stderr } = await sandbox.exec({ account: 'agent', cwd: '/', argv, env: {}, ...limits }, signal);
  if (exitCode !== 0) throw new Error(`could not change ${changedMb} MB: ${stderr.toString()}`);
}

/** Measures a commit of a container, whose image is removed afterwards. */
async function commit(name: string): Promise<number> {
  const docker = new Docker();
  const [made, seconds] = await timed(() => docker.getContainer(name).commit({ pause: false }));
  await docker.getImage(made.Id).remove();
  return seconds;
}

/** Watches the memory of this process, and returns how to end that with the most that it has had beyond the first look. */
function watchMemory(): { grownMb(): number } {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 50);
  return {
    grownMb: () => {
      clearInterval(timer);
      return (most - before) / 2 ** 20;
    },
  };
}

async function timed<Result>(work: () => Promise<Result>): Promise<[Result, number]> {
  const beganAtMs = performance.now();
  return [await work(), (performance.now() - beganAtMs) / 1000];
}
