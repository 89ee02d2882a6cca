import { errorMessage } from '../../workflows/contracts/error-message.ts';
import type { EvaluationRequest } from '../../workflows/contracts/evaluation.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { evaluationSandboxName } from '../../workflows/contracts/ids.ts';
import { evaluationMarginMs, preparationMs } from '../../workflows/contracts/stage-limits.ts';
import { ensureSandbox } from '../sandbox/ensure-sandbox.ts';
import { SandboxFailure, wasEndedInside } from '../sandbox/failure.ts';
import { mergeMounts } from '../sandbox/mount.ts';
import type { SandboxProvider } from '../sandbox/sandbox.ts';
import { sandboxSpec } from '../sandbox/sandbox-request.ts';
import { hasOtherCause } from '../sandbox/what-agent-left.ts';
import { withTimeLimit } from '../time-limit.ts';
import { judgeArtifacts } from './artifacts/judge-artifacts.ts';
import type { Evaluation, EvaluationHost } from './evaluation.ts';
import { judgeDiff } from './judge-diff.ts';
import { type Judged, judgeEnded } from './judged.ts';
import { patientAttempts } from './late.ts';
import { judgeSnapshot } from './snapshot/judge-snapshot.ts';
import { solve } from './solve.ts';
import { subjectOf } from './subject.ts';
import { testDirectory } from './tests/run-logged-tests.ts';
import { type TestNetwork, withNetwork } from './tests/test-network.ts';
import { testAccount } from './tests/test-process.ts';
import { prepareWorkspace, workspaceFiles } from './workspace/prepare-workspace.ts';

/** Judges the diff or the snapshot in a sandbox that is removed afterwards. */
export async function judgeInFreshSandbox(
  host: EvaluationHost,
  input: Evaluation,
  signal: AbortSignal,
): Promise<Judged> {
  const { provider, timeoutMs, number } = input;
  const nameOf = (activityAttempt: number): string =>
    evaluationSandboxName(input.epoch, activityAttempt, input.task.step);
  // Earlier activity attempts may have left half-made sandboxes.
  for (let earlier = 1; earlier < number; earlier += 1) await removeOrReport(host, provider, nameOf(earlier));
  const name = nameOf(number);
  const limitMs = timeoutMs + preparationMs;
  const late = new TemperFailure(
    'EvaluationTimedOut',
    `evaluation ${name} took longer than ${limitMs / 1000} s, so the host may be overloaded; the evaluation is retried`,
  );
  const network = await host.testNetwork(input.task, { sandbox: name, channels: provider.channels });
  let isSetUp = false;
  const onSetUp = (): void => {
    isSetUp = true;
  };
  try {
    const limited = { ...input, network, onSetUp };
    const judged = await withTimeLimit({ limitMs, late }, (ending) => judge(host, limited, name, ending), signal);
    return withNetwork(judged, await network?.end());
  } catch (error) {
    signal.throwIfAborted();
    const ended = { task: input.files, diff: input.diff, subject: subjectOf(input) };
    const judgeBroken = async (why: string) =>
      withNetwork(await judgeEnded(host.store, why, ended), await network?.end());
    if (error instanceof SandboxFailure) {
      if (!wasEndedInside(error)) throw retryable(error);
      if (!isSetUp) throw endedInSetUp(error, input);
      return judgeBroken(error.message);
    }
    if (!isSetUp || number <= patientAttempts || hasOtherCause(error)) throw error;
    const why = errorMessage(error);
    const evidence = [
      { kind: 'no-reward', what: 'reward', text: `their judgement ends with an error: ${why}` },
    ] as const;
    return { ...(await judgeBroken(why)), evidence };
  } finally {
    network?.close();
    await removeOrReport(host, provider, name, network);
  }
}

/**
 * Judges once more within one activity attempt. Throws if the sandbox of the first time cannot be removed, since the new one
 * has its name.
 */
export async function judgeAgain(host: EvaluationHost, input: Evaluation, signal: AbortSignal): Promise<Judged> {
  await input.provider.remove(evaluationSandboxName(input.epoch, input.number, input.task.step));
  return judgeInFreshSandbox(host, input, signal);
}

