import type { Adoption, AdoptSandbox, Placement } from '../../../activities/interfaces/host.ts';
import type { Tasks } from '../../../infra/tasks/tasks.ts';
import type { BlobRef } from '../../../workflows/contracts/blob.ts';
import { TemperFailure } from '../../../workflows/contracts/failures.ts';
import type { Flag, Trick } from '../../../workflows/contracts/flags.ts';
import type { StopReason } from '../../../workflows/contracts/outcome.ts';
import type { SandboxKind } from '../../../workflows/contracts/sandbox-kinds.ts';
import type { Task } from '../../../workflows/contracts/task.ts';
import type { BranchRule, Segment, Trace, TraceSummary } from '../../../workflows/contracts/trace.ts';
import type { Upstream } from '../../../workflows/contracts/upstream.ts';
import type { Verdict } from '../../../workflows/contracts/verdict.ts';

/** The behaviour of scripted activities. A function that rejects makes the activity fail; one that waits makes it wait. */
export interface Script {
  /** Returns the reward of a rollout, by its workflow id. */
  reward(workflowId: string): number;
  /** Resolves when the run's model is ready. */
  prepare?(): Promise<void>;
  /** Rejects when the next task can't be determined. */
  choose?(): Promise<void>;
  /** Rejects when the rows of a sweep can't be recorded. */
  record?(): Promise<void>;
  /** Resolves when a sweep may ask for the ends of rollouts that do not report to it. */
  ask?(): Promise<void>;
  /** Rejects when the report of a sweep or a regrade can't be written. */
  summarise?(): Promise<void>;
  /** Rejects when the update can't be made. */
  update?(): Promise<void>;
  /** Rejects when the step can't be skipped. */
  skip?(step: number): Promise<void>;
  /** Rejects when the sandbox can't be created. */
  provision?(workflowId: string): Promise<void>;
  /** The kind of the sandboxes. Default: `local`. */
  readonly kind?: SandboxKind;
  /** The way in which the tasks are graded. Default: over the diff in a fresh sandbox. */
  readonly gradedIn?: Task['gradedIn'];
  /** The steps of the tasks. Default: each is one piece of work. */
  readonly steps?: Task['steps'];
  /** Returns the host that adopts a sandbox of the kind `e2b`, or why none does. Default: the one that has all sandboxes. */
  adopt?(request: AdoptSandbox): Adoption;
  /** The fencing token of the host. Default: that of its first generation. */
  readonly token?: string;
  /** Whether the host shares its journals with no other, so that none adopts its sandboxes. */
  readonly unadoptable?: true;
  /** Returns whether a host is alive. Default: each is. */
  isAlive?(host: string): boolean;
  /** Lists the workflows without a run. Default: there are none. */
  orphans?(): Promise<{ readonly groups: readonly string[]; readonly rollouts: readonly string[] }>;
  /** Resolves when the agent of this rollout has ended. */
  agent?(workflowId: string): Promise<void>;
  /** Returns the reason why the agent of this rollout ended. Default: it submitted. */
  stop?(workflowId: string): StopReason;
  /** Rejects when a session can't be sealed. */
  seal?(): Promise<void>;
  /** Rejects when a sandbox can't be released. */
  release?(): Promise<void>;
  /** Called for each sandbox that a rollout is about to have created. Present: the hosts limit creations. */
  readonly allowCreation?: (rollout: string) => void;
  /** Resolves when the tests of this workflow's rollout have ended. */
  evaluate?(workflowId: string): Promise<void>;
  /** Resolves when the engines have this version again. */
  restore?(version: number, signal: AbortSignal): Promise<void>;
  /** Whether images come from a registry. */
  pulled?: boolean;
  /** The rule that the agent declares. Default: none. */
  branches?: BranchRule;
  /** Returns the version that samples for this workflow. Default: the last published one. */
  version?(workflowId: string): number;
  /** Returns the smallest version that has sampled for each of these groups. Default: none has sampled yet. */
  versions?(groups: readonly number[]): readonly (number | null)[];
  /** Returns the tricks for which the verdict of a rollout is flagged. */
  flags?(workflowId: string): readonly Trick[];
  /** Returns the model of the upstream `others`, the only one that is configured. */
  upstreamModel?(): string;
}

