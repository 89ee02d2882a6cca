import { randomUUID } from 'node:crypto';
import type { Host } from '../../../activities/host/host.ts';
import type { EvaluationHost } from '../../../infra/grading/evaluation.ts';
import { prepareWorkspace } from '../../../infra/grading/workspace/prepare-workspace.ts';
import { requireSuccess } from '../../../infra/grading/workspace/require-success.ts';
import { prepareImage } from '../../../infra/sandbox/prepare-image.ts';
import type { Sandbox, SandboxProvider } from '../../../infra/sandbox/sandbox.ts';
import { sandboxSpec } from '../../../infra/sandbox/sandbox-request.ts';
import type { Task } from '../../../workflows/contracts/task.ts';

/** The sandbox of an agent that has run the reference solution of a task. */
export interface SolvedIn {
  readonly sandbox: Sandbox;
  readonly task: Task;
  readonly baseCommit: string;
}

const lifetimeMs = 900_000;
export const report = (): void => undefined;

/** Returns the host of evaluations without a network, which fail if their sandbox cannot be removed. */
export const offline = (host: Host): EvaluationHost => ({
  ...host,
  testNetwork: async () => undefined,
  reportLeft: (_sandbox, error) => {
    throw error;
  },
});

/** Runs the reference solution of a task in a sandbox, as the oracle does, and then work in it. The sandbox is removed afterwards. */
export async function afterSolution<Result>(
  { host, provider }: { readonly host: Host; readonly provider: SandboxProvider },
  address: string,
  signal: AbortSignal,
  work: (solved: SolvedIn) => Promise<Result>,
): Promise<Result> {
  const task = await host.tasks.resolve(address);
  const files = await host.tasks.open(task);
  const image = await prepareImage({ store: host.store, provider }, { task, files }, report, signal);
  const epoch = { rollout: randomUUID(), epoch: 1 };
  const spec = sandboxSpec(host, {
    name: `temper-${epoch.rollout}`,
    epoch,
    run: '',
    task,
    image,
    beside: null,
    purpose: 'agent',
    sweep: false,
    expiresAtMs: Date.now() + lifetimeMs,
    mounts: await host.evaluationMounts(provider.kind),
    gatewayDir: null,
    files: [],
  });
  const sandbox = await provider.ensure(spec, signal);
  try {
    const { baseCommit } = await prepareWorkspace(sandbox, files, { workdir: task.workdir, keep: true }, signal);
    await sandbox.changes?.note(signal);
    await sandbox.putFiles({ tree: files.solution, at: '/solution', owner: 'agent' }, signal);
    const limits = { timeoutMs: 60_000, maxOutputBytes: 65_536 };
    const argv = ['bash', '/solution/solve.sh'] as const;
    requireSuccess(
      await sandbox.exec({ account: 'agent', argv, env: {}, ...limits }, signal),
      `the solution of ${task.id}`,
    );
    await sandbox.killProcesses('agent');
    return await work({ sandbox, task, baseCommit });
  } finally {
    await provider.remove(sandbox.name);
  }
}
