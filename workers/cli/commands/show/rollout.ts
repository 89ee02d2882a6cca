import { defaultPayloadConverter } from '@temporalio/common';
import { toAtif } from '../../../../infra/report/atif.ts';
import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import type { NetworkHost } from '../../../../infra/report/network-hosts.ts';
import { readRollout } from '../../../../infra/report/read-rollout.ts';
import { readTrace } from '../../../../infra/report/read-trace.ts';
import type { Branching, RolloutDetails } from '../../../../infra/report/report-data.ts';
import { imageProgressText } from '../../../../infra/sandbox/image.ts';
import { flagsOfRollout } from '../../../../workflows/algorithms/flags.ts';
import { verdictText } from '../../../../workflows/algorithms/verdict-text.ts';
import { readAgentProgress } from '../../../../workflows/contracts/agent-progress.ts';
import { type RolloutStatus, rolloutStatusQuery } from '../../../../workflows/contracts/messages.ts';
import type { NetworkUse } from '../../../../workflows/contracts/network.ts';
import { type RolloutResult, stages } from '../../../../workflows/contracts/rollout.ts';
import type { RegradeRecord } from '../../../../workflows/contracts/rollout-record.ts';
import type { Exposure, Verdict } from '../../../../workflows/contracts/verdict.ts';
import type { KnownWorkflow } from '../../follow/find-known.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { imageInProgress } from '../../follow/image-in-progress.ts';
import { repeatedText, repeatedWork } from '../../follow/repeated-work.ts';
import { endOf } from '../../follow/workflow-end.ts';
import type { ReadableStack } from '../../stack/stack-client.ts';
import { bytes, counted, print, printJson, seconds, table } from '../../text/output.ts';

/** Shows a rollout: its stage, or its stages, conversation, diff and verdict once it has ended. */
export async function showRollout(stack: ReadableStack, known: KnownWorkflow, json: boolean): Promise<void> {
  const { found } = known;
  const result = await recordedResult(stack, known);
  if (result !== null) return showResult(stack, result, json);
  if (found === null)
    throw new Error(`the record of the rollout ${known.id} was removed from the store while it was read`);
  const { handle } = found;
  if (isOpen(found)) {
    const known = await handle.query(rolloutStatusQuery);
    const status = { ...known, stage: stageInProgress(found, known.stage) };
    const image = imageInProgress(found);
    const repeated = repeatedWork(found);
    if (json) return printJson({ id: handle.workflowId, ...status, ...(image && { image }), repeated });
    const host = status.host === null ? '' : ` on ${status.host}`;
    const pause = status.paused ? ', paused' : '';
    const lines = [
      handle.workflowId,
      `running${pause}: ${status.stage}${host}, epoch ${status.epoch}`,
      ...(image ? [imageProgressText(image)] : []),
      ...repeated.map(repeatedText),
    ];
    return print(showHidden(lines.join('\n')));
  }
  // It was terminated, and the control worker has not written its record yet.
  const end = await endOf(handle);
  if (end === null) return showResult(stack, (await handle.result()) as RolloutResult, json);
  if (json) return printJson({ id: handle.workflowId, ...end });
  print(`${handle.workflowId}\n${end.kind}: ${end.message}`);
}

async function showResult(stack: ReadableStack, result: RolloutResult, json: boolean): Promise<void> {
  const details = await readRollout(stack.store, result);
  const regrades = await stack.shared.rollouts.regrades(result);
  if (json) return printJson({ ...details, ...(regrades.length > 0 && { regrades }) });
  print(rolloutText(details));
  if (regrades.length > 0) print(showHidden(`\n${regrades.map(regradedText).join('\n')}`));
}

/** Says what a regrade found. */
function regradedText({ regrade, row: { state, before, after, failure } }: RegradeRecord): string {
  const rewards = state === 'same' || state === 'changed' ? `, reward ${before ?? 'none'} → ${after ?? 'none'}` : '';
  return `graded again by ${regrade}: ${state}${rewards}${failure === null ? '' : `, ${failure.type}: ${failure.message}`}`;
}

/** Reads the result of a rollout in its record; null if it has none. */
async function recordedResult(
  { shared }: ReadableStack,
  { id: workflowId, key: rollout, record }: KnownWorkflow,
): Promise<RolloutResult | null> {
  return (record ?? (await shared.rollouts.find({ workflowId, rollout })))?.result ?? null;
}

/** Returns the stage that the activity of the agent reports, since it has two: it starts the agent before it waits. */
export function stageInProgress(
  { description }: Pick<FoundWorkflow, 'description'>,
  stage: RolloutStatus['stage'],
): RolloutStatus['stage'] {
  const { pendingActivities } = description.raw;
  const payload = pendingActivities?.find(({ activityType }) => activityType?.name === stage)?.heartbeatDetails
    ?.payloads?.[0];
  if (stage !== 'awaitAgent' || payload === undefined) return stage;
  return readAgentProgress(defaultPayloadConverter.fromPayload(payload))?.stage ?? stage;
}

