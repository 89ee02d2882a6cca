import type { EvaluationInPlace } from '../../workflows/contracts/evaluation.ts';
import { TemperFailure } from '../../workflows/contracts/failures.ts';
import { preparationMs } from '../../workflows/contracts/stage-limits.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { wasEndedInside } from '../sandbox/failure.ts';
import { prepareSandbox } from '../sandbox/prepare-image.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { usingWhatAgentLeft } from '../sandbox/what-agent-left.ts';
import { withTimeLimit } from '../time-limit.ts';
import { withAnswer } from './answer.ts';
import { attribute, requireHosts } from './attribute.ts';
import type { EvaluationHost, EvaluationTry } from './evaluation.ts';
import { judgeInPlace } from './judge-in-place.ts';
import { type Judged, judgeEnded } from './judged.ts';
import { patientAttempts } from './late.ts';
import { subjectOf } from './subject.ts';
import { withNetwork } from './tests/test-network.ts';
import { testAccount } from './tests/test-process.ts';
import { unreachedHosts } from './tests/unreached.ts';

export interface TryInPlace extends EvaluationTry {
  readonly sandbox: Sandbox;
  /** The secrets of the agent's session, which no log may show. */
  readonly secrets: readonly string[];
}

/**
 * Judges an agent's work in its own sandbox, which nothing else has changed since it ended. Repeatable: another activity attempt
 * waits for the tests that the first one has started. The verdict is in no cache, because it depends on more than the diff.
 */
export async function evaluateInPlace(
  host: EvaluationHost,
  input: EvaluationInPlace,
  { sandbox, secrets, number, report }: TryInPlace,
  signal: AbortSignal,
): Promise<Verdict> {
  const { task, diff, timeoutMs, kind } = input;
  const { files, ownFiles } = await withAnswer(host.store, task, await host.tasks.open(task), input.answer);
  const subject = subjectOf(input);
  const { workdir, diskMb } = task;
  const network = await host.testNetwork(task, {
    sandbox: sandbox.name,
    channels: [sandbox.labels.channel ?? 'socket'],
  });
  network?.carry(sandbox, testAccount(files));
  const path = host.pathOf(kind);
  const commands = network?.commands;
  const tests = { timeoutMs, path, network: commands };
  const judged = { task: files, diff, workdir, diskMb, subject, secrets, attempt: number, ...tests };
  const limitMs = timeoutMs + preparationMs;
  const late = new TemperFailure(
    'EvaluationTimedOut',
    `the evaluation in sandbox ${sandbox.name} took longer than ${limitMs / 1000} s, so the host may be overloaded; it is continued`,
  );
  const left = { sandbox, failedBefore: number > patientAttempts };
  const found = await withTimeLimit(
    { limitMs, late },
    (ending) => usingWhatAgentLeft(left, () => judgeInPlace(sandbox, host.store, judged, ending), ending),
    signal,
  )
    .catch(async (error: unknown): Promise<Judged> => {
      if (!wasEndedInside(error)) throw error;
      return judgeEnded(host.store, error.message, judged);
    })
    .finally(() => network?.close())
    .then(async (one) => withNetwork(one, await network?.end()));
  const lacksHosts = (await unreachedHosts(host.store, found.verdict)).length > 0;
  const blames = found.evidence.length > 0 || lacksHosts;
  if (!blames) return found.verdict;
  const provider = await host.choose(kind, task, { filesInImage: files.workspace.size === 0 });
  const prepared = await prepareSandbox({ store: host.store, provider }, { task, files }, report, signal);
  const evaluation = { ...input, number, report, provider, files, ownFiles, ...prepared, solve: false };
  // The tests cannot run again: they have changed the agent's sandbox.
  await requireHosts(host, evaluation, found, signal);
  return attribute(host, evaluation, found, signal);
}
