import { isCancellation, log, upsertSearchAttributes } from '@temporalio/workflow';
import type { Adoption, Placement } from '../../activities/interfaces/host.ts';
import { adoptionOf, control } from '../activities.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import type { Stage } from '../contracts/rollout.ts';
import { isRemote, type SandboxKind } from '../contracts/sandbox-kinds.ts';
import { searchAttributes } from '../contracts/search-attributes.ts';
import type { ResolvedTask } from '../contracts/task.ts';
import { StageFailure } from './failure.ts';
import type { HostLoss } from './host-loss.ts';
import type { Progress } from './progress.ts';

/** The host on which the stages of an epoch run. Once the sandbox is provisioned, another host may adopt it from a lost one. */
export interface EpochHost {
  readonly name: string;
  /** The fencing token under which the host has adopted the sandbox; undefined if it made it. */
  readonly adoptedAs: string | undefined;
  /** Notes that the sandbox is there for others to adopt. */
  provisioned(kind: SandboxKind): void;
  /** Asks another host to adopt the sandbox from this one, which was lost before it released it. Returns whether one did. */
  adoptToRelease(): Promise<boolean>;
  /** Runs a stage on the host. If that is lost and another one adopts the sandbox, runs the stage again there. */
  stage<Result>(stage: Stage, work: () => Promise<Result>): Promise<Result>;
}

export interface EpochHostContext {
  readonly epoch: RolloutEpoch;
  readonly usesModel: boolean;
  readonly resolved: Pick<ResolvedTask, 'task'>;
  readonly progress: Progress;
  readonly loss: HostLoss;
}

export function createEpochHost(context: EpochHostContext, placed: Placement): EpochHost {
  const { progress, loss } = context;
  let name = placed.host;
  let adoptedAs: string | undefined;
  let kind: SandboxKind | null = null;

  async function adopt(stage: Stage, failure: unknown): Promise<boolean> {
    if (!(failure instanceof StageFailure) || failure.record.type !== 'HostLost') return false;
    if (!loss.isLost(name) && !failure.reported) return false;
    return moveFrom(stage);
  }

  /** Moves on to a host that adopts the sandbox from the present one. Returns false if there is none. */
  async function moveFrom(stage: Stage): Promise<boolean> {
    if (kind === null || !isRemote(kind)) return false;
    const unadoptable = placed.unadoptable === true && adoptedAs === undefined;
    const adopted = await askForAdoption(context, { stage, kind, from: name, unadoptable });
    if (adopted === null) return false;
    progress.adoptions += 1;
    progress.note(`host ${name} was lost at ${stage}, and host ${adopted.host} adopted the sandbox`);
    name = adopted.host;
    adoptedAs = adopted.token;
    loss.begin(name, adoptedAs);
    progress.host = name;
    upsertSearchAttributes([{ key: searchAttributes.host, value: name }]);
    return true;
  }

  return {
    get name() {
      return name;
    },
    get adoptedAs() {
      return adoptedAs;
    },
    provisioned(provisioned) {
      kind = provisioned;
    },
    adoptToRelease: () => moveFrom('releaseSandbox'),
    async stage(stage, work) {
      for (;;) {
        const host = name;
        try {
          const run = () => progress.stage(stage, work);
          return await loss.guard(host, stage, () => untilTaken(context, host, run));
        } catch (error) {
          if (!(await adopt(stage, error))) throw error;
        }
      }
    },
  };
}

interface Loss {
  readonly stage: Stage;
  readonly kind: SandboxKind;
  readonly from: string;
  /** Whether the lost host shared its journals with no other, so that none needs to be asked. */
  readonly unadoptable: boolean;
}

/** Asks the hosts that share their journals to adopt the sandbox. Returns null if none could, which is explained. */
async function askForAdoption(
  { epoch, usesModel, resolved, progress }: EpochHostContext,
  { stage, kind, from, unadoptable }: Loss,
): Promise<Exclude<Adoption, { refused: string }> | null> {
  // Once the diff is stored, the sandbox is needed for tests in it alone, and may be gone.
  const needsSandbox = stage !== 'sealTrace' || resolved.task.gradedIn === 'same';
  const unadopted = (reason: string): null => {
    progress.note(`host ${from} was lost at ${stage}, and no host adopted the sandbox: ${reason}`);
    log.warn('no host adopted the sandbox of a lost host', { from, reason });
    return null;
  };
  if (unadoptable) return unadopted(`host ${from} shared its journals with no other (TEMPER_JOURNALS)`);
  try {
    // A sandbox whose agent has ended is released without its journal.
    const adoption = progress.adoptions + 1;
    const calls = usesModel && stage !== 'releaseSandbox';
    const request = { epoch, kind, from, adoption, usesModel: calls, needsSandbox };
    const answer = await progress.stage(
      'adoptSandbox',
      () => adoptionOf(kind).adoptSandbox(request),
      // The agent waits for an answer to its call.
      'continue',
    );
    return 'host' in answer ? answer : unadopted(answer.refused);
  } catch (error) {
    if (isCancellation(error) || !(error instanceof StageFailure)) throw error;
    return unadopted(error.neverStarted ? 'no host that shares its journals took it' : error.message);
  }
}

/**
 * Runs a stage on the rollout's own host. If no worker took it in time, asks whether the host is alive: the rollout waits
 * for a busy host, and gives up a lost one.
 */
export async function untilTaken<Result>(
  { loss }: Pick<EpochHostContext, 'loss'>,
  host: string,
  run: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof StageFailure) || !error.neverStarted) throw error;
      const { alive } = await control.inspectHost({ host });
      if (alive) continue;
      loss.declare(host);
      throw error;
    }
  }
}