/** Looks an upstream model up, and throws as the gateway does if the name is not configured. */
export function findUpstream({ upstreamModel }: Script, name: string): Upstream {
  if (name === 'others') return { name, model: upstreamModel?.() ?? 'large' };
  throw new TemperFailure('UnknownUpstream', `upstream: expected one that upstreams.json names (others), got ${name}`);
}

/** The seconds that every evaluation says it ran. */
export const evaluationSeconds = 1.5;

export const verdictOf = (log: BlobRef, value: number, flags: readonly Flag[]): Verdict => ({
  kind: 'graded',
  value,
  exitCode: 0,
  passed: 0,
  failed: 0,
  log,
  subject: '',
  grader: 'scripted',
  flags,
});

/** The task of every rollout, whose bundle is this blob. */
export const taskOf = (bundle: BlobRef): Task => ({
  id: 'scripted',
  bundle,
  image: 'none',
  workdir: '/workspace',
  agentTimeoutSec: null,
  evaluationTimeoutSec: null,
  cpus: 1,
  memoryMb: 64,
  diskMb: 64,
});

/** The trace of a session with one turn of two tokens, sampled by one policy version. */
export function traceOf(session: string, version: number): Trace {
  const segment: Segment = {
    index: 0,
    kind: 'main',
    tokens: [1, 2, 3],
    mask: [0, 1, 1],
    logprobs: [0, -1, -1],
    versions: [-1, version, version],
    finishReason: 'stop',
    aborts: 0,
    maskedTurns: [],
  };
  return {
    session,
    turns: [],
    segments: [segment],
    branches: [],
    counts: {
      branches: {},
      unclear: 0,
      dropped: 0,
      droppedTokens: 0,
      maskedTurns: 0,
      forks: 0,
      aborts: 0,
      echoes: {},
    },
    forks: 0,
    maskedTurns: [],
    faultyCalls: {},
    transcript: [],
  };
}

/** The summary of such a trace. */
export const summaryOf = (trace: BlobRef, version: number): TraceSummary => ({
  trace,
  turns: 1,
  segments: 1,
  sampledTokens: 2,
  promptTokens: 4,
  engineSeconds: 1,
  waitedSeconds: 0,
  minVersion: version,
  maxVersion: version,
  contextOverflow: false,
  turnLimit: false,
  engineFailures: 0,
});

/** The summary of a trace that an upstream model sampled. */
export const upstreamSummaryOf = (trace: BlobRef, upstream: Upstream): TraceSummary => ({
  trace,
  upstream,
  turns: 3,
  segments: 0,
  sampledTokens: 70,
  promptTokens: 900,
  engineSeconds: 9,
  waitedSeconds: 0,
  minVersion: null,
  maxVersion: null,
  contextOverflow: false,
  turnLimit: false,
  engineFailures: 0,
});

/** The placement of every rollout. */
export const placementOf = ({ allowCreation, token = 'scripted/1', unadoptable }: Script): Placement => ({
  host: 'scripted',
  token,
  ...(allowCreation && { limitsCreations: true }),
  ...(unadoptable && { unadoptable }),
});

const addresses = (set: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${set}#${index}`);

/** Tasks by their addresses alone, which cannot be read. */
export const listedTasks: Pick<Tasks, 'first' | 'list' | 'find'> = {
  first: async (set, count) => addresses(set, count),
  list: async (set) => addresses(set, 8),
  find: (address) => Promise.reject(new Error(`expected no look at a task, got one at ${address}`)),
};

/** Does the work of an activity once its part of the script has resolved. */
export async function following<Result>(part: Script['record'], work: () => Promise<Result>): Promise<Result> {
  await part?.();
  return work();
}

/** The answer of engines that serve one version. */
export const serving = (version: number) => ({ version, versions: [version] });
