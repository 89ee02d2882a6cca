/**
 * The error model.
 *
 * 1. A failure is attributed once, at the boundary where it happened: infra throws a `TemperFailure`, the boundary helper
 *    in activities/ turns it into a Temporal failure of the same type, the workflow maps the type to an outcome by this table.
 * 2. What the policy does to itself is not a failure: a wrong patch, a crash, its memory or disk used up is `scored`.
 * 3. `infra` needs evidence from outside the sandbox. It is retried at its stage, then ends the rollout, never as reward 0.
 * 4. The `type` strings are API: retry policies, the UI and the docs use them.
 */
export interface FailureKind {
  /** The outcome of a rollout whose stage ends with this failure. `refused`: nothing was started. */
  readonly outcome: 'infra' | 'invalid-task' | 'cancelled' | 'refused';
  /** Whether the same stage may be retried without a change. */
  readonly retryable: boolean;
  /** One sentence on what happened. */
  readonly description: string;
  /** One sentence on what to do. */
  readonly remedy: string;
}

export const failureKinds = {
  InvalidInput: {
    outcome: 'refused',
    retryable: false,
    description: 'The input does not match its schema, or a model directory or `upstreams.json` is invalid.',
    remedy: 'Correct the field that the message names.',
  },
  UnknownTask: {
    outcome: 'invalid-task',
    retryable: false,
    description: 'The address names no task, or a directory outside the task roots.',
    remedy: 'Correct the address, or add its root to `TEMPER_TASK_ROOTS`.',
  },
  MalformedTask: {
    outcome: 'invalid-task',
    retryable: false,
    description: 'A file of the task is missing or invalid.',
    remedy: 'Correct the file and field that the message names.',
  },
  MissingImage: {
    outcome: 'invalid-task',
    retryable: false,
    description:
      "The Docker host or the cluster lacks the task's image, and the registry does not have it or does not allow the pull; or the E2B server has no template of it.",
    remedy: 'Correct the name; or push the image, allow its pull, load or build it on the host, or build its template.',
  },
  BuildFailed: {
    outcome: 'invalid-task',
    retryable: false,
    description: "The task's Dockerfile could not be built: a command failed, took too long or needed a network.",
    remedy: 'Read the build log, whose blob the message names; see `TEMPER_NETWORK`.',
  },
  ImageUnavailable: {
    outcome: 'infra',
    retryable: true,
    description:
      'The registry does not answer, closed the connection, or sent nothing for five minutes; or the node of a Pod has not pulled it in time.',
    remedy: 'Check the registry and the network of the Docker host or node; see `TEMPER_KUBERNETES_WAIT`.',
  },
  UnsupportedTask: {
    outcome: 'invalid-task',
    retryable: false,
    description:
      'No sandbox of this host offers what the task needs, no parser reads its test log, or the agent does not run in the requested kind of sandbox.',
    remedy: 'Use another `sandbox`, or leave the task out.',
  },
  SetupFailed: {
    outcome: 'invalid-task',
    retryable: false,
    description:
      "The task's set-up commands failed, ended their sandbox or produce different files each time, its tests got no copy of its workdir, or its reference solution does not apply.",
    remedy: 'Read the output in the message, and run the commands in the image twice.',
  },
  InvalidReward: {
    outcome: 'invalid-task',
    retryable: false,
    description:
      'The tests wrote a reward that is not a number from 0 to 1, or scores without weights, also for the untouched workspace; or a reward of your own is no such number.',
    remedy: "Correct the task's `tests/test.sh` or your reward, or name `reward_weights`.",
  },
  BrokenTests: {
    outcome: 'invalid-task',
    retryable: false,
    description:
      'The tests cannot pass: a download fails, a program is missing, their disk is full or they write no reward, also over the untouched workspace and with the reference solution.',
    remedy: 'Correct the task as the message says, and run `temper tasks validate`.',
  },
  MissingProgram: {
    outcome: 'infra',
    retryable: false,
    description:
      'The tests do not find a program on this host, also with the reference solution: a local sandbox has the programs of its host, whatever the image.',
    remedy: 'Install the program on the host, or use Docker sandboxes; then regrade.',
  },
  NetworkUnavailable: {
    outcome: 'infra',
    retryable: true,
    description:
      'The tests could not reach a host that the task allows: it does not answer, or its name leads nowhere or to an address that is not public. With the reference solution they fail for the same reason.',
    remedy: "Check the host's network, and whether the task's hosts still exist and are public; then regrade.",
  },
  UnknownAgent: {
    outcome: 'refused',
    retryable: false,
    description: 'There is no agent of that name, or it cannot be used here.',
    remedy: 'Use an agent that the message lists.',
  },
  AgentInstallFailed: {
    outcome: 'infra',
    retryable: true,
    description: "npm could not install the agent's program on this host.",
    remedy: "Read npm's output in the message, and fix the network, the registry or the disk.",
  },
  SandboxLost: {
    outcome: 'infra',
    retryable: false,
    description: 'The sandbox is gone, or was ended from outside.',
    remedy: 'Read the evidence in the message.',
  },
  SandboxUnavailable: {
    outcome: 'infra',
    retryable: true,
    description: 'The container engine does not answer, or the sandbox is not ready or too busy for its commands.',
    remedy: 'Run `temper doctor`; the stage is retried.',
  },
  Throttled: {
    outcome: 'infra',
    retryable: true,
    description: 'The provider of the sandboxes takes no more requests for now.',
    remedy: 'Nothing: the stage waits as the provider asks. If it happens often, ask for a higher limit.',
  },
  EvaluationTimedOut: {
    outcome: 'infra',
    retryable: true,
    description: 'The evaluation, beside the tests themselves, or the reading of their log took longer than its limit.',
    remedy: "Lower the host's load (`TEMPER_EVALUATIONS`); the evaluation is retried.",
  },
  SandboxConflict: {
    outcome: 'infra',
    retryable: false,
    description: 'A sandbox of another rollout or epoch has the same name.',
    remedy: 'Run `temper reap`, and check who else uses this host.',
  },
  AgentStateUnknown: {
    outcome: 'infra',
    retryable: false,
    description: 'An agent was about to be started, and there is no way to tell whether it ran.',
    remedy: 'Nothing: an agent is never started twice in one sandbox.',
  },
  HostLost: {
    outcome: 'infra',
    retryable: false,
    description: 'No host worker took the stage in time, or the worker stopped answering.',
    remedy: 'Restart the host worker; run `temper doctor`.',
  },
  HostFenced: {
    outcome: 'infra',
    retryable: true,
    description: 'The host may not act: its lease ran out, or it was declared lost.',
    remedy: 'Check that the host reaches the store; a host that was declared lost starts afresh by itself.',
  },
  WorkerLost: {
    outcome: 'infra',
    retryable: false,
    description: 'The worker of a stage without a host (trace, evaluation, reward) stopped answering in each retry.',
    remedy: "Read the worker's log; run `temper doctor`.",
  },
  DiskFull: {
    outcome: 'infra',
    retryable: true,
    description: 'The disk of the host or of the store is full.',
    remedy: 'Free some space; the stage is retried.',
  },
  StoreUnavailable: {
    outcome: 'infra',
    retryable: true,
    description: 'The store or a journal cannot be read or written.',
    remedy: 'Check permissions and mount of `TEMPER_HOME`, or what the message says about `TEMPER_STORE`.',
  },
  BlobMissing: {
    outcome: 'infra',
    retryable: false,
    description: 'The store lacks a blob, or holds other bytes under its name.',
    remedy: 'Give all processes of a stack the same `TEMPER_HOME` and `TEMPER_STORE`.',
  },
  GatewayUnavailable: {
    outcome: 'infra',
    retryable: true,
    description:
      'The gateway does not answer on its socket, failed to record or answer a turn, or was away for 60 seconds or more.',
    remedy: 'Read its log; `temper up` restarts it, otherwise run `temper gateway`.',
  },
  EngineUnavailable: {
    outcome: 'infra',
    retryable: true,
    description: 'The engine or an upstream model was away longer than the gateway, or the turn itself, waits.',
    remedy: "Check the engine with `temper doctor`; for an upstream model read the gateway's log.",
  },
  EngineWaitExceeded: {
    outcome: 'infra',
    retryable: false,
    description: 'The agent waited longer for an engine than its clock may stand still, and then its time was over.',
    remedy: 'Add engines, start fewer rollouts at once, or raise `engineWaitingSec`.',
  },
  EngineInvalid: {
    outcome: 'infra',
    retryable: false,
    description:
      'The engine sent a reply that cannot be trained on (ids or logprobs missing, not finite, or of different lengths), or an upstream model refused a request or sent an invalid reply.',
    remedy: 'Check its version and settings, or `upstreams.json`.',
  },
  EnvironmentUnavailable: {
    outcome: 'infra',
    retryable: true,
    description:
      "The OpenEnv environment of a task does not answer, closed the connection, or played the agent's earlier actions again with other results.",
    remedy: "Check the environment's server, and `environments.json`; the gateway's log has the reason.",
  },
  EngineQuarantined: {
    outcome: 'infra',
    retryable: true,
    description: 'The engine applied only part of a weight update, and stays paused until a publication succeeds.',
    remedy: 'Wait; if it does not recover, restart the engine.',
  },
  VersionNotServed: {
    outcome: 'infra',
    retryable: false,
    description: 'The engines do not serve the requested policy version, or no longer do.',
    remedy: 'Leave the version out, or publish LoRA adapters.',
  },
  UnknownUpstream: {
    outcome: 'refused',
    retryable: false,
    description: 'No upstream model of that name is configured, or the name now means another model.',
    remedy: 'Use a name that the message lists, or add it to `upstreams.json`.',
  },
  TrainerUnavailable: {
    outcome: 'infra',
    retryable: true,
    description: 'The trainer does not answer.',
    remedy: 'Check the trainer; the run waits for it.',
  },
  TrainerRefused: {
    outcome: 'infra',
    retryable: false,
    description:
      'The trainer refused a request or failed at it, for example because it ran out of memory, or reported a loss or a norm that is not finite.',
    remedy:
      'Read its answer in the message, and correct the cause; see `TEMPER_TRAINER_REQUEST_TOKENS`. Then run `temper resume`, or `temper resume --skip-step` for a batch that can never be applied.',
  },
  JournalMismatch: {
    outcome: 'infra',
    retryable: false,
    description: "The trainer's journal of a run does not end at the step at which the run is.",
    remedy: "Restore the store and Temporal's database from the same time; nothing was trained meanwhile.",
  },
  TrainerLostModel: {
    outcome: 'infra',
    retryable: true,
    description: 'The trainer restarted and no longer holds the model.',
    remedy: 'Nothing: the last checkpoint is loaded and the pinned batches are replayed.',
  },
  Excluded: {
    outcome: 'cancelled',
    retryable: false,
    description: 'The agent ended in a way that `unscored` excludes.',
    remedy: 'Nothing: the input asked for it.',
  },
  Internal: {
    outcome: 'infra',
    retryable: true,
    description: 'An unexpected error: a bug in temper or in a dependency.',
    remedy: 'Report it with the stack trace from the event history.',
  },
} as const satisfies Record<string, FailureKind>;

export type FailureType = keyof typeof failureKinds;

/** A failure as data: small enough for workflow history. */
export interface FailureRecord {
  readonly type: FailureType;
  readonly message: string;
  /** The stage at which it was attributed. */
  readonly stage?: string;
}

/** The error that infra throws. Its message says what is wrong, the value, and what to do. */
export class TemperFailure extends Error {
  readonly type: FailureType;

  constructor(type: FailureType, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TemperFailure';
    this.type = type;
  }
}

export function isFailureType(type: string | null | undefined): type is FailureType {
  return type !== null && type !== undefined && Object.hasOwn(failureKinds, type);
}
