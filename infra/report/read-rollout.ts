import { sampledTokensOf } from '../../workflows/algorithms/turns.ts';
import type { BlobRef } from '../../workflows/contracts/blob.ts';
import type { RolloutResult } from '../../workflows/contracts/rollout.ts';
import type { Trace, TranscriptEntry } from '../../workflows/contracts/trace.ts';
import { uncollected } from '../harbor/task-steps.ts';
import type { Store } from '../store/store.ts';
import { readNetworkHosts } from './network-hosts.ts';
import { readTrace } from './read-trace.ts';
import type { Branching, MessageView, RolloutDetails, TurnFacts } from './report-data.ts';
import { type TokenName, tokenViews } from './token-views.ts';

/** Reads the blobs of a rollout. Fields of stages that it never reached are null. Tokens are included when `nameOf` is given. */
export async function readRollout(
  store: Store,
  result: RolloutResult,
  nameOf: TokenName | null = null,
): Promise<RolloutDetails> {
  const { trace: summary, diff, verdict } = result;
  const trace = summary === null ? null : await readTrace(store, summary.trace.digest);
  const shown = trace === null || nameOf === null ? { views: [], segmentsLeft: 0 } : tokenViews(trace, nameOf);
  return {
    result,
    messages: trace === null ? [] : messagesOf(trace),
    branching: trace === null ? null : branchingOf(trace),
    tokens: shown.views,
    segmentsLeft: shown.segmentsLeft,
    agentLogEnd: await readLogEnds(store, result),
    patch: diff === null ? null : await readText(store, diff.patch),
    testLog: verdict === null ? null : await readText(store, verdict.log),
    networkHosts: await readNetworkHosts(store, result),
  };
}

/** The most characters of an agent's log that are shown: its last lines say why it crashed, and which commands failed after it. */
const shownOfLog = 4000;

/** Reads the end of the agent's log of each step in which something failed; null if nothing did. */
async function readLogEnds(store: Store, { stop, agentLog, steps = [] }: RolloutResult): Promise<string | null> {
  const inSteps = steps.map((step) => ({ ...step, title: `step ${step.name}:\n` }));
  // A step whose evaluation failed has no row.
  const hasRow = inSteps.some((step) => step.agentLog?.digest === agentLog?.digest);
  const ends: string[] = [];
  for (const one of hasRow ? inSteps : [...inSteps, { stop, agentLog, title: '' }]) {
    const end = one.agentLog ? endOf(await readText(store, one.agentLog), one.stop) : null;
    if (end !== null) ends.push(`${one.title}${end}`);
  }
  return ends.length === 0 ? null : ends.join('\n');
}

/** Returns the end of an agent's log; null if the log reports no failure. */
function endOf(log: string, stop: RolloutResult['stop']): string | null {
  const end = log.length > shownOfLog ? `…${log.slice(-shownOfLog)}` : log;
  return stop === 'crashed' || end.includes(`\n${uncollected}: `) ? end : null;
}

/** Reads a blob as text, with replacement characters for invalid bytes. */
async function readText(store: Store, { digest }: BlobRef): Promise<string> {
  return Buffer.from(await store.get(digest)).toString('utf8');
}

const branchingOf = ({ branches, counts, maskedTurns }: Trace): Branching => ({ branches, counts, maskedTurns });

/** The messages of the conversation. */
function messagesOf({ turns, transcript }: Trace): MessageView[] {
  return transcript.map((entry) => {
    const turn = entry.turn === undefined ? undefined : turns[entry.turn];
    return { role: entry.role, text: messageText(entry), turn: turn === undefined ? null : turnFacts(turn) };
  });
}

function messageText({ text, reasoning = '', calls = [] }: TranscriptEntry): string {
  const thinking = reasoning === '' ? '' : `(thinks) ${reasoning}`;
  const called = calls.map(({ name, arguments: args }) => `${name}(${args})`);
  return [thinking, text, ...called].filter((part) => part !== '').join('\n');
}

function turnFacts(turn: Trace['turns'][number]): TurnFacts {
  return {
    index: turn.index,
    tokens: sampledTokensOf(turn),
    seconds: (turn.endedAt - turn.startedAt) / 1000,
    versions: turn.versions.map(({ version }) => version),
    ...(turn.upstream !== undefined && { model: turn.upstream.model }),
  };
}
