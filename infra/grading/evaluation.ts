import type { EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import type { Task } from '../../workflows/contracts/task.ts';
import type { BuildContext, ReportImage } from '../sandbox/image.ts';
import type { PreparedSandbox } from '../sandbox/prepare-image.ts';
import type { Providers } from '../sandbox/providers.ts';
import type { SandboxKind, SandboxMount, SandboxProvider } from '../sandbox/sandbox.ts';
import type { SandboxOwner } from '../sandbox/sandbox-request.ts';
import type { Beside, TaskService } from '../sandbox/service.ts';
import type { Store } from '../store/store.ts';
import type { KnownRuns } from './evidence/known-runs.ts';
import type { GradedTask } from './task.ts';
import type { TestNetwork } from './tests/test-network.ts';
import type { VerdictCache } from './verdict-cache.ts';

/** A graded task together with the content of its image. */
type EvaluatedTask = GradedTask & {
  readonly build: BuildContext | null;
  readonly beside: Beside<TaskService> | null;
};

/** The parts of a host that an evaluation uses. */
export interface EvaluationHost extends SandboxOwner {
  readonly store: Store;
  readonly verdicts: VerdictCache;
  /** The results of tests without an agent's work. */
  readonly knownRuns: KnownRuns;
  /** Whether the disk of the sandboxes on this host is full. */
  isDiskFull(): boolean;
  readonly tasks: { open(task: Task): Promise<EvaluatedTask> };
  readonly choose: Providers['choose'];
  /** Runtimes that the tests need and the image lacks. */
  evaluationMounts(kind: SandboxKind): Promise<readonly SandboxMount[]>;
  /** PATH for commands in a sandbox of this kind; null keeps the sandbox's own. */
  pathOf(kind: SandboxKind): string | null;
  /**
   * Opens the network of a task's tests; undefined if they get none. Throws UnsupportedTask if they need more than this
   * host allows.
   */
  testNetwork(
    task: Task,
    where: { readonly sandbox: string; readonly channels: SandboxProvider['channels'] },
  ): Promise<TestNetwork | undefined>;
  /** Reports a sandbox that could not be removed after its evaluation. It expires, and the reaper removes it. */
  reportLeft(sandbox: string, error: unknown): void;
}

/** One activity attempt of an evaluation. */
export interface EvaluationTry {
  /** The number of the activity attempt, from 1. */
  readonly number: number;
  readonly report: ReportImage;
}

/** A diff to judge, with all that its fresh sandboxes are made of. */
export interface Evaluation extends EvaluationRequest, EvaluationTry, PreparedSandbox {
  readonly provider: SandboxProvider;
  /** The task's files, with the answer that was recorded beside the tests. */
  readonly files: EvaluatedTask;
  /** The task's files without an answer of the agent's; `files` itself if it has none. */
  readonly ownFiles: EvaluatedTask;
  /** Whether the reference solution is applied before the diff. */
  readonly solve: boolean;
}