/** Prints the trajectory of a rollout that has ended. */
export async function showTrace(stack: ReadableStack, known: KnownWorkflow): Promise<void> {
  const { id, kind, found } = known;
  if (kind !== 'rollout') throw new Error(`--trace: ${id} is a ${kind}; expected a rollout`);
  const result = await recordedResult(stack, known);
  if (result !== null) return printTrace(stack, result);
  if (found !== null && isOpen(found)) throw new Error(`--trace: ${id} is still running; wait until it has ended`);
  throw new Error(`--trace: ${id} has no trace: it ended without a result`);
}

async function printTrace(stack: ReadableStack, result: RolloutResult): Promise<void> {
  if (result.trace === null) {
    throw new Error(
      `--trace: ${result.workflowId} has no trace: ${result.agent} calls no model, or the rollout ended before a call`,
    );
  }
  printJson(toAtif(result, await readTrace(stack.store, result.trace.trace.digest)));
}

const networkText = ({ requests, refused, bytesIn, bytesOut }: NetworkUse): string =>
  `${counted(requests, 'request')}, ${refused} refused, ${bytes(bytesIn)} in, ${bytes(bytesOut)} out`;

/** The most hosts that are listed; `--json` has all. */
const shownHosts = 20;

/** Lists the hosts that an agent and its tests asked for. */
export function hostTable(hosts: readonly NetworkHost[]): string {
  const rows = hosts
    .slice(0, shownHosts)
    .map(({ host, port, phase, decision, requests, flagged, ...moved }) => [
      phase,
      host === '' ? 'others' : `${host}:${port}`,
      String(requests),
      bytes(moved.bytesIn),
      bytes(moved.bytesOut),
      flagged ? `${decision}, flagged` : decision,
    ]);
  const more = hosts.length - rows.length;
  const listed = table(['phase', 'host', 'requests', 'in', 'out', 'decision'], rows);
  return more === 0 ? listed : `${listed}\nand ${more} more, which --json lists`;
}

const agentOf = ({ agent, agentVersion }: RolloutResult): string =>
  agentVersion === undefined ? agent : `${agent} ${agentVersion}`;

/** Names what the agent did by host tools. */
export function hostToolLines({ trace, answer }: Pick<RolloutResult, 'trace' | 'answer'>): readonly string[] {
  const calls = trace?.hostCalls ?? 0;
  return [
    ...(calls === 0 ? [] : [`host tools: ${counted(calls, 'call')}, in the trace`]),
    ...(answer === undefined ? [] : [`answer in blob ${answer.digest}`]),
  ];
}

function rolloutText({
  result,
  messages,
  branching,
  agentLogEnd,
  patch,
  testLog,
  networkHosts,
}: RolloutDetails): string {
  const { outcome, reward, stop, failure, verdict, epochs } = result;
  const blocks = [
    [
      `${result.workflowId}`,
      `${agentOf(result)} at ${result.task}: ${outcome}${reward === null ? '' : `, reward ${reward}`}${stop === null ? '' : `, stop: ${stop}`}${epochs === 1 ? '' : `, ${epochs} epochs`}`,
      ...(result.notes ?? []),
      ...(result.network === undefined ? [] : [`network: ${networkText(result.network)}`]),
      ...(verdict?.network === undefined ? [] : [`network of the tests: ${networkText(verdict.network)}`]),
      ...(result.offlineTests === undefined ? [] : ['the tests had no network, as the input says']),
      ...hostToolLines(result),
      ...(failure === null ? [] : [`${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}`]),
    ].join('\n'),
    ...(networkHosts.length === 0 ? [] : [hostTable(networkHosts)]),
    ...(result.steps === undefined ? [] : [stepTable(result.steps)]),
    stageTable(result),
    rolloutCostText(result.cost),
    ...(branching === null ? [] : [branchingText(branching)]),
    ...messages.map(({ role, text, turn }) => {
      const facts =
        turn === null
          ? ''
          : ` · turn ${turn.index + 1} · ${turn.tokens} tokens · ${turn.model ?? `policy ${[...new Set(turn.versions)].join(', ')}`}`;
      return `── ${role}${facts}\n${text.trimEnd()}`;
    }),
    ...(agentLogEnd === null || agentLogEnd.trim() === ''
      ? []
      : [`── the end of the agent's log\n${agentLogEnd.trimEnd()}`]),
    ...(patch === null ? [] : [`── diff\n${patch.trim() === '' ? '(no changes)' : patch.trimEnd()}`]),
    ...(verdict === null
      ? []
      : [
          [
            `── verdict: ${verdictText(verdict)}`,
            ...decided(verdict),
            ...restoredText(verdict),
            ...doubtLines(result),
            (testLog ?? '').trimEnd(),
          ].join('\n'),
        ]),
  ];
  return showHidden(blocks.join('\n\n'));
}

