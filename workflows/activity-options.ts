import type { ActivityOptions } from '@temporalio/workflow';
import { failureKinds } from './contracts/failures.ts';
import { collectMs } from './contracts/stage-limits.ts';

/** The failure types that Temporal must not retry. */
const nonRetryableErrorTypes: string[] = Object.entries(failureKinds)
  .filter(([, kind]) => !kind.retryable)
  .map(([type]) => type);

/**
 * Every timeout and retry policy, with its reason. Limits that belong to a rollout (agent, evaluation) come as arguments.
 *
 * - schedule-to-start includes the wait for a slot and the server's downtime. It fails nothing: when it is over, the rollout
 *   asks whether its host is alive, and queues the stage again if so. Every other limit counts from when the stage began.
 * - heartbeats are sent by a timer, or by a thread while the event loop is busy, so a killed worker is noticed after the
 *   heartbeat timeout, and a busy one is left alone. Each heartbeat is a write at the server.
 * - the pauses of the policies are multiplied by a random factor; see activities/retry-delay.ts.
 * - activity attempts are bounded: a stage that fails that often has a failure of its type, not bad luck.
 */
const retry = (maximumAttempts: number, initialInterval: '200ms' | '1s', maximumInterval: '5s' | '30s') => ({
  maximumAttempts,
  initialInterval,
  maximumInterval,
  backoffCoefficient: 2,
  nonRetryableErrorTypes,
});

const host = {
  startToCloseTimeout: '5m',
  heartbeatTimeout: '15s',
  retry: retry(12, '200ms', '30s'),
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
} as const satisfies ActivityOptions;

/**
 * The time in the queue of a lane after which a rollout asks whether its host is alive. The question costs some writes, so
 * it comes rarely: a thousand rollouts that wait ask less than twice a second together.
 */
const inspectAfter = '10m';

