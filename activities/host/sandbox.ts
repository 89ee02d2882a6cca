import { Context } from '@temporalio/activity';
import { attemptAll } from '../../infra/attempt-all.ts';
import { diskBefore } from '../../infra/grading/disk-before.ts';
import { prepareWorkspace } from '../../infra/grading/workspace.ts';
import { prepareImage } from '../../infra/sandbox/prepare-image.ts';
import type { Sandbox, SandboxProvider } from '../../infra/sandbox/sandbox.ts';
import type { HarborTask } from '../../infra/tasks/harbor/harbor.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, type RolloutEpoch } from '../../workflows/contracts/ids.ts';
import { isOfSweep } from '../../workflows/contracts/priority.ts';
import { provisionMs } from '../../workflows/contracts/stage-limits.ts';
import { atBoundary } from '../boundary.ts';
import type {
  CleanUpActivities,
  HostActivities,
  PlacementActivities,
  Provisioned,
  ProvisionSandbox,
} from '../interfaces.ts';
import { choiceFor } from './choice.ts';
import { filesIn, type Host, specOf } from './host.ts';
import { createLoaderCheck, type LoaderCheck } from './loader.ts';
import type { SweepShare } from './sweep-share.ts';
import { within } from './within.ts';

/** Takes a place for a rollout on this host. The slot supplier of the placement worker lets it run only where there is room. */
export function createPlacement(host: Pick<Host, 'name' | 'places'>, share: SweepShare): PlacementActivities {
  return {
    placeRollout: ({ attempt, lifetimeMs }) =>
      atBoundary(async () => {
        const expiresAtMs = Date.now() + lifetimeMs;
        if (isOfSweep(Context.current().info.priority)) await share.take(attempt, expiresAtMs);
        else host.places.take(attempt, { expiresAtMs, sweep: false });
        return { host: host.name };
      }),
  };
}

export function createProvisioning(host: Host): Pick<HostActivities, 'provisionSandbox'> {
  const requireLoader = createLoaderCheck();
  return {
    provisionSandbox: (input) =>
      atBoundary(async (signal, report) => {
        const files = await host.tasks.open(input.task);
        const choice = choiceFor(host.agent(input.agent), input.sandbox);
        const provider = await host.choose(choice, input.task, filesIn(files));
        const image = await prepareImage(host, provider, { task: input.task, files }, report, signal);
        const given = { ...input, provider, files, image, requireLoader };
        const work = (ending: AbortSignal) => provision(host, given, ending);
        return within(provisionMs, `sandbox ${agentSandboxName(input.attempt)}`, work, signal);
      }),
  };
}

interface Provisioning extends ProvisionSandbox {
  readonly provider: SandboxProvider;
  readonly files: HarborTask;
  /** What the sandbox is made of. */
  readonly image: string;
  readonly requireLoader: LoaderCheck;
}

async function provision(host: Host, input: Provisioning, signal: AbortSignal): Promise<Provisioned> {
  const { attempt, task, run, provider, files, image } = input;
  const spec = host.agent(input.agent);
  const mounts = (await spec.runtimes()).map((runtime) => ({ ...runtime, readOnly: true as const }));
  const expiresAtMs = Date.now() + input.lifetimeMs;
  const sweep = isOfSweep(Context.current().info.priority);
  host.places.take(attempt, { expiresAtMs, sweep });
  const name = agentSandboxName(attempt);
  const place = { name, attempt, run, task, image, purpose: 'agent' as const, ...(sweep && { sweep }), expiresAtMs };
  // A set-up that was broken off may not bear to run again, or give another base commit: it begins with nothing.
  if (Context.current().info.attempt > 1) await provider.remove(name);
  const sandbox = await provider.ensure(specOf(host, place, { mounts, gateway: spec.usesModel }), signal);
  await input.requireLoader({ sandbox, provider, spec, image }, signal);
  const { baseCommit } = await prepareWorkspace(sandbox, files, { workdir: task.workdir, keep: true }, signal);
  if (spec.needsSolution) await putSolution(sandbox, files.solution, input, signal);
  const diskBeforeMb = await diskBefore(sandbox, files.workspace, task.diskMb);
  return { sandbox: sandbox.name, kind: provider.kind, baseCommit, diskBeforeMb };
}

async function putSolution(
  sandbox: Sandbox,
  tree: Parameters<Sandbox['putFiles']>[0]['tree'],
  input: ProvisionSandbox,
  signal: AbortSignal,
) {
  if (tree.size === 0) {
    throw new TemperFailure(
      'UnsupportedTask',
      `agent ${input.agent} needs solution/solve.sh, and task ${input.task.id} has none; use another agent`,
    );
  }
  await sandbox.putFiles({ tree, at: '/solution', owner: 'agent' }, signal);
}

export function createCleanUp(host: Pick<Host, 'providers' | 'places'>): CleanUpActivities {
  return { releaseSandbox: ({ attempt }) => atBoundary(async () => ({ removed: await release(host, attempt) })) };
}

/** Wherever it may be: an engine that is away keeps no other kind from it. True if there was something. Needs no activity around it. */
export async function release(host: Pick<Host, 'providers' | 'places'>, attempt: RolloutEpoch): Promise<boolean> {
  const name = agentSandboxName(attempt);
  const providers = await host.providers.seen();
  let removed = false;
  try {
    await attemptAll(providers.values(), `sandbox ${name} to be removed, of whatever kind it is`, async (provider) => {
      removed = (await provider.remove(name)) || removed;
    });
  } finally {
    // Also where an engine is away: what it still has then, the reaper finds, and counts until it is removed.
    host.places.giveBack(attempt);
  }
  return removed;
}
