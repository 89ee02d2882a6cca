import { CancelledFailure, type Info } from '@temporalio/activity';

/** Something that an activity does: it ends early when its signal aborts, and may report its progress. */
export type Effect<Result> = (signal: AbortSignal, report: (details: unknown) => void) => Promise<Result>;

/** A part in an effect, of one of the activity attempts that wait for it. */
export interface Part<Result> {
  readonly result: Promise<Result>;
  /** The effect's own signal. */
  readonly signal: AbortSignal;
  /** Ends the effect for everyone. */
  end(reason: unknown): void;
  /** Leaves the effect running for the next activity attempt, which has to come within `graceMs`. */
  leave(graceMs: number): void;
}

interface InProgress<Result> {
  readonly ending: AbortController;
  readonly result: Promise<Result>;
  /** The activity attempts that wait for it, each by the function that tells it the progress. */
  readonly followers: Set<(details: unknown) => void>;
  details: unknown;
  expiry: NodeJS.Timeout | undefined;
}

/** The effects in progress in this process, by the activity that they belong to. */
const inProgress = new Map<string | symbol, InProgress<unknown>>();

/** Names an activity in all of its attempts. One activity has one input. */
export function activityKey({ namespace, workflowExecution, activityRunId, activityId }: Info): string {
  return [namespace, workflowExecution?.runId ?? activityRunId, activityId].join('/');
}

/**
 * Starts an effect, or joins the one that an earlier attempt of the same activity has started and left: after a lost
 * heartbeat, the work of that attempt is not done twice. An effect that completes in between keeps its result.
 */
export function takePart<Result>(
  key: string | symbol,
  effect: Effect<Result>,
  follow: (details: unknown) => void,
): Part<Result> {
  const known = inProgress.get(key) as InProgress<Result> | undefined;
  const joined = known ?? start(key, effect);
  clearTimeout(joined.expiry);
  const follower = (details: unknown): void => follow(details);
  joined.followers.add(follower);
  const taken = (): void => {
    if (joined.followers.has(follower)) forget(key, joined);
  };
  joined.result.then(taken, taken);
  if (joined.details !== undefined) follow(joined.details);
  return {
    result: joined.result,
    signal: joined.ending.signal,
    end: (reason) => end(key, joined, reason),
    leave(graceMs) {
      joined.followers.delete(follower);
      if (joined.followers.size > 0 || inProgress.get(key) !== joined) return;
      const tooLate = new CancelledFailure('no further activity attempt came');
      joined.expiry = setTimeout(() => end(key, joined, tooLate), graceMs).unref();
    },
  };
}

/** Ends the effects that no activity attempt waits for, so that they do not outlive the worker. */
export function endLeftEffects(): void {
  const reason = new CancelledFailure('the worker is shut down');
  for (const [key, effect] of inProgress) if (effect.followers.size === 0) end(key, effect, reason);
}

function start<Result>(key: string | symbol, effect: Effect<Result>): InProgress<Result> {
  const ending = new AbortController();
  const report = (details: unknown): void => {
    started.details = details;
    for (const follow of started.followers) follow(details);
  };
  const started: InProgress<Result> = {
    ending,
    followers: new Set(),
    details: undefined,
    expiry: undefined,
    // It begins once it is known, because it may report at once.
    result: Promise.resolve().then(() => effect(ending.signal, report)),
  };
  // If it fails while no activity attempt waits for it, the next activity attempt starts over.
  started.result.catch(() => forget(key, started));
  inProgress.set(key, started);
  return started;
}

/** Aborts an effect, which no activity attempt may join from now on. */
function end(key: string | symbol, effect: InProgress<unknown>, reason: unknown): void {
  forget(key, effect);
  effect.ending.abort(reason);
}

function forget(key: string | symbol, effect: InProgress<unknown>): void {
  clearTimeout(effect.expiry);
  if (inProgress.get(key) === effect) inProgress.delete(key);
}