/** Lists the first tests that decided against the rollout, one per line. */
const decided = ({ resolution }: Verdict): readonly string[] =>
  (resolution?.decidedBy ?? []).map(({ list, id, status }) => `   ${status.padEnd(9)} ${list}  ${id}`);

/** Names the protected files whose changes were undone before the tests ran. */
function restoredText({ restored }: Verdict): readonly string[] {
  if (restored === undefined || restored === null) return [];
  const more = restored.count - restored.paths.length;
  return [`protected paths restored: ${restored.paths.join(', ')}${more > 0 ? ` and ${more} more` : ''}`];
}

function rolloutCostText(cost: RolloutResult['cost']): string {
  if (cost === undefined) return 'cost: unknown';
  const { promptTokens, sampledTokens, engineSeconds, waitedSeconds } = cost;
  const { sandboxSeconds, evaluationSeconds, incomplete } = cost;
  const sandboxes = Object.entries(sandboxSeconds).map(([provider, spent]) => `, ${seconds(spent)} in ${provider}`);
  const waited = waitedSeconds > 0 ? ` and ${seconds(waitedSeconds)} of waiting for it` : '';
  const tokens = `${promptTokens} tokens in, ${sampledTokens} out, ${seconds(engineSeconds)} at the engine${waited}`;
  const lost = incomplete === true ? '; at least, because a session was lost' : '';
  return `cost: ${tokens}${sandboxes.join('')}, ${seconds(evaluationSeconds)} of evaluation${lost}`;
}

/** Lists the steps of a task that has several, as far as they ran. */
export function stepTable(steps: NonNullable<RolloutResult['steps']>): string {
  const rows = steps.map(({ name, reward, stop, verdict }) => [
    name,
    String(reward),
    stop ?? 'could not begin',
    verdict ?? '',
  ]);
  return table(['step', 'reward', 'stop', 'verdict'], rows);
}

function stageTable({ stageSeconds }: RolloutResult): string {
  const rows = stages.flatMap((stage) => {
    const seconds = stageSeconds[stage];
    return seconds === undefined ? [] : [[stage, seconds.toFixed(2)]];
  });
  return table(['stage', 'seconds'], rows);
}

/** Formats the branches of a rollout's conversation: which of them are trained, and what the others lack. */
export function branchingText({ branches, counts, maskedTurns }: Branching): string {
  const rows = branches.map(
    ({ index, kind, firstTurn, lastTurn, tokens, finishReason, segment, dropped, ...branch }) => [
      String(index + 1),
      kind,
      `${branch.turns} (${firstTurn + 1}–${lastTurn + 1})`,
      String(tokens),
      branch.open === true ? `${finishReason}, in progress` : finishReason,
      String(branch.aborts),
      [segment === null ? 'no' : `segment ${segment + 1}`, ...(dropped === null ? [] : [dropped])].join(', '),
    ],
  );
  const echoes = Object.entries(counts.echoes).map(([difference, count]) => `${difference} ${count}`);
  const masked = maskedTurns.map(({ turn, reason }) => `${turn + 1} (${reason})`);
  const facts = [
    ['forks', counts.forks],
    ['branches of unclear kind, treated as main', counts.unclear],
    ['sampled tokens that are not trained', counts.droppedTokens],
    [
      'requests given up by the agent, with their tokens',
      counts.cuts ? `${counts.cuts.requests} (${counts.cuts.tokens})` : '',
    ],
    ['replies echoed in another form', echoes.join(', ')],
    ['masked turns', masked.join(', ')],
  ].flatMap(([what, value]) => (value === 0 || value === '' ? [] : [`${what}: ${value}`]));
  return [table(['branch', 'kind', 'turns', 'tokens', 'finish', 'aborts', 'trained'], rows), ...facts].join('\n');
}

const exposures: Readonly<Record<Exposure, string>> = {
  forgeable: 'beside processes of the agent, which can write the verdict',
  'same-sandbox': "in the agent's own sandbox, as its tests did",
  snapshot: 'beside everything else that the agent changed in its sandbox',
  'in-process': 'in the process of its tests',
  'same-account': "under the account of the task's test script",
  'other-account': 'under another account than its tests',
};

/** Lists the suspected tricks of a rollout, and how close the code under test could get to its grader. */
export function doubtLines(result: Pick<RolloutResult, 'diff' | 'verdict'>): readonly string[] {
  const exposure = result.verdict?.exposure;
  return [
    ...flagsOfRollout(result).map(({ trick, evidence }) => `flag ${trick}: ${evidence}`),
    ...(exposure === undefined ? [] : [`the code under test ran ${exposures[exposure]} (${exposure})`]),
  ];
}
