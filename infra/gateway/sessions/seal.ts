import { modelUseOf } from '../../../workflows/algorithms/cost.ts';
import type { Trace, TraceCounts, TraceSummary, TranscriptEntry } from '../../../workflows/contracts/trace.ts';
import type { Message } from '../../kits/chat-tokens/index.ts';
import type { Store } from '../../store/store.ts';
import { type Built, buildSegments } from '../branches/segments.ts';
import { type TurnRecord, versionRange } from '../branches/turn-record.ts';
import type { Absence } from './presence.ts';
import type { Session } from './session.ts';

/** Builds the trace of a closed session and puts it into the store. The same turns always give the same bytes. */
export async function sealTrace(session: Session, store: Store, absences: readonly Absence[]): Promise<TraceSummary> {
  const { hostCalls, cuts } = session;
  const turns = [...session.turns, ...cuts.last];
  const lost = absences.filter((absence) => mayHaveCut(session, absence)).length;
  const gatewayFailures = session.failures.count('gateway-failure') + lost;
  const environmentFailures = session.failures.count('environment-failure');
  const built = buildSegments(turns, session.opened.branches);
  const { segments, branches, masked } = built;
  const counts = {
    ...countsOf(turns, session.forks, built),
    ...(cuts.replaced.requests > 0 && { cuts: cuts.replaced }),
  };
  const trace: Trace = {
    session: session.opened.session,
    turns: turns.map(publicTurn),
    segments,
    branches,
    counts,
    forks: session.forks,
    maskedTurns: [...masked].map(([turn, reason]) => ({ turn, reason })),
    faultyCalls: countBy(turns.flatMap((turn) => turn.faultyCalls)),
    ...(hostCalls.records.length === 0 ? {} : { hostCalls: hostCalls.records }),
    transcript: turns.flatMap(({ messages, reply, index }) => [
      ...messages.map(transcriptEntry),
      { ...transcriptEntry(reply), turn: index },
    ]),
  };
  const versions = versionRange(turns.filter(({ index }) => masked.get(index) !== 'aborted'));
  return {
    trace: await store.putJson(trace),
    turns: turns.length,
    segments: segments.length,
    ...modelUseOf(turns, session.waits.ms),
    minVersion: versions.min,
    maxVersion: versions.max,
    contextOverflow: session.failures.overflowed,
    turnLimit: session.failures.count('turn-limit') > 0,
    ...(session.failures.count('token-budget') > 0 && { tokenBudget: true }),
    engineFailures: session.failures.count('engine-failure'),
    ...(gatewayFailures === 0 ? {} : { gatewayFailures }),
    ...(environmentFailures === 0 ? {} : { environmentFailures }),
    ...(session.failures.cutOff || lost > 0 ? { cutOff: true } : {}),
    ...(session.opened.upstream === undefined ? {} : { upstream: session.opened.upstream }),
    ...(hostCalls.records.length === 0 ? {} : { hostCalls: hostCalls.records.length }),
    ...(hostCalls.submitted && { submitted: true }),
    ...(hostCalls.answer !== null && { answer: await store.put(Buffer.from(hostCalls.answer), 'text/plain') }),
    ...(session.retries === 0 ? {} : { retries: session.retries }),
    counts,
  };
}

/**
 * Whether the session was open during the absence, and no turn began after it. It is unknown whether the agent sent a request
 * meanwhile or had ended: repeating a rollout costs less than scoring one that an outage ended.
 */
function mayHaveCut({ openedAt, opened, turns }: Session, { from, to }: Absence): boolean {
  return openedAt < to && from < opened.expiresAt && turns.every(({ startedAt }) => startedAt < to);
}

function countsOf(
  turns: readonly TurnRecord[],
  forks: number,
  { branches, classification, masked, droppedTokens }: Built,
): TraceCounts {
  return {
    branches: countBy(branches.map(({ kind }) => kind)),
    unclear: classification.unclear,
    dropped: branches.filter(({ segment, dropped }) => segment === null && dropped !== 'nothing-to-train').length,
    droppedTokens,
    maskedTurns: masked.size,
    forks,
    aborts: turns.reduce((sum, { aborts = 0 }) => sum + aborts, 0),
    echoes: countBy(turns.flatMap(({ echo = [] }) => echo)),
    ...callsOf(turns),
    ...mainTurnsOf(turns.filter(({ index }) => classification.isMain(index))),
  };
}

/** The statuses, other than `ok`, of calls that the agent gets. */
const givenStatuses: ReadonlySet<string> = new Set(['unknown-tool', 'mistyped', 'repaired']);

function callsOf(turns: readonly TurnRecord[]): Pick<TraceCounts, 'calls'> {
  const others = turns.flatMap(({ faultyCalls }) => faultyCalls);
  const given = turns.reduce((sum, { reply }) => sum + reply.toolCalls.length, 0);
  const ok = given - others.filter((status) => givenStatuses.has(status)).length;
  const calls = { ...(ok > 0 && { ok }), ...countBy(others) };
  return Object.keys(calls).length === 0 ? {} : { calls };
}

function mainTurnsOf(turns: readonly TurnRecord[]): Pick<TraceCounts, 'mainTurns'> {
  const ended = turns.filter(({ finishReason }) => finishReason !== 'abort');
  const withoutCall = ended.filter(
    ({ reply, faultyCalls }) => reply.toolCalls.length + faultyCalls.length === 0,
  ).length;
  return ended.length === 0 ? {} : { mainTurns: { all: ended.length, withoutCall } };
}

/** The part of a record that the trace publishes. */
function publicTurn(turn: TurnRecord): Trace['turns'][number] {
  return {
    index: turn.index,
    parent: turn.parent,
    requestKey: turn.requestKey,
    ...(turn.sample === undefined ? {} : { sample: turn.sample }),
    promptIds: turn.promptIds,
    promptLength: turn.promptLength,
    promptChecksum: turn.promptChecksum,
    sampledIds: turn.sampledIds,
    logprobs: turn.logprobs,
    versions: turn.versions,
    finishReason: turn.finishReason,
    ...(turn.aborts === undefined ? {} : { aborts: turn.aborts }),
    ...(turn.upstream && { upstream: turn.upstream }),
    ...(turn.sampling && { sampling: turn.sampling }),
    startedAt: turn.startedAt,
    endedAt: turn.endedAt,
  };
}

function transcriptEntry(message: Message): TranscriptEntry {
  const { role, text } = message;
  if (role === 'tool') return { role, text, callId: message.callId };
  if (role !== 'assistant') return { role, text };
  const { reasoning, toolCalls } = message;
  return {
    role,
    text,
    ...(reasoning === '' ? {} : { reasoning }),
    ...(toolCalls.length === 0
      ? {}
      : { calls: toolCalls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })) }),
  };
}

function countBy(kinds: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of kinds) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
