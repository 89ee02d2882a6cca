import type { AgentSpec } from '../../infra/agents/agent.ts';
import type { VerdictCache } from '../../infra/grading/verdict-cache.ts';
import type { Providers } from '../../infra/sandbox/index.ts';
import type {
  Sandbox,
  SandboxKind,
  SandboxMount,
  SandboxNeeds,
  SandboxProvider,
  SandboxPurpose,
  SandboxSpec,
} from '../../infra/sandbox/sandbox.ts';
import type { Store } from '../../infra/store/store.ts';
import type { HarborTask } from '../../infra/tasks/harbor/harbor.ts';
import type { Tasks } from '../../infra/tasks/tasks.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { agentSandboxName, type RolloutEpoch } from '../../workflows/contracts/ids.ts';
import type { SandboxChoice } from '../../workflows/contracts/rollout.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { Places } from './places.ts';

/** What a host's activities work with. */
export interface Host {
  readonly name: string;
  readonly stack: string;
  readonly store: Store;
  readonly verdicts: VerdictCache;
  readonly tasks: Tasks;
  readonly places: Places;
  readonly providers: Pick<Providers, 'all' | 'seen'>;
  /** The kind for a choice and a task; refuses by name what this host can't give. */
  choose(choice: SandboxChoice, task: Task, files: Pick<SandboxNeeds, 'filesInImage'>): Promise<SandboxProvider>;
  agent(name: string): AgentSpec;
  /** Holds the gateway's socket. */
  readonly gatewayDir: string;
  /** The secret of a gateway session; derived here, so that it never travels. */
  secretOf(session: string): string;
  /** Runtimes that tests need beyond the image. */
  evaluationMounts(kind: SandboxKind): Promise<readonly SandboxMount[]>;
  /** PATH for commands of a sandbox of this kind, where its own is not enough; null: its own. */
  pathOf(kind: SandboxKind): string | null;
}

export interface Place {
  readonly name: string;
  readonly attempt: RolloutEpoch;
  readonly run: string;
  readonly task: Task;
  /** What it is made of: see `prepareImage`. */
  readonly image: string;
  readonly purpose: SandboxPurpose;
  readonly sweep?: true;
  readonly expiresAtMs: number;
}

/** Where the files of a task lie: in its image, when it brings none. */
export const filesIn = ({ workspace }: Pick<HarborTask, 'workspace'>): Pick<SandboxNeeds, 'filesInImage'> => ({
  filesInImage: workspace.size === 0,
});

const pids = 512;

export function specOf(
  host: Host,
  place: Place,
  agent: Pick<SandboxSpec, 'mounts'> & { gateway: boolean },
): SandboxSpec {
  const { name, attempt, run, task, image, purpose, sweep, expiresAtMs } = place;
  return {
    name,
    image,
    labels: {
      ...{ stack: host.stack, run, rollout: attempt.rollout, epoch: attempt.epoch, purpose, expiresAtMs },
      ...(sweep && { sweep }),
    },
    cpus: task.cpus,
    memoryMb: task.memoryMb,
    diskMb: task.diskMb,
    pids,
    workdir: task.workdir,
    mounts: agent.mounts,
    ...(agent.gateway && { gatewayDir: host.gatewayDir }),
  };
}

/** The agent's sandbox as an earlier stage left it. One that is gone is never replaced by a blank one. */
export async function attached(
  host: Pick<Host, 'name' | 'providers'>,
  attempt: RolloutEpoch,
  kind: SandboxKind,
): Promise<Sandbox> {
  const name = agentSandboxName(attempt);
  const sandbox = await host.providers.all.get(kind)?.attach(name);
  if (sandbox !== undefined) return sandbox;
  throw new TemperFailure(
    'SandboxLost',
    `expected sandbox ${name} on host ${host.name}, got none; somebody removed it`,
  );
}
