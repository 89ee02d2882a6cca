import type { Provisioned } from '../../activities/interfaces/host.ts';
import { capturingAllOn } from '../activities.ts';
import type { RolloutEpoch } from '../contracts/ids.ts';
import type { RolloutInput } from '../contracts/rollout.ts';
import type { Snapshot } from '../contracts/snapshot.ts';
import type { ResolvedTask, Task } from '../contracts/task.ts';
import type { EpochHost } from './epoch-host.ts';

interface Captured {
  readonly input: RolloutInput;
  readonly resolved: Pick<ResolvedTask, 'task'>;
  readonly epoch: RolloutEpoch;
}

interface ProvisionedAgent extends Pick<Provisioned, 'kind' | 'carriesChanges'> {
  readonly contextLength: number | null;
}

/** Whether the tests of a task need a snapshot of the agent's sandbox, given whether that kind can carry all changes. */
export const needsSnapshot = ({ gradedIn }: Pick<Task, 'gradedIn'>, carriesChanges: boolean): boolean =>
  gradedIn === 'snapshot' || gradedIn === 'artifacts' || (gradedIn === 'snapshot-or-fresh' && carriesChanges);

/** Captures all that the agent changed in its sandbox, or its artifacts, if the tests get that. */
export async function captureSnapshot(
  { input, resolved, epoch }: Captured,
  host: EpochHost,
  { kind, contextLength, carriesChanges }: ProvisionedAgent,
): Promise<{ readonly snapshot?: Snapshot }> {
  const { task } = resolved;
  if (!needsSnapshot(task, carriesChanges)) return {};
  const { agent, agentOptions, maxTurns } = input;
  const start = { task, agent, maxTurns, contextLength, ...(agentOptions && { agentOptions }) };
  const snapshot = await host.stage('captureDiff', () =>
    capturingAllOn(host.name).captureSnapshot({
      epoch,
      kind,
      ...start,
      ...(host.adoptedAs !== undefined && { adoptedAs: host.adoptedAs }),
    }),
  );
  return { snapshot };
}
