import { CancellationScope, log, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import type { Placement } from '../../activities/interfaces/host.ts';
import { cleanUpOn, images, placement, provisioningOn, sealingOn, sessionsOn } from '../activities.ts';
import { useOfTrace } from '../algorithms/cost.ts';
import type { ModelUse, SandboxProvider } from '../contracts/cost.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import { defaultPool } from '../contracts/policy.ts';
import type { SandboxKind } from '../contracts/sandbox-kinds.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import { epochSeed } from '../contracts/seeds.ts';
import type { Task } from '../contracts/task.ts';
import { trainAllBranches } from '../contracts/trace.ts';
import { secondsSpent } from '../shared/seconds-spent.ts';
import { whereOffered } from '../shared/where-offered.ts';
import { EndedBefore } from './ended-before.ts';
import type { EpochContext, Prepared, Produced } from './epoch-context.ts';
import { createEpochHost, type EpochHost, untilTaken } from './epoch-host.ts';
import { gradeInPlace, isGradedInPlace } from './grade-in-place.ts';
import { stopReason } from './stop-reason.ts';
import { workInSteps } from './task-steps.ts';
import { untilAllowed } from './until-allowed.ts';
import { type Worked, workOnce } from './work-once.ts';

/**
 * Runs one epoch of a rollout in one sandbox: image, slot, provisioning, agent, diff and trace. The sandbox is released
 * whatever happens; if even that fails, the reaper removes it when its lifetime is over.
 */
export async function produce(context: EpochContext): Promise<Produced> {
  const { input, resolved, epoch, loss, meter } = context;
  const { task, usesModel } = resolved;
  const placed = await place(context);
  const { limitsCreations = false } = placed;
  const host = createEpochHost({ ...context, usesModel }, placed);
  const sandbox = trackSandbox(context, host);
  let open = usesModel;
  // Only an agent, which is started in a provisioned sandbox, calls the model.
  let provisioned = false;
  try {
    const sandboxed = await prepare(context, host, { limitsCreations, ran: sandbox.ran });
    const { kind } = sandboxed;
    provisioned = true;
    sandbox.provisioned(kind);
    host.provisioned(kind);
    const worked = await letWork(context, host, { ...sandboxed, limitsCreations });
    const { answer: known, end: ended, released, ...work } = worked;
    if (released) sandbox.noteRelease();
    const seal = () => host.stage('sealTrace', () => sealingOn(host.name).sealTrace({ epoch }));
    const inPlace = isGradedInPlace(task);
    const sealed = usesModel ? seal() : Promise.resolve(null);
    const [trace] = await both(sealed, inPlace ? Promise.resolve() : sandbox.release());
    open = false;
    if (trace !== null) meter.session(useOfTrace(trace));
    const end = { ...ended, stop: stopReason(resolved.hostTools, trace, ended.stop) };
    const given = known ?? trace?.answer;
    const answer = given === undefined ? {} : { answer: given };
    const produced = { ...work, end, trace, ...answer, limitsCreations };
    if (!inPlace) return produced;
    const timeoutMs = context.limits.evaluationMs;
    const graded = await gradeInPlace(host, { input, task, epoch, kind, diff: work.diff, ...answer, timeoutMs });
    return { ...produced, graded };
  } finally {
    await sandbox.release();
    if (open) {
      const close = () => CancellationScope.nonCancellable(() => closeTrace(host.name, epoch));
      const use = loss.isLost(host.name) ? null : await close();
      if (provisioned) meter.session(use);
    }
  }
}

/** Prepares the image, if the task's sandboxes need one that the host must get, and waits for a host with a free slot. */
async function place({ input, resolved, epoch, progress, loss }: EpochContext): Promise<Placement> {
  const { task } = resolved;
  const { agent, sandbox } = input;
  const prepared =
    sandbox !== 'local' && needsImages(task)
      ? await progress.stage('prepareImage', () => whereOffered(() => images.prepareImage({ task, agent, sandbox })))
      : null;
  const placed = await progress.stage('placeRollout', () =>
    placement(workflowInfo().priority).placeRollout({
      epoch,
      ...(prepared !== null && { image: prepared.image }),
      ...(sandbox !== 'auto' && { kind: sandbox }),
    }),
  );
  if ('ended' in placed) throw new EndedBefore(placed.ended);
  progress.host = placed.host;
  loss.begin(placed.host, placed.token);
  upsertSearchAttributes([{ key: searchAttributes.host, value: placed.host }]);
  return placed;
}

/** Whether a host may have to get an image for the task. */
const needsImages = ({ imageFrom, services, testSandbox }: Task): boolean =>
  imageFrom !== undefined || services !== undefined || testSandbox?.imageFrom !== undefined;

/** Counts what an epoch's sandbox costs from when a host begins to provision it, and releases it. */
function trackSandbox(context: EpochContext, host: EpochHost) {
  const { input, loss, meter } = context;
  let beganMs: number | null = null;
  let provider: SandboxProvider = input.sandbox === 'auto' ? 'unknown' : input.sandbox;
  let released = false;
  /** The host that was asked to release the sandbox and did not, by the token under which it had adopted that. */
  let failedAt: { readonly adoptedAs: string | undefined } | null = null;
  async function tryRelease(): Promise<void> {
    const { name, adoptedAs } = host;
    // A host that comes back removes what it holds.
    const done = !loss.isLost(name) && (await CancellationScope.nonCancellable(() => release(context, name)));
    failedAt = done ? null : { adoptedAs };
  }
  /** Whether the sandbox, which was not released, has another host by now. */
  async function hasMoved(): Promise<boolean> {
    if (failedAt === null) return false;
    if (failedAt.adoptedAs !== host.adoptedAs) return true;
    // A cancelled rollout ends now, and the reaper removes what it leaves.
    if (!loss.isLost(host.name) || CancellationScope.current().consideredCancelled) return false;
    return host.adoptToRelease();
  }
  function noteRelease(): void {
    released = true;
    if (beganMs !== null) meter.sandbox(provider, beganMs);
  }
  return {
    /** Notes that its provisioning ran for so long, and ends now. A wait for that is no cost. */
    ran(seconds: number): void {
      if (seconds > 0) beganMs ??= Date.now() - 1000 * seconds;
    },
    provisioned(kind: SandboxKind): void {
      provider = kind;
    },
    /** Notes that another stage has released it. */
    noteRelease,
    /** May be called again, since another host may adopt the rollout from one that was lost before it released the sandbox. */
    async release(): Promise<void> {
      if (!released) {
        await tryRelease();
        noteRelease();
      } else if (await hasMoved()) await tryRelease();
    },
  };
}

/** Lets an agent work at the task, or one at each of its steps. */
function letWork(
  context: EpochContext,
  host: EpochHost,
  sandboxed: Prepared & Pick<Produced, 'limitsCreations'>,
): Promise<Worked> {
  const { steps } = context.resolved.task;
  return steps === undefined ? workOnce(context, host, sandboxed) : workInSteps(context, host, { ...sandboxed, steps });
}

/** Opens the trace and creates the sandbox at the same time, so that a rollout waits only for the slower of the two. */
async function prepare(
  { input, resolved, limits, epoch, progress }: EpochContext,
  host: EpochHost,
  { limitsCreations, ran }: Pick<Produced, 'limitsCreations'> & { readonly ran: (seconds: number) => void },
): Promise<Prepared> {
  const { task, usesModel, hostTools } = resolved;
  const { member, agent, sandbox, sampling, maxTurns, maxSampledTokens, policyVersion, upstream } = input;
  const policy = member ? { runKey: member.runKey, pool: member.pool ?? defaultPool } : input.policy;
  const openTrace = () =>
    host.stage('openTrace', () =>
      sessionsOn(host.name).openTrace({
        epoch,
        seed: epochSeed(input.seed ?? epoch.rollout, epoch.epoch),
        sampling,
        maxTurns,
        maxSampledTokens,
        hostTools,
        ...(hostTools && { task: { id: task.id, bundle: task.bundle } }),
        lifetimeMs: limits.sessionMs,
        runKey: member?.runKey ?? null,
        group: member?.index ?? null,
        branches: input.branches ?? resolved.branches ?? trainAllBranches,
        policy,
        policyVersion,
        upstream,
      }),
    );
  const run = member?.run ?? '';
  const { lifetimeMs, waitingInAllMs: waitingMs } = limits;
  const [opened, provisioned] = await both(
    usesModel ? openTrace() : Promise.resolve(null),
    host.stage('provisionSandbox', async () => {
      if (limitsCreations) await untilAllowed();
      const times = { lifetimeMs, waitingMs };
      try {
        const made = await provisioningOn(host.name).provisionSandbox({ epoch, run, task, agent, sandbox, ...times });
        ran(made.seconds);
        return made;
      } catch (error) {
        ran(secondsSpent(error));
        throw error;
      }
    }),
  );
  progress.agentVersion = provisioned.agentVersion;
  return { ...provisioned, contextLength: opened?.contextLength ?? null };
}

/** Waits for both even if one fails, so that nothing is created after the clean-up. */
async function both<First, Second>(first: Promise<First>, second: Promise<Second>): Promise<[First, Second]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}

/**
 * Releases the sandbox, and returns whether it is gone. A failure never replaces the rollout's outcome: it is logged, and left to
 * the reaper.
 */
async function release(context: EpochContext, host: string): Promise<boolean> {
  const { epoch, progress } = context;
  const work = () => progress.stage('releaseSandbox', () => cleanUpOn(host).releaseSandbox({ epoch }), 'continue');
  const releasing = context.loss.guard(host, 'releaseSandbox', () => untilTaken(context, host, work));
  return releasing.then(
    () => true,
    (error) => {
      log.warn('the sandbox is left to the reaper', { error: String(error) });
      return false;
    },
  );
}

/**
 * Closes a session that was not sealed, so that it takes no more turns. If even that fails, it expires. Returns what its
 * model calls cost, or null if that is unknown.
 */
async function closeTrace(host: string, epoch: RolloutEpoch): Promise<ModelUse | null> {
  try {
    return await sessionsOn(host).closeTrace({ epoch });
  } catch (error) {
    log.warn('the session is left to expire', { error: String(error) });
    return null;
  }
}
