import { errorMessage } from '../../workflows/contracts/error-message.ts';
import { type FailureType, TemperFailure } from '../../workflows/contracts/failures.ts';
import { blamingBrokenPrograms } from './broken-programs.ts';
import { FileRefused, SandboxFailure } from './failure.ts';

/** Failures that no daemon, provider or host reports, so that what an agent left may have caused them. */
const suspect: ReadonlySet<FailureType> = new Set(['SandboxLost', 'Internal']);
/** The codes of errors that say that a value is out of range, and nothing about the machine. */
const ofValues = /^ERR_(?:OUT_OF_RANGE|INVALID_ARG)/;

/** The first failure of work on what an agent left. The host may have caused it, so the stage is tried once more. */
export class NotYetRead extends TemperFailure {
  constructor(message: string, options?: ErrorOptions) {
    super('SandboxUnavailable', message, options);
  }
}

interface WorkOnWhatIsLeft {
  readonly sandbox: Parameters<typeof blamingBrokenPrograms>[0];
  /** Whether it has failed before, so that a busy host is no longer a likely cause. */
  readonly failedBefore: boolean;
}

/**
 * Does work on what an agent that has ended in order left in a sandbox, or on all of it in a fresh one. Failures of the daemon, the
 * provider or the host pass through. An agent could provoke any other, to escape a reward of 0. So the work is tried once more, and
 * then the agent counts as having ended its sandbox, which is scored.
 */
export async function usingWhatAgentLeft<Result>(
  { sandbox, failedBefore }: WorkOnWhatIsLeft,
  work: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  try {
    return await blamingBrokenPrograms(sandbox, work);
  } catch (error) {
    signal.throwIfAborted();
    if (hasOtherCause(error)) throw error;
    const evidence = errorMessage(error);
    const text = `what the agent left in sandbox ${sandbox.name} cannot be used`;
    // No busy host makes a file another kind of file.
    if (!failedBefore && !(error instanceof FileRefused))
      throw new NotYetRead(`${text}: ${evidence}; temper will try once more`, { cause: error });
    throw new SandboxFailure('SandboxLost', text, { cause: error, evidence, loss: 'ended-inside' });
  }
}

/** Whether a failure of work on what an agent left has another cause. */
export function hasOtherCause(error: unknown): boolean {
  if (error instanceof FileRefused) return false;
  if (!(error instanceof TemperFailure)) return isOfMachine(error);
  if (error instanceof SandboxFailure && error.loss !== undefined) return true;
  // The image had a shell before the agent began.
  const isSuspect = suspect.has(error.type) || (error instanceof SandboxFailure && error.type === 'UnsupportedTask');
  return !isSuspect || (error.cause !== undefined && isOfMachine(error.cause));
}

/** Whether an error is the answer of a daemon, of a provider or of the system, and no unexpected value. */
function isOfMachine(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if ('statusCode' in error && error.statusCode !== undefined) return true;
  if ('code' in error && typeof error.code === 'string' && !ofValues.test(error.code)) return true;
  return error.cause !== undefined && isOfMachine(error.cause);
}