export const timeouts = {
  /** Light work on files and temper's own processes. It is retried for some minutes while a gateway or the store is away. */
  light: {
    startToCloseTimeout: '30s',
    retry: retry(20, '200ms', '30s'),
  },
  /** A question to the gateways of one host, which the asker can do without. */
  versions: {
    scheduleToStartTimeout: '10s',
    startToCloseTimeout: '30s',
    retry: retry(3, '200ms', '5s'),
  },
  /** Work within a workflow task, which ends after ten seconds. If one try fails, the work becomes an activity of its own. */
  inWorkflowTask: {
    startToCloseTimeout: '5s',
    retry: { maximumAttempts: 1 },
  },
  /** The record of a rollout waits for the store, however long it is away: a result that is not recorded could be lost. */
  record: {
    startToCloseTimeout: '30s',
    retry: retry(1_000_000, '200ms', '30s'),
  },
  /** Light work of a host's own gateways. It is retried for some minutes while they are away. */
  session: {
    scheduleToStartTimeout: '5m',
    startToCloseTimeout: '30s',
    retry: retry(20, '200ms', '30s'),
  },
  /** The agent's work is safe in the gateway's journal, so the stage waits some eight hours for a gateway that is away. */
  seal: {
    scheduleToStartTimeout: '5m',
    startToCloseTimeout: '2m',
    retry: retry(1000, '200ms', '30s'),
  },
  /** Reads and writes of whole batches, which take seconds for thousands of traces. */
  batch: {
    startToCloseTimeout: '10m',
    heartbeatTimeout: '30s',
    retry: retry(20, '200ms', '30s'),
  },
  /** Triggering schedules, which each step does once and waits for. An evaluation that can't be started must not stop training. */
  trigger: {
    scheduleToCloseTimeout: '1m',
    startToCloseTimeout: '20s',
    retry: retry(3, '1s', '5s'),
  },
  /**
   * The wait for a host with a free slot, however long the run is backed up. It is spent in the task queue, where it costs
   * nothing; the limit counts from when a host took the rollout. A cancelled rollout waits for the answer of a host that has
   * just taken it, because it must release the slot.
   */
  place: {
    startToCloseTimeout: '2m',
    heartbeatTimeout: '15s',
    retry: retry(1_000_000, '200ms', '5s'),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  },
  /**
   * The wait for the creation of a sandbox, where its rate is limited. It is spent in the task queue. After an hour no host may
   * have the limit any more, and the rollout goes without.
   */
  creation: {
    scheduleToStartTimeout: '1h',
    startToCloseTimeout: '10s',
    retry: retry(20, '200ms', '5s'),
  },
  /**
   * Heavy stages, which wait for a place in their lane, however long that takes. A stage is retried for two minutes, so that a
   * restart of the container engine does not cost an agent's work.
   */
  heavy: { ...host, scheduleToStartTimeout: inspectAfter },
  /** The capture of gigabytes. It begins again with each attempt, so there are few. */
  snapshot: { ...host, scheduleToStartTimeout: inspectAfter, startToCloseTimeout: '30m', retry: retry(6, '1s', '30s') },
  /**
   * A pull or a build may take long; the activity itself ends one that makes no progress. A dead worker is noticed by its
   * heartbeats. The stage is retried for four minutes, because a registry may be away.
   */
  image: {
    startToCloseTimeout: '12h',
    heartbeatTimeout: '15s',
    retry: retry(12, '1s', '30s'),
  },
  /**
   * Pure observation, which any number of activity attempts may repeat. Its own limit is the agent's, given per rollout. A
   * thousand agents at work may cost few writes, so heartbeats are rare. What must be quick does not wait for one: a cancel
   * comes by `deliverCancel`, and a worker returns the attempts of its killed predecessor when it starts. Only the loss of
   * a whole machine is noticed by the missing heartbeat.
   */
  awaitAgent: {
    scheduleToStartTimeout: '5m',
    heartbeatTimeout: '4m',
    retry: retry(1000, '200ms', '5s'),
    cancellationType: 'TRY_CANCEL',
  },
  /** Makes a cancel quick. Without it, the release of the sandbox ends the agent, or a late heartbeat does. */
  deliverCancel: {
    scheduleToStartTimeout: '1m',
    startToCloseTimeout: '10s',
    retry: retry(3, '200ms', '5s'),
  },
  /**
   * The wait for a host that adopts the sandbox is short, since the rollout begins again without one. A cancelled
   * rollout waits for the answer of a host that has just adopted the sandbox, because it must release it there.
   */
  adopt: {
    scheduleToStartTimeout: '1m',
    startToCloseTimeout: '2m',
    heartbeatTimeout: '15s',
    retry: retry(12, '200ms', '5s'),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  },
  /**
   * The attempts at clean-up are bounded, because the reaper comes after it. One is longer than a busy node of a cluster may
   * take to remove its Pods (infra/sandbox/kubernetes/await-pod.ts).
   */
  release: {
    scheduleToStartTimeout: inspectAfter,
    startToCloseTimeout: '6m',
    heartbeatTimeout: '15s',
    retry: retry(20, '200ms', '5s'),
  },
  /**
   * The reaper's part on a host, which takes long where many sandboxes are. An unreachable host is not waited for: the reaper then
   * finds out whether it is lost, long before the host's rollouts would ask.
   */
  reapHost: {
    scheduleToStartTimeout: '2m',
    startToCloseTimeout: '10m',
    heartbeatTimeout: '15s',
    retry: retry(3, '1s', '5s'),
  },
  /** The reaper runs every minute anyway. */
  reap: {
    scheduleToCloseTimeout: '2m',
    startToCloseTimeout: '1m',
    retry: retry(3, '1s', '5s'),
  },
  /** A pass of retention ends by itself after ten minutes, and the next one comes within the hour, so it is not retried. */
  collect: {
    scheduleToStartTimeout: '30m',
    startToCloseTimeout: '30m',
    heartbeatTimeout: '30s',
    retry: retry(1, '1s', '5s'),
  },
  /**
   * An evaluation in a fresh sandbox. Its own limit is given per rollout. It is retried for minutes, because the
   * agent's work is done.
   */
  evaluate: {
    heartbeatTimeout: '15s',
    retry: retry(20, '200ms', '30s'),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  },
  /** An evaluation in the agent's own sandbox. It waits for a place in its host's lane, and is continued by each attempt. */
  evaluateInPlace: {
    scheduleToStartTimeout: inspectAfter,
    heartbeatTimeout: '15s',
    retry: retry(20, '200ms', '30s'),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  },
  /**
   * The trainer's journal makes updates exactly-once, so retries are safe. A trainer may need long to return or to replay, and is
   * waited for for more than an hour. The pauses stay short: one of a trainer that is killed often must not last longer than its lives.
   */
  train: {
    startToCloseTimeout: '2h',
    heartbeatTimeout: '10s',
    retry: retry(1000, '1s', '5s'),
  },
  /**
   * Restoring weights is repeated while the run is idle, and every step publishes anyway. A step that is ready cancels it and waits
   * for its answer, because both would use the model.
   */
  restore: {
    scheduleToCloseTimeout: '5m',
    heartbeatTimeout: '15s',
    retry: retry(3, '1s', '5s'),
    cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  },
} as const satisfies Record<string, ActivityOptions>;

/** The time on top of the agent's own limit in which the activity collects, and reports itself that the limit was reached. */
export const agentGraceMs = 120_000 + collectMs;

/** The time to fetch an image again, for stages that find it removed or run on a host that never had it. */
export const imageMs = 2 * 3_600_000;

/** The duration of all activity attempts to provision, with the wait for the host's worker and the pauses between them. */
export const provisioningMs = timeouts.heavy.retry.maximumAttempts * (imageMs + 6 * 60_000);

/** The largest number of epochs of a rollout. When its last sandbox is lost too, it ends as `infra`. */
export const maxEpochs = 3;

/** The time without a change after which a run asks the server about groups that did not report, in milliseconds. */
export const reconcileAfterMs = 60_000;
/**
 * The longest such time. While a step is made, or no group is in flight, each is twice the last one: a run that waits for days writes
 * little, and a run cannot continue as new in the midst of a step.
 */
export const reconcileMostMs = 600_000;

/**
 * The first interval at which work that was cancelled and has not ended is cancelled again. A cancel can get lost, and clean-up
 * takes time. Each interval is twice the last one, because each cancel of a thousand workflows adds two thousand events to the
 * history, and the server ends a workflow at 50,000.
 */
export const cancelAgainFirstMs = 5_000;
/** The longest interval at which a workflow looks after work that it has cancelled, likewise. */
export const cancelledLookMostMs = 60_000;
/** The interval at which a cancelled run looks after the rollouts of groups that were terminated, since these report nothing. */
export const endingLookMs = 5_000;

/** The first and the longest interval at which a sweep asks about rollouts that an earlier execution started. */
export const adoptedFirstMs = 2_000;
export const adoptedMostMs = 60_000;