/** Removes a sandbox, or reports that it is left: its verdict counts, and another activity attempt has a sandbox of its own. */
async function removeOrReport(
  host: EvaluationHost,
  provider: SandboxProvider,
  name: string,
  network?: TestNetwork,
): Promise<void> {
  try {
    await provider.remove(name);
    await network?.remove();
  } catch (error) {
    host.reportLeft(name, error);
  }
}

/** Makes the loss of an evaluation's sandbox retryable: the agent's work is safe in the store, so no rollout is lost. */
function retryable(error: SandboxFailure): Error {
  if (error.type !== 'SandboxLost' && error.type !== 'SandboxConflict') return error;
  return new TemperFailure('SandboxUnavailable', `the evaluation lost its sandbox: ${error.message}`, { cause: error });
}

/**
 * The failure of a sandbox that ended before any work was in it. The agent cannot have caused that: a node whose memory is full may
 * have, and what the task itself runs there will do so each time.
 */
function endedInSetUp(error: SandboxFailure, { task, number }: Pick<Evaluation, 'task' | 'number'>): TemperFailure {
  const what = `the sandbox for the tests of task ${task.id} ended while it was set up, before the agent's work was in it: ${error.message}`;
  if (number <= patientAttempts) {
    return new TemperFailure('SandboxUnavailable', `${what}; the evaluation is retried`, { cause: error });
  }
  const todo = 'look at its memory limit, and at what its entry point, health check and set-up commands do';
  return new TemperFailure('SetupFailed', `${what}, in attempt ${number}; ${todo}`, { cause: error });
}

type NetworkedEvaluation = Evaluation & {
  readonly network: TestNetwork | undefined;
  /** Called once the task's own set-up has ended and the work comes into the sandbox. */
  onSetUp(): void;
};

async function judge(
  host: EvaluationHost,
  input: NetworkedEvaluation,
  name: string,
  signal: AbortSignal,
): Promise<Judged> {
  const { epoch, run, task, diff, snapshot, timeoutMs, provider, files, image, beside, network, number } = input;
  const { report, onSetUp } = input;
  const { workdir, diskMb } = task;
  const spec = sandboxSpec(host, {
    name,
    epoch,
    run,
    task,
    image,
    beside,
    purpose: 'evaluation',
    sweep: false,
    expiresAtMs: Date.now() + timeoutMs + evaluationMarginMs,
    mounts: mergeMounts(await host.evaluationMounts(provider.kind), network?.mounts ?? []),
    gatewayDir: null,
    ...(network !== undefined && { channel: network.channel }),
    files: [...workspaceFiles(files, workdir), ...testDirectory(files)],
  });
  const sandbox = await ensureSandbox(provider, { ...spec, report }, signal);
  const path = host.pathOf(provider.kind);
  const subject = subjectOf(input);
  const tests = { timeoutMs, path, network: network?.commands };
  const judged = { task: files, diff, workdir, diskMb, subject, attempt: number, ...tests };
  if (files.testImage !== null) {
    network?.carry(sandbox, testAccount(files));
    return judgeArtifacts(sandbox, host.store, { ...judged, artifacts: snapshot, onSetUp }, signal);
  }
  const { baseCommit } = await prepareWorkspace(
    sandbox,
    files,
    { workdir, placed: true, keep: false, hiddenTests: true },
    signal,
  );
  requireSameBase(input, baseCommit);
  onSetUp();
  const isApplied = !input.solve || (await solve(sandbox, files, { workdir, path }, signal));
  network?.carry(sandbox, testAccount(files));
  const found =
    snapshot === undefined
      ? await judgeDiff(sandbox, host.store, judged, signal)
      : await judgeSnapshot(sandbox, host.store, { ...judged, snapshot }, signal);
  // A solution that was cut off tells nothing about the tests.
  return isApplied ? found : { ...found, evidence: [] };
}

/**
 * Throws SetupFailed if the base commit differs from the agent's. The agent cannot cause that: its own base commit was made
 * before it started, and this one in a fresh sandbox.
 */
function requireSameBase({ diff, task }: Pick<EvaluationRequest, 'diff' | 'task'>, baseCommit: string): void {
  if (diff.baseCommit === baseCommit) return;
  throw new TemperFailure(
    'SetupFailed',
    `the set-up of task ${task.id} produced different files than before: base commit ${diff.baseCommit} for the agent, ${baseCommit} for its evaluation; make it write nothing that changes, such as the time; a regrade with repaired tasks needs their workspace and set-up unchanged`,
  );
}
