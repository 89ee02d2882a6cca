import type Docker from 'dockerode';
import { errorMessage } from '../../../workflows/contracts/error-message.ts';
import { ThrottledFailure } from '../../../workflows/contracts/throttled-failure.ts';
import { errorCode, type LossCause, SandboxFailure } from '../failure.ts';

const unreachableCodes = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ECONNRESET',
  'EPIPE',
  'ENOTFOUND',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
]);
/** The statuses with which a daemon, or a proxy before it, says that it can't answer now. */
const away: ReadonlySet<number | undefined> = new Set([502, 503, 504]);
const eventsSinceSec = 24 * 3_600;

/** The HTTP status of an error that the daemon answered with. */
export function daemonStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('statusCode' in error)) return undefined;
  return typeof error.statusCode === 'number' ? error.statusCode : undefined;
}

/** Returns undefined for an object that does not exist, and throws any other error again. */
export function orIfMissing(error: unknown): undefined {
  if (daemonStatus(error) === 404) return undefined;
  throw error;
}

/**
 * Runs one call of the daemon. Throws `SandboxUnavailable` if it does not answer or lacks a program, a `ThrottledFailure` if it
 * refuses for now, and `DiskFull` if its disk is full.
 */
export async function callDaemon<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw unavailable(cause) ?? withoutPs(cause) ?? throttled(cause) ?? fullDisk(cause) ?? cause;
  }
}

function unavailable(cause: unknown): SandboxFailure | undefined {
  if (away.has(daemonStatus(cause))) {
    const text = 'expected the Docker daemon to answer, got an error of what is before it, or it starts or stops';
    return new SandboxFailure('SandboxUnavailable', text, { cause, evidence: errorMessage(cause) });
  }
  const code = errorCode(cause);
  const hungUp =
    cause instanceof Error && /socket hang up|aborted/.test(cause.message) && daemonStatus(cause) === undefined;
  if (!hungUp && (code === undefined || !unreachableCodes.has(code))) return undefined;
  const text =
    'expected the Docker daemon to answer, got no connection; check `docker info` and the permission on its socket';
  return new SandboxFailure('SandboxUnavailable', text, { cause, ...(code ? { evidence: code } : {}) });
}

/** The advice where the daemon can't list the processes of a container. */
export const installPs =
  'the Docker daemon lists the processes of a container by `ps`, which its host lacks; install it there (Debian: procps)';

function withoutPs(cause: unknown): SandboxFailure | undefined {
  if (daemonStatus(cause) !== 500 || !/exec: "ps"/.test(errorMessage(cause))) return undefined;
  return new SandboxFailure('SandboxUnavailable', installPs, { cause, evidence: errorMessage(cause) });
}

/** The client library passes no headers on, so the pause that the answer asks for is unknown. */
function throttled(cause: unknown): ThrottledFailure | undefined {
  if (daemonStatus(cause) !== 429) return undefined;
  return new ThrottledFailure('the Docker daemon, or what is before it, takes no more requests for now', null, {
    cause,
  });
}

export function fullDisk(cause: unknown): SandboxFailure | undefined {
  if (!(cause instanceof Error) || !/no space left on device/i.test(cause.message)) return undefined;
  const text = "the Docker host's disk is full; free some space";
  return new SandboxFailure('DiskFull', text, { cause, evidence: cause.message });
}

/** Explains why a container that should run does not. Undefined if it runs. */
export async function explainLoss(docker: Docker, name: string, id: string): Promise<SandboxFailure | undefined> {
  const state = (await callDaemon(() => docker.getContainer(id).inspect()).catch(orIfMissing))?.State;
  if (state?.Running && !state.Paused) return undefined;
  const events = await containerEvents(docker, id);
  const seen = events.length > 0 ? `events: ${events.join(', ')}` : 'no events known';
  const now = state
    ? `${state.Status}, exit code ${state.ExitCode}, killed for memory: ${state.OOMKilled}, ended at ${state.FinishedAt}`
    : 'no such container';
  const text = `the container of sandbox ${name} no longer runs: ${now}; the rollout continues in a new sandbox`;
  return new SandboxFailure('SandboxLost', text, { evidence: seen, loss: lossCause(state !== undefined, events) });
}

function lossCause(exists: boolean, events: readonly string[]): LossCause {
  const killed = events.some((event) => /^(kill|stop|restart|pause)\b/.test(event));
  if (killed) return exists ? 'killed-outside' : 'removed';
  if (!exists) return 'removed';
  return events.some((event) => event.startsWith('die')) ? 'ended-inside' : 'unknown';
}

/** The daemon's recent events about a container. They distinguish a kill from outside from an end inside. */
async function containerEvents(docker: Docker, id: string): Promise<readonly string[]> {
  // The daemon counts whole seconds: rounding up includes what has just happened, and the answer ends then.
  const until = Math.ceil(Date.now() / 1_000);
  const filters = { container: [id], event: ['kill', 'die', 'oom', 'stop', 'restart', 'pause', 'destroy'] };
  const stream = await callDaemon(() => docker.getEvents({ since: until - eventsSinceSec, until, filters }));
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text.split('\n').filter(Boolean).map(describeEvent);
}

function describeEvent(line: string): string {
  const event: { Action?: string; Actor?: { Attributes?: Record<string, string> } } = JSON.parse(line);
  const { signal, exitCode } = event.Actor?.Attributes ?? {};
  return [event.Action, signal && `signal ${signal}`, exitCode && `exit code ${exitCode}`].filter(Boolean).join(' ');
}
